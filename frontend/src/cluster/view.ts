// The cluster's view: GT's tape as a timeline, with an instruction's details, where tensors live, hot paths and
// each client's share. From the server's log, which may still grow, or from a log inside the page itself.

import { ApiError, api } from "../api";
import { onScheme } from "../colours";
import { byId, empty, make, plural, table } from "../dom";
import { formatBytes, formatSeconds, formatShare } from "../format";
import { collectivesOf, hotRunsOf } from "./summary";
import { endOf, type Held, readTape, type Span, shardsOf, type Tape } from "./tape";
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
    /** A log that came with the page: `python -m gt.timeline` puts it there. */
    TAPE?: { name: string; text: string };
  }
}

const MOST_ROWS = 200;
const FOLLOW = 1000;
const MOST_TEXT = 8 << 20;

let text = "";
let name = "";
let end: number | undefined;
let cut = false;
let live = false;
let tape: Tape | undefined;
let range: Range | undefined;
let selected: Span | undefined;
let boxes: Box[] = [];
let following: ReturnType<typeof setInterval> | undefined;
let built = false;
let asking: Promise<boolean> | undefined;

/** Shows the tape; without one, what to do. */
export async function showCluster(hasTape: boolean) {
  if (window.TAPE) {
    ({ name, text } = window.TAPE);
  } else if (hasTape) {
    await fetchMore();
  } else {
    const next =
      "Run a GT program with `GT_INSTRUCTION_LOG=gt.log`, then open it: triton-visualizer --tape gt.log";
    byId("cluster").replaceChildren(
      empty("No instruction log was given, so there is no cluster to show.", next),
    );
    return;
  }
  if (!built) build();
  built = true;
  read(true);
  // A running server is watched until the reader says otherwise.
  const follow = byId("follow");
  if (live && !following) toggleFollow(follow);
}

/** Fetches what was written since; true if there was something. Who asks meanwhile waits for the same answer. */
function fetchMore(): Promise<boolean> {
  // Two answers from the same place on would be the same lines twice.
  asking ??= fetchSlice().finally(() => {
    asking = undefined;
  });
  return asking;
}

async function fetchSlice(): Promise<boolean> {
  const slice = await api.tape(end);
  // A log that became shorter is a new one.
  if (end !== undefined && slice.size < end) {
    [text, end] = ["", undefined];
    return fetchSlice();
  }
  cut ||= end === undefined && slice.start > 0;
  cut ||= text.length + slice.text.length > MOST_TEXT;
  text = endOf(text + slice.text, MOST_TEXT);
  [name, end, live] = [slice.name, slice.end, slice.live ?? false];
  return slice.text !== "";
}

function read(all: boolean) {
  const followed = range && tape && range.to >= wholeOf(tape).to - 1e-9;
  tape = readTape(text);
  if (all || !range || followed) range = wholeOf(tape);
  selected = undefined;
  draw();
  tables();
}

function build() {
  const canvas = make("canvas");
  canvas.id = "timeline";
  canvas.setAttribute("role", "img");
  const follow = make("button", "", "Follow");
  follow.id = "follow";
  follow.setAttribute("aria-pressed", "false");
  follow.title = "Read the log again every second";
  follow.onclick = () => toggleFollow(follow);
  follow.hidden = Boolean(window.TAPE);
  const whole = make("button", "", "Fit");
  whole.id = "timeline-fit";
  whole.onclick = () => {
    if (tape) range = wholeOf(tape);
    draw();
  };
  const head = make(
    "h2",
    "",
    "Timeline ",
    make("span", "tape-name"),
    legend(),
    make("span", "tools-right", follow, whole),
  );
  const details = make("div", "details");
  details.id = "instruction";
  byId("cluster").replaceChildren(
    make("section", "panel", head, canvas, details),
    make(
      "div",
      "parts in-two",
      make("div", "column", part("shares"), part("collectives")),
      part("hot"),
      part("held"),
    ),
  );
  listen(canvas);
  new ResizeObserver(draw).observe(byId("cluster"));
  onScheme(draw);
}

function part(id: string): HTMLElement {
  const section = make("section", "panel");
  section.id = `cluster-${id}`;
  return section;
}

function toggleFollow(button: HTMLElement) {
  const on = !following;
  button.setAttribute("aria-pressed", String(on));
  clearInterval(following);
  following = undefined;
  if (!on) return;
  following = setInterval(async () => {
    if (asking) return;
    try {
      if (await fetchMore()) read(false);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      clearInterval(following);
      following = undefined;
      button.setAttribute("aria-pressed", "false");
      byId("instruction").replaceChildren(make("p", "muted", error.message));
    }
  }, FOLLOW);
}

