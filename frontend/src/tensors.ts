// Every tensor argument as a grid of its elements, coloured by the mode: the accesses of the selected op and its
// program, the values, or the number of accesses of all programs.

import { rendererOf } from "../ops/registry";
import type { Mark } from "../ops/renderer";
import { ApiError } from "./api";
import { onScheme } from "./colours";
import { byId, make } from "./dom";
import { elementCard } from "./element";
import { arrange, type Layout, matrixOf } from "./layout";
import type { Actions, Focus, Panel } from "./panel";
import type { ProgramData } from "./payloads/program_payloads";
import { TensorView } from "./tensorview";
import type { Op } from "./types";

const [GAP, CAPTION] = [20, 30];
const NOT_KEPT =
  "The values of accesses were not recorded. Set triton_viz.config.values = True before the kernel runs, " +
  "and run it again.";

/** The colouring of the tensors. */
export type Mode = "op" | "values" | "all";

/** The input of a tensor's drawing. */
export interface Scene {
  data: ProgramData;
  op: Op | undefined;
  marks: Mark[];
  mode: Mode;
  kind: string;
  solid: boolean;
  focus: Focus | undefined;
}

/** The panel of the tensors, and a function that focuses an element. */
export function tensorsPanel(actions: Actions): Panel & { focus(focus: Focus | undefined): void } {
  const root = byId("tensors");
  const kind = byId<HTMLSelectElement>("kind");
  let data: ProgramData | undefined;
  let views: TensorView[] = [];
  let scene: Scene | undefined;
  let selected: Op | undefined;
  let mode: Mode = "op";
  let solid = false;
  let focus: Focus | undefined;
  const card = elementCard(actions);

  const build = () => {
    // While hidden, the panel has no size; the observer calls again when it is shown.
    if (!data || !root.clientWidth) return;
    const shapes = data.tensors.map((tensor) => matrixOf(tensor.shape));
    const { columns, layouts } = arrange(shapes, root.clientWidth, root.clientHeight, GAP, CAPTION);
    root.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const before = new Map(views.map((view) => [view.tensor.name, view]));
    views = data.tensors.map((tensor, position) => {
      const layout = layouts[position] as Layout;
      const kept = before.get(tensor.name);
      if (kept?.fits(tensor, layout)) return kept;
      return new TensorView(tensor, layout, (element) => point({ tensor: tensor.name, element }));
    });
    root.replaceChildren(...views.map((view) => view.figure));
    if (!views.length) root.append(make("p", "none", "This kernel has no tensor arguments."));
    draw();
  };
  const point = (wanted: Focus | undefined) => {
    focus = wanted;
    if (data) actions.goTo({ focus });
  };
  const draw = () => {
    if (!data) return;
    const op = selected;
    const marks = op ? (rendererOf(op).marks?.(op, data.visualization_data) ?? []) : [];
    scene = { data, op, marks, mode, kind: kind.value, solid, focus };
    if (!root.clientWidth) return;
    // Without recorded values the tensors continue to show the op.
    const missing = mode === "values" && !data.launch.values;
    if (missing) scene = { ...scene, mode: "op" };
    byId("values-missing").hidden = !missing;
    byId("values-missing").textContent = NOT_KEPT;
    const drawn = scene;
    for (const view of views) {
      view.draw(scene).catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error;
        if (drawn !== scene) return;
        // Show the reason here; a server that does not answer is reported elsewhere.
        byId("values-missing").textContent = error.message;
        byId("values-missing").hidden = false;
      });
    }
    legend(scene);
    byId("kind-label").hidden = mode !== "all";
    byId("solid").setAttribute("aria-pressed", String(solid));
    for (const name of ["op", "values", "all"]) {
      byId(`mode-${name}`).setAttribute("aria-pressed", String(name === mode));
    }
    card.show(scene);
  };

  new ResizeObserver(build).observe(root);
  onScheme(() => {
    for (const view of views) view.repaint();
  });
  kind.onchange = draw;
  byId("solid").onclick = () => {
    solid = !solid;
    draw();
  };
  byId("zoom-reset").onclick = () => {
    for (const view of views) view.reset();
    draw();
  };
  for (const name of ["op", "values", "all"] as const) {
    byId(`mode-${name}`).onclick = () => {
      mode = name;
      draw();
    };
  }
  return {
    show(fresh) {
      const same = data?.launch.id === fresh.launch.id;
      data = fresh;
      if (!same) views = [];
      selected = undefined;
      build();
    },
    select(op) {
      selected = op;
      draw();
    },
    focus(wanted) {
      const moved = wanted && (wanted.tensor !== focus?.tensor || wanted.element !== focus.element);
      focus = wanted;
      if (moved) views.find((view) => view.tensor.name === wanted.tensor)?.lookAt(wanted.element);
      draw();
    },
  };
}

/** The legend of a mode: what each colour means. */
function legend({ mode, marks, op }: Scene) {
  const entries: [string, string][] = [];
  if (mode === "op") {
    const own = new Map(marks.map((mark) => [mark.label, mark.colour]));
    entries.push(...own);
    if (op && "masked" in op) entries.push(["masked off", "--masked"]);
    entries.push(["this program", "--tint"], ["not accessed", "--cell"]);
  }
  const chips = entries.map(([label, name]) => {
    const chip = make("span", "", label);
    chip.style.setProperty("--chip", `var(${name})`);
    return chip;
  });
  if (mode !== "op") {
    const unit = mode === "all" ? "accesses of all programs" : "value, lowest to highest";
    chips.push(make("span", "ramp", unit));
  }
  byId("legend").replaceChildren(...chips);
}
