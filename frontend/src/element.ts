// The panel below the ops: the focused element, and the histogram of the op's values.

import { ApiError, api } from "./api";
import { byId, empty, make, svg } from "./dom";
import { formatNumber } from "./format";
import type { Actions } from "./panel";
import type { ElementTip, Histogram } from "./payloads/memory_payloads";
import type { Scene } from "./tensors";

const [WIDTH, HEIGHT] = [320, 90];
const BINS = 32;
const NOT_RECORDED = "The values of this op were not recorded.";

/** Shows a scene's element and histogram as they change. */
export function elementCard(actions: Actions) {
  let shown = "";
  return {
    /** Fetches and shows the element and the histogram of a scene. */
    async show(scene: Scene) {
      const { data, op, focus } = scene;
      const key = JSON.stringify([data.launch.id, data.program, op?.uuid, focus]);
      if (key === shown) return;
      shown = key;
      const [tip, histogram] = await Promise.all([
        focus &&
          api
            .element(data.launch.id, focus.tensor, focus.element, data.program, op?.uuid)
            .catch(() => undefined),
        op && "block" in op
          ? data.launch.values
            ? api.histogram(op.uuid, BINS).catch(reason)
            : NOT_RECORDED
          : undefined,
      ]);
      if (key !== shown) return;
      byId("element").replaceChildren(...(tip ? [card(tip, scene, actions)] : []));
      byId("histogram").replaceChildren(drawing(histogram));
    },
  };
}

function reason(error: unknown): string {
  return error instanceof ApiError ? error.message : String(error);
}

function card(tip: ElementTip, { data }: Scene, actions: Actions): HTMLElement {
  const close = make("button", "close", "×");
  close.setAttribute("aria-label", "Unselect this element");
  close.onclick = () => actions.goTo({ focus: undefined });
  const value = data.launch.values ? formatNumber(tip.value) : "not recorded";
  const facts = make("dl", "facts");
  for (const [name, text] of [
    ["address", tip.address],
    ["value", value],
  ] as const)
    facts.append(make("dt", "", name), make("dd", "", text));
  const ops = tip.touched_by.map((by) => {
    const link = make("button", "link", `${by.type} at line ${by.line}${by.masked ? ", masked off" : ""}`);
    link.onclick = () => actions.goTo({ op: by.uuid, focus: { tensor: tip.tensor, element: tip.element } });
    return link;
  });
  const title = make("b", "", `${tip.tensor}[${tip.index.join(", ")}]`);
  const by = ops.length ? ops : [make("span", "muted", "no op of this program")];
  return make(
    "div",
    "card",
    make("div", "card-head", title, close),
    facts,
    make("div", "by", "in the block of ", ...by),
  );
}

function drawing(found: Histogram | string | undefined): HTMLElement | SVGElement {
  if (found === undefined) return make("p", "muted", "This op reads and writes no tensor.");
  if (typeof found === "string") {
    if (found !== NOT_RECORDED) return make("p", "muted", found);
    return empty(NOT_RECORDED, "Set `triton_viz.config.values = True` before the kernel runs.");
  }
  if (!found.counts.length) return make("p", "muted", "All elements are masked off, so there are no values.");
  const most = Math.max(...found.counts);
  const wide = WIDTH / found.counts.length;
  const bars = found.counts.map((count, bin) => {
    const tall = count ? Math.max(1, (count / most) * HEIGHT) : 0;
    const [from, to] = [found.edges[bin] ?? 0, found.edges[bin + 1] ?? 0];
    const title = svg("title", {}, `${count} from ${formatNumber(from)} to ${formatNumber(to)}`);
    return svg(
      "rect",
      { x: bin * wide, y: HEIGHT - tall, width: Math.max(0.5, wide - 1), height: tall },
      title,
    );
  });
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": "histogram",
    },
    ...bars,
  );
  const odd = [found.nan && `${found.nan} NaN`, found.infinite && `${found.infinite} infinite`].filter(
    Boolean,
  );
  const words = [`mean ${formatNumber(found.mean)}`, ...odd].join(", ");
  const ends = make(
    "div",
    "ends",
    make("span", "", formatNumber(found.lowest)),
    make("span", "muted", words),
    make("span", "", formatNumber(found.highest)),
  );
  return make("div", "", picture, ends);
}