function draw() {
  const canvas = document.getElementById("timeline") as HTMLCanvasElement | null;
  const width = (canvas?.parentElement?.clientWidth ?? 0) - 28;
  if (!canvas || !tape || !range || width < 100) return;
  boxes = drawTimeline(canvas, tape, range, width, selected);
  (byId("cluster").querySelector(".of-hot") as HTMLElement).hidden = !tape.bands.length;
  const lanes = lanesOf(tape).join(", ");
  canvas.setAttribute("aria-label", `Timeline with lanes for ${lanes}; scroll zooms, drag moves`);
  canvas.dataset.drawn = `${tape.spans.length} ${range.from.toFixed(6)} ${range.to.toFixed(6)}`;
  const notes = [name, `${plural(tape.entries.length, "line")}`, formatSeconds(tape.last - tape.first)];
  if (cut) notes.push("only its end: the log is too long to show at once");
  if (tape.unread) notes.push(`${plural(tape.unread, "line")} could not be read`);
  (byId("cluster").querySelector(".tape-name") as HTMLElement).textContent = notes.join(" · ");
  describe();
}

function listen(canvas: HTMLCanvasElement) {
  let moved = 0;
  const whole = () => wholeOf(tape as Tape);
  const width = () => canvas.clientWidth;
  canvas.onwheel = (event) => {
    if (!range) return;
    event.preventDefault();
    range = zoomRange(
      range,
      whole(),
      timeAt(range, width(), event.offsetX),
      event.deltaY < 0 ? 1.4 : 1 / 1.4,
    );
    draw();
  };
  canvas.onpointerdown = (event) => {
    moved = 0;
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointermove = (event) => {
    if (event.buttons & 1 && range) {
      moved += Math.abs(event.movementX);
      const perPixel = timeAt(range, width(), 1) - timeAt(range, width(), 0);
      range = moveRange(range, whole(), -event.movementX * perPixel);
      draw();
    }
    const box = under(event);
    const more = box && box.count > 1 ? ` and ${box.count - 1} more` : "";
    canvas.title = box ? `${box.span.label}${more}, ${formatSeconds(box.span.end - box.span.start)}` : "";
  };
  canvas.onclick = (event) => {
    if (moved > 3) return;
    const box = under(event);
    selected = box?.span;
    // Several in one box: zoom in on them.
    if (box && box.count > 1 && range) {
      const until = timeAt(range, width(), box.x + box.width);
      const room = Math.max(1e-5, 2 * (until - box.span.start));
      range = moveRange({ from: box.span.start - room, to: until + room }, whole(), 0);
    }
    draw();
  };
  canvas.tabIndex = 0;
  canvas.onkeydown = (event) => {
    if (!range) return;
    const middle = (range.from + range.to) / 2;
    const by = (range.to - range.from) / 5;
    const keys: Record<string, () => Range> = {
      "+": () => zoomRange(range as Range, whole(), middle, 1.4),
      "-": () => zoomRange(range as Range, whole(), middle, 1 / 1.4),
      ArrowLeft: () => moveRange(range as Range, whole(), -by),
      ArrowRight: () => moveRange(range as Range, whole(), by),
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    range = action();
    draw();
  };
}

function under(event: MouseEvent): Box | undefined {
  const { offsetX: x, offsetY: y } = event;
  return boxes.find(
    (box) => x >= box.x - 1 && x <= box.x + box.width + 1 && y >= box.y && y <= box.y + LANE - 10,
  );
}

/** The selected instruction in words. */
function describe() {
  const root = byId("instruction");
  if (!selected) {
    root.replaceChildren(
      make("p", "muted", "Click an instruction to see where it came from and what it did."),
    );
    return;
  }
  const {
    command,
    label,
    client,
    worker,
    received,
    sent,
    start,
    end: done,
    bytes,
    details,
    failed,
  } = selected;
  const facts: [string, string][] = [
    ["from", received === undefined ? "the dispatcher" : client],
    ["on", worker],
    ["waited", formatSeconds(start - (received ?? sent))],
    ["took about", formatSeconds(done - start)],
    ["size", formatBytes(bytes)],
  ];
  const list = make("dl", "facts wide");
  for (const [title, fact] of facts) list.append(make("dt", "", title), make("dd", "", fact));
  const launch = /(?:^| )launch=(\d+)/.exec(details)?.[1];
  const parts: Node[] = [
    make("div", "card-head", make("b", "", label), make("span", "muted", command)),
    list,
  ];
  parts.push(make("pre", "", details));
  if (launch) {
    const link = make("a", "", "the kernel that it launched");
    link.href = `#launch=${launch}`;
    parts.push(link);
  }
  if (failed) parts.push(make("p", "kind bad", failed));
  root.replaceChildren(...parts);
}

function tables() {
  if (!tape) return;
  const all = Math.max(
    1e-12,
    tape.shares.reduce((sum, share) => sum + share.seconds, 0),
  );
  const rows = tape.shares.map((share) => [
    share.client,
    share.instructions.toLocaleString("en"),
    formatBytes(share.bytes),
    formatSeconds(share.seconds),
    formatShare(share.seconds / all),
  ]);
  fill(
    "shares",
    "Clients",
    "their share of the workers' time",
    table(["client", "instructions", "sent", "time", "share"], rows),
  );
  fill("hot", "Hot paths", "sequences that repeat", ...hotPart(tape));
  const moves = collectivesOf(tape.spans).map((kind) => [
    kind.command,
    `${kind.times.toLocaleString("en")}×`,
    formatSeconds(kind.seconds),
    make("span", "ops-chain", kind.ways.slice(0, 2).join("; ") + (kind.ways.length > 2 ? "; …" : "")),
  ]);
  const exchanges = moves.length
    ? table(["instruction", "times", "time", "from → to"], moves)
    : make("p", "muted", "Nothing went from worker to worker.");
  fill("collectives", "Between workers", "what moved or was combined", exchanges);
  const alive = tape.held.filter((held) => !held.freed);
  const shown = (alive.length ? alive : tape.held).slice(-MOST_ROWS);
  const note = alive.length
    ? `${alive.length.toLocaleString("en")} alive at the end, ${tape.held.length.toLocaleString("en")} in all`
    : `all ${tape.held.length.toLocaleString("en")} were freed; the last ones`;
  const lives = shown.map((held) => [
    held.copyOf ? make("span", "muted", `copy of ${held.copyOf}`) : held.tensor,
    held.shape || "–",
    held.op,
    make("span", "homes", ...homesOf(held)),
    layoutOf(held),
  ]);
  fill("held", "Tensors", note, table(["tensor", "shape", "made by", "lives on", "layout"], lives));
}

/** The paths that workers ran as one, if they say so, and what repeats in the clients' streams. */
function hotPart(of: Tape): Node[] {
  const runs = hotRunsOf(of.bands).map((run) => [
    make("code", "", run.sequence.length > 12 ? `${run.sequence.slice(0, 11)}…` : run.sequence),
    run.workers.join(", "),
    `${run.times}×`,
    run.broken ? `${run.broken}×` : "–",
    formatSeconds(run.seconds),
  ]);
  const repeats = of.hot.map((path) => [
    path.client,
    `${path.times}×`,
    plural(path.length, "instruction"),
    make("span", "ops-chain", path.ops.slice(0, 12).join(" → ") + (path.length > 12 ? " → …" : "")),
  ]);
  const parts: Node[] = [];
  if (runs.length) parts.push(table(["run as one", "on", "times", "broken off", "time"], runs));
  if (repeats.length) parts.push(table(["client", "repeated", "length", "ops"], repeats));
  return parts.length ? parts : [make("p", "muted", "Nothing repeats at least three times.")];
}

/** Where a tensor is: each worker, with the part that it has. */
function homesOf(held: Held): HTMLElement[] {
  const shards = shardsOf(held);
  return held.workers.map((worker, number) => {
    const badge = make("span", "badge", worker);
    if (shards[number]) badge.append(make("code", "", ` ${shards[number]}`));
    return badge;
  });
}

function legend(): HTMLElement {
  const chips = [...LEGEND, ["hot path", "--hot"] as const].map(([words, name]) => {
    const chip = make("span", name === "--hot" ? "of-hot" : "", words);
    chip.style.setProperty("--chip", `var(${name})`);
    return chip;
  });
  return make("span", "legend", ...chips);
}

/** How a tensor lies, as far as the tape says. */
export function layoutOf(held: Held): string {
  if (held.layout) return held.layout;
  return held.workers.length > 1 ? `over ${held.workers.length} workers` : "whole";
}

function fill(id: string, title: string, note: string, ...parts: Node[]) {
  const scroll = make("div", "scroll limited", ...parts);
  byId(`cluster-${id}`).replaceChildren(make("h2", "", `${title} `, make("span", "", note)), scroll);
}
