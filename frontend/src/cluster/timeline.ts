// The timeline on a canvas: a lane for each client, the dispatcher and each worker; zoom and pan along time.

import { prepare } from "../cells";
import { colour } from "../colours";
import { EXCHANGES, type Span, type Tape } from "./tape";

/** The shown range of time, in seconds. */
export interface Range {
  from: number;
  to: number;
}

export const LANE = 34;
export const AXIS = 26;
const NAMES = 150;
const MOST_WAYS = 80;
const FAINT = 0.14;
const PRODUCTS = new Set(["matmul", "linear", "bmm", "mm", "addmm", "conv1d", "conv2d", "einsum"]);
const COLOURS = ["--load", "--store", "--dot", "--reduce", "--atomic", "--other"];

/** The lanes of a tape, from top to bottom. */
export function lanesOf(tape: Tape): string[] {
  return [...tape.clients, "dispatcher", ...tape.workers];
}

/** The range after zooming around a point in time. */
export function zoomRange(range: Range, whole: Range, at: number, factor: number): Range {
  const width = Math.min(whole.to - whole.from, Math.max(1e-6, (range.to - range.from) / factor));
  const from = at - ((at - range.from) / (range.to - range.from)) * width;
  return clampRange({ from, to: from + width }, whole);
}

/** The range moved by a number of seconds, but not beyond the tape. */
export function moveRange(range: Range, whole: Range, by: number): Range {
  return clampRange({ from: range.from + by, to: range.to + by }, whole);
}

function clampRange(range: Range, whole: Range): Range {
  const width = Math.min(range.to - range.from, whole.to - whole.from);
  const from = Math.min(Math.max(range.from, whole.from), whole.to - width);
  return { from, to: from + width };
}

/** The whole range of a tape, with a margin on both sides. */
export function wholeOf(tape: Tape): Range {
  const room = Math.max(1e-4, (tape.last - tape.first) * 0.01);
  return { from: tape.first - room, to: tape.last + room };
}

/** Round numbers for a scale between two times. */
export function ticksOf(range: Range, count: number): number[] {
  const rough = (range.to - range.from) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((times) => times * power >= rough) ?? 10);
  const ticks: number[] = [];
  for (let tick = Math.ceil(range.from / step) * step; tick <= range.to; tick += step) ticks.push(tick);
  return ticks;
}

