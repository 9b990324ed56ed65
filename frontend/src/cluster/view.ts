// The cluster's view: GT's instruction log as a timeline, with the selected instruction and tables. The log comes from
// the server, where it may grow, or is embedded in the page.

import { ApiError } from "../api";
import { onScheme } from "../colours";
import { byId, empty, make, plural } from "../dom";
import { formatSeconds } from "../format";
import { Store } from "../state";
import { moduleOf, showInstruction } from "./details";
import { InstructionLog } from "./log";
import { matcher } from "./modules";
import { showModules, showTables, tableSections } from "./tables";
import { readTape, type Span, type Tape } from "./tape";
import {
  type Box,
  drawTimeline,
  LANE,
  LEGEND,
  lanesOf,
  moveRange,
  type Range,
  timeAt,
  wholeOf,
  zoomRange,
} from "./timeline";

declare global {
  interface Window {
    /** The log in a page that `python -m gt.timeline` wrote. */
    TAPE?: { name: string; text: string };
  }
}

const FOLLOW = 1000;

/** The state of the view. */
interface State {
  tape: Tape | undefined;
  /** The shown range of time. */
  range: Range | undefined;
  selected: Span | undefined;
  /** The name of the shown modules; empty for all. */
  wanted: string;
  /** The timer that reads the log again while it is followed. */
  following: ReturnType<typeof setInterval> | undefined;
}

const log = new InstructionLog();
const store = new Store<State>({
  tape: undefined,
  range: undefined,
  selected: undefined,
  wanted: "",
  following: undefined,
});

/** Shows the log or, without one, how to write one. */
export async function showCluster(hasTape: boolean) {
  if (window.TAPE) {
    [log.name, log.text] = [window.TAPE.name, window.TAPE.text];
  } else if (hasTape) {
    await log.fetchMore();
  } else {
    const next =
      "Run a GT program with `GT_INSTRUCTION_LOG=gt.log`, then open it: triton-visualizer --tape gt.log";
    byId("cluster").replaceChildren(empty("No instruction log was given.", next));
    return;
  }
  if (!document.getElementById("timeline")) build();
  read(true);
  // The log of a running server is followed until the user stops it.
  if (log.live && !store.state.following) toggleFollow();
}

/** Parses the log. With `all`, or if its end is in view, the timeline shows the whole log. */
function read(all: boolean) {
  const { tape: before, range } = store.state;
  const atEnd = range && before && range.to >= wholeOf(before).to - 1e-9;
  const tape = readTape(log.text);
  store.set({ tape, range: all || !range || atEnd ? wholeOf(tape) : range, selected: undefined });
}

function want(wanted: string) {
  store.set({ wanted });
}

function build() {
  const canvas = make("canvas");
  canvas.id = "timeline";
  canvas.setAttribute("role", "img");
  const follow = make("button", "", "Follow");
  follow.id = "follow";
  follow.setAttribute("aria-pressed", "false");
  follow.title = "Read the log again every second";
  follow.onclick = toggleFollow;
  follow.hidden = Boolean(window.TAPE);
  const fit = make("button", "", "Fit");
  fit.id = "timeline-fit";
  fit.onclick = () => {
    const { tape } = store.state;
    if (tape) store.set({ range: wholeOf(tape) });
  };
  const search = make("input");
  search.id = "module-search";
  search.type = "search";
  search.placeholder = "module, such as layers.0";
  search.setAttribute("aria-label", "Show this module only");
  search.oninput = () => want(search.value);
  const tools = make("span", "tools-right", search, follow, fit);
  const head = make("h2", "", "Timeline ", make("span", "tape-name"), legend(), tools);
  const details = make("div", "details");
  details.id = "instruction";
  byId("cluster").replaceChildren(make("section", "panel", head, canvas, details), tableSections());
  const draw = timelineOn(canvas);
  store.on(["tape", "range", "selected", "wanted"], draw);
  store.on(["tape", "selected"], ({ selected }) => showInstruction(selected, want));
  store.on("tape", ({ tape }) => tape && showTables(tape));
  store.on(["tape", "wanted"], ({ tape, wanted }) => tape && showModules(tape, wanted, want));
  store.on("wanted", ({ wanted }) => {
    if (search.value !== wanted) search.value = wanted;
  });
  store.on("following", ({ following }) =>
    follow.setAttribute("aria-pressed", String(following !== undefined)),
  );
  new ResizeObserver(draw).observe(byId("cluster"));
  onScheme(draw);
}

function legend(): HTMLElement {
  const chips = [...LEGEND, ["hot path", "--hot"] as const].map(([words, name]) => {
    const chip = make("span", name === "--hot" ? "of-hot" : "", words);
    chip.style.setProperty("--chip", `var(${name})`);
    return chip;
  });
  return make("span", "legend", ...chips);
}

/** Starts or stops reading the log again every second. */
function toggleFollow() {
  const { following } = store.state;
  clearInterval(following);
  if (following) {
    store.set({ following: undefined });
    return;
  }
  const timer = setInterval(async () => {
    if (log.fetching) return;
    try {
      if (await log.fetchMore()) read(false);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      clearInterval(timer);
      store.set({ following: undefined });
      byId("instruction").replaceChildren(make("p", "muted", error.message));
    }
  }, FOLLOW);
  store.set({ following: timer });
}

/** Handles the pointer and the keys on the timeline's canvas. Returns a function that draws it. */
function timelineOn(canvas: HTMLCanvasElement): () => void {
  let boxes: Box[] = [];
  let moved = 0;
  const draw = () => {
    const { tape, range, selected, wanted } = store.state;
    const width = (canvas.parentElement?.clientWidth ?? 0) - 28;
    if (!tape || !range || width < 100) return;
    boxes = drawTimeline(canvas, tape, range, width, selected, matcher(wanted, tape.spans));
    describe(canvas, tape, range);
  };
  const timeOf = (x: number, range: Range) => timeAt(range, canvas.clientWidth, x);
  const change = (to: (range: Range, whole: Range) => Range) => {
    const { tape, range } = store.state;
    if (tape && range) store.set({ range: to(range, wholeOf(tape)) });
  };
  canvas.onwheel = (event) => {
    event.preventDefault();
    const factor = event.deltaY < 0 ? 1.4 : 1 / 1.4;
    change((range, whole) => zoomRange(range, whole, timeOf(event.offsetX, range), factor));
  };
  canvas.onpointerdown = (event) => {
    moved = 0;
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointermove = (event) => {
    if (event.buttons & 1) {
      moved += Math.abs(event.movementX);
      change((range, whole) => {
        const perPixel = timeOf(1, range) - timeOf(0, range);
        return moveRange(range, whole, -event.movementX * perPixel);
      });
    }
    canvas.title = titleOf(boxUnder(boxes, event));
  };
  canvas.onclick = (event) => {
    if (moved > 3) return;
    const box = boxUnder(boxes, event);
    const { tape, range } = store.state;
    let next = range;
    // Several in one box: zoom in on them.
    if (box && box.count > 1 && tape && range) {
      const until = timeOf(box.x + box.width, range);
      const room = Math.max(1e-5, 2 * (until - box.span.start));
      next = moveRange({ from: box.span.start - room, to: until + room }, wholeOf(tape), 0);
    }
    store.set({ selected: box?.span, range: next });
  };
  canvas.tabIndex = 0;
  canvas.onkeydown = (event) => {
    const middle = (range: Range) => (range.from + range.to) / 2;
    const step = (range: Range) => (range.to - range.from) / 5;
    const keys: Record<string, (range: Range, whole: Range) => Range> = {
      "+": (range, whole) => zoomRange(range, whole, middle(range), 1.4),
      "-": (range, whole) => zoomRange(range, whole, middle(range), 1 / 1.4),
      ArrowLeft: (range, whole) => moveRange(range, whole, -step(range)),
      ArrowRight: (range, whole) => moveRange(range, whole, step(range)),
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    change(action);
  };
  return draw;
}

function boxUnder(boxes: Box[], event: MouseEvent): Box | undefined {
  const { offsetX: x, offsetY: y } = event;
  return boxes.find(
    (box) => x >= box.x - 1 && x <= box.x + box.width + 1 && y >= box.y && y <= box.y + LANE - 10,
  );
}

function titleOf(box: Box | undefined): string {
  if (!box) return "";
  const { span, count } = box;
  const more = count > 1 ? ` and ${count - 1} more` : "";
  const took = formatSeconds(span.end - span.start);
  return [`${span.label}${more}, ${took}`, moduleOf(span), span.line].filter(Boolean).join("\n");
}

/** Describes the timeline in its heading and for screen readers. */
function describe(canvas: HTMLCanvasElement, tape: Tape, range: Range) {
  const lanes = lanesOf(tape).join(", ");
  canvas.setAttribute("aria-label", `Timeline with lanes for ${lanes}; scroll zooms, drag moves`);
  canvas.dataset.drawn = `${tape.spans.length} ${range.from.toFixed(6)} ${range.to.toFixed(6)}`;
  const notes = [log.name, plural(tape.entries.length, "line"), formatSeconds(tape.last - tape.first)];
  if (log.cut) notes.push("showing only the end of the log");
  if (tape.unread) notes.push(`${plural(tape.unread, "line")} could not be read`);
  const root = byId("cluster");
  (root.querySelector(".of-hot") as HTMLElement).hidden = !tape.bands.length;
  (root.querySelector(".tape-name") as HTMLElement).textContent = notes.join(" · ");
}