/** A tick's time, with enough digits to distinguish it from the next. */
export function formatTick(tick: number, ticks: number[]): string {
  const step = (ticks[1] ?? tick + 1) - (ticks[0] ?? tick);
  const [size, unit] = (ticks.at(-1) ?? 1) < 1 ? [1e-3, "ms"] : [1, "s"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(Math.max(0, tick) / size).toFixed(digits)} ${unit}`;
}

/** The box of a drawn instruction, to find it under the pointer. */
export interface Box {
  x: number;
  y: number;
  width: number;
  span: Span;
  count: number;
}

/** Draws a tape, and returns its boxes. Instructions of other modules than the selected one are faint. */
export function drawTimeline(
  canvas: HTMLCanvasElement,
  tape: Tape,
  range: Range,
  width: number,
  selected: Span | undefined,
  wanted: (span: Span) => boolean,
): Box[] {
  const lanes = lanesOf(tape);
  const height = AXIS + lanes.length * LANE + 8;
  const context = prepare(canvas, width, height);
  const x = (time: number) => NAMES + ((time - range.from) / (range.to - range.from)) * (width - NAMES - 10);
  const top = (lane: string) => AXIS + lanes.indexOf(lane) * LANE;
  const styles = {
    text: colour("--text"),
    muted: colour("--muted"),
    line: colour("--line"),
    panel: colour("--panel"),
  };
  // The page's font size, which depends on the window's.
  const size = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) * 0.88;
  context.font = `${size}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  drawAxis(context, range, x, width, height, styles);
  lanes.forEach((lane, number) => {
    const y = AXIS + number * LANE;
    context.fillStyle = styles.line;
    context.fillRect(0, y + LANE - 1, width, 1);
    context.fillStyle = styles.text;
    context.fillText(shorten(lane), 4, y + LANE / 2);
  });
  context.save();
  context.beginPath();
  context.rect(NAMES - 4, 0, width - NAMES + 4, height);
  context.clip();
  const paint = new Map(COLOURS.map((name) => [name, colour(name)]));
  const bad = colour("--issue");
  const boxes: Box[] = [];
  drawBands(context, tape, range, x, top);
  drawArrivals(context, tape, range, x, top, styles.muted);
  drawWays(context, tape, range, x, top, styles.muted);
  for (const lane of tape.workers) {
    const mine = tape.spans.filter(
      (span) =>
        span.worker === lane &&
        span.end >= range.from &&
        span.start <= range.to &&
        // Instructions without computation have no width, and would hide others.
        (span.end > span.start || span.failed),
    );
    for (let at = 0; at < mine.length; ) {
      const span = mine[at] as Span;
      const left = x(span.start);
      let [next, right] = [at + 1, Math.max(left + 1, x(span.end))];
      // Instructions that are thinner than a pixel or two share one box with their neighbours.
      while (right - left < 2 && next < mine.length && x((mine[next] as Span).start) <= right + 0.5)
        right = Math.max(right, x((mine[next++] as Span).end));
      const together = mine.slice(at, next);
      const failed = together.some((one) => one.failed);
      const first = together.find(wanted);
      const y = top(lane) + 5;
      context.globalAlpha = first ? 1 : FAINT;
      context.fillStyle = failed ? bad : (paint.get(colourOf(span)) ?? styles.text);
      context.fillRect(left, y, Math.max(1, right - left - (right - left > 4 ? 1 : 0)), LANE - 11);
      if (right - left > 40) {
        context.fillStyle = styles.panel;
        context.fillText(clip(context, span.label, right - left - 8), left + 4, y + (LANE - 11) / 2);
      }
      context.globalAlpha = 1;
      boxes.push({ x: left, y, width: right - left, span: first ?? span, count: next - at });
      at = next;
    }
  }
  if (selected) drawWay(context, selected, x, top, styles.text);
  context.restore();
  return boxes;
}

/** The legend: the label and the colour of each group of instructions. */
export const LEGEND: [string, string][] = [
  ["products", "--dot"],
  ["arithmetic", "--store"],
  ["reductions", "--reduce"],
  ["data", "--load"],
  ["shapes", "--other"],
  ["between workers", "--atomic"],
];

/** The colour of an instruction. */
export function colourOf(span: Span): string {
  const kinds: Record<string, number> = {
    GetData: 0,
    CreateTensor: 0,
    BinaryOp: 1,
    UnaryOp: 1,
    TernaryOp: 1,
    ReduceOp: 3,
    ShapeOp: 5,
    FreeTensor: 5,
    Site: 5,
  };
  const known = PRODUCTS.has(span.label) ? 2 : kinds[span.command];
  // Most other ops are arithmetic.
  return COLOURS[known ?? (EXCHANGES.has(span.command) ? 4 : 1)] ?? "--other";
}

interface Styles {
  text: string;
  muted: string;
  line: string;
  panel: string;
}

function drawAxis(
  context: CanvasRenderingContext2D,
  range: Range,
  x: (time: number) => number,
  width: number,
  height: number,
  { muted, line }: Styles,
) {
  const ticks = ticksOf(range, (width - NAMES) / 110);
  for (const tick of ticks) {
    context.fillStyle = line;
    context.fillRect(x(tick), AXIS - 6, 1, height - AXIS);
    context.fillStyle = muted;
    const text = formatTick(tick, ticks);
    if (x(tick) + 4 + context.measureText(text).width < width) context.fillText(text, x(tick) + 4, AXIS / 2);
  }
}

/** Draws hot paths behind the instructions of workers; incomplete ones end in the colour of issues. */
function drawBands(
  context: CanvasRenderingContext2D,
  tape: Tape,
  range: Range,
  x: (time: number) => number,
  top: (lane: string) => number,
) {
  const [fill, edge, broken] = [colour("--hot"), colour("--text"), colour("--issue")];
  for (const band of tape.bands) {
    if (band.to < range.from || band.from > range.to) continue;
    const [left, right, y] = [x(band.from), x(band.to), top(band.worker)];
    const width = Math.max(2, right - left);
    context.fillStyle = fill;
    context.fillRect(left, y + 1, width, LANE - 3);
    context.fillStyle = edge;
    context.fillRect(left, y + LANE - 4, width, 2);
    if (band.complete) continue;
    context.fillStyle = broken;
    context.fillRect(Math.max(left, right - 3), y + 1, 3, LANE - 3);
  }
}

/** Ticks on the lanes of clients and the dispatcher: when instructions were received and sent. */
function drawArrivals(
  context: CanvasRenderingContext2D,
  tape: Tape,
  range: Range,
  x: (time: number) => number,
  top: (lane: string) => number,
  style: string,
) {
  context.fillStyle = style;
  const drawn = new Set<string>();
  for (const entry of tape.entries) {
    if (entry.time < range.from || entry.time > range.to) continue;
    if (entry.event === "LAYOUT") continue;
    const lane = entry.event === "WORKER_SEND" ? "dispatcher" : entry.role === "CLIENT" ? entry.name : "";
    const key = lane && `${lane} ${Math.round(x(entry.time))}`;
    if (!key || drawn.has(key)) continue;
    drawn.add(key);
    const tall = entry.event.endsWith("CONNECT") ? 0.8 : 0.45;
    context.fillRect(Math.round(x(entry.time)), top(lane) + (LANE * (1 - tall)) / 2, 2, LANE * tall);
  }
}

/** Thin arrows from clients to workers, one for each batch, if there are not too many. */
function drawWays(
  context: CanvasRenderingContext2D,
  tape: Tape,
  range: Range,
  x: (time: number) => number,
  top: (lane: string) => number,
  style: string,
) {
  const batches = new Map<string, Span>();
  for (const span of tape.spans) {
    if (span.received === undefined || span.end < range.from || span.received > range.to) continue;
    const key = `${span.client} ${span.received} ${span.worker} ${span.sent}`;
    if (!batches.has(key)) batches.set(key, span);
  }
  if (batches.size > MOST_WAYS) return;
  context.strokeStyle = style;
  context.lineWidth = 0.75;
  for (const span of batches.values()) {
    context.beginPath();
    context.moveTo(x(span.received ?? span.sent), top(span.client) + LANE * 0.7);
    context.lineTo(x(span.sent), top("dispatcher") + LANE / 2);
    context.lineTo(x(span.start), top(span.worker) + 5);
    context.stroke();
  }
}

/** The path of one instruction: from its client through the dispatcher to its worker. */
function drawWay(
  context: CanvasRenderingContext2D,
  span: Span,
  x: (time: number) => number,
  top: (lane: string) => number,
  style: string,
) {
  const points: [number, number][] = [];
  if (span.received !== undefined) points.push([x(span.received), top(span.client) + LANE / 2]);
  points.push([x(span.sent), top("dispatcher") + LANE / 2], [x(span.start), top(span.worker) + 5]);
  context.strokeStyle = style;
  context.lineWidth = 1.5;
  context.beginPath();
  for (const [px, py] of points) context.lineTo(px, py);
  context.stroke();
  const [px, py] = points.at(-1) as [number, number];
  context.beginPath();
  context.moveTo(px, py);
  context.lineTo(px - 4, py - 7);
  context.lineTo(px + 4, py - 7);
  context.fillStyle = style;
  context.fill();
  context.lineWidth = 2;
  context.strokeRect(px, py, Math.max(3, x(span.end) - px), LANE - 11);
}

/** The time under a point. */
export function timeAt(range: Range, width: number, x: number): number {
  return range.from + ((x - NAMES) / (width - NAMES - 10)) * (range.to - range.from);
}

function shorten(text: string): string {
  return text.length > 17 ? `${text.slice(0, 16)}…` : text;
}

function clip(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  const letters = Math.floor((room / context.measureText(text).width) * text.length) - 1;
  return letters > 2 ? `${text.slice(0, letters)}…` : "";
}
