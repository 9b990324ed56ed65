// A map of all programs of a grid, coloured by a metric. The kernel's view and the profile have one each.

import { api, type Cells } from "./api";
import { drawCells, prepare } from "./cells";
import { colour, mix, onScheme, type Rgb, ramp, rgb, share } from "./colours";
import { formatBytes, formatShort } from "./format";
import { countOf, fitMatrix, indexOf, type Layout, matrixOf } from "./layout";
import type { Launch, Program } from "./types";
import { elementAt, sizeOf, WHOLE, windowOf } from "./viewport";

/** The metrics: the server's name of each, and its label. */
export const METRICS: [string, string][] = [
  ["bytes", "bytes moved"],
  ["loaded", "bytes loaded"],
  ["stored", "bytes stored"],
  ["masked", "elements masked off"],
  ["ops", "ops"],
  ["flops", "flops of dots"],
  ["issues", "issues"],
];

/** The programs of a grid in order, x fastest, as one number each. */
export function programAt(grid: Program, position: number): Program {
  return indexOf([...grid].reverse(), position).reverse() as Program;
}

/** The opposite of `programAt`. */
export function positionOf(grid: Program, [x, y, z]: Program): number {
  return x + grid[0] * (y + grid[1] * z);
}

/** The grid as rows and columns: x across, y down, and the layers of z below each other. A single axis wraps into rows. */
export function gridShape(grid: Program): number[] {
  const longer = grid.filter((size) => size > 1);
  return longer.length < 2 ? [countOf(grid)] : [grid[1] * grid[2], grid[0]];
}

/** A metric's value as text. */
export function formatMetric(metric: string, number: number): string {
  return ["bytes", "loaded", "stored"].includes(metric) ? formatBytes(number) : formatShort(number);
}

/** A map on a canvas: `show` draws a launch and marks a program; `choose` is called with a program that is clicked. */
export function programMap(
  canvas: HTMLCanvasElement,
  room: () => [number, number],
  choose: (program: Program) => void,
  legend: (low: string, high: string) => void,
) {
  let launch: Launch | undefined;
  let layout: Layout | undefined;
  let cells: Cells | undefined;
  let current: Program = [0, 0, 0];
  let metric = "bytes";
  let requests = 0;

  const paint = () => {
    if (!launch || !layout) return;
    const [width, height] = sizeOf(layout);
    const context = prepare(canvas, width, height);
    const { window, at } = windowOf(layout, WHOLE);
    const [stops, plain] = [ramp(), rgb("--cell")];
    const numbers = cells?.numbers;
    const [low, high] = [cells?.low ?? 0, cells?.high ?? 0];
    const of = (cell: number): Rgb | undefined => {
      const number = numbers?.[cell];
      if (number === undefined) return plain;
      if (Number.isNaN(number)) return undefined;
      return number === 0 && low === 0 ? plain : mix(stops, share(number, low, high));
    };
    drawCells(context, window.across, window.down, at, of, colour("--panel"));
    const position = positionOf(launch.grid, current);
    const [row, col] = [Math.floor(position / layout.cols), position % layout.cols];
    const [x, y] = [
      Math.floor(col / layout.binX) * layout.cellX,
      Math.floor(row / layout.binY) * layout.cellY,
    ];
    // One program of a million is smaller than a pixel, so its ring has a minimum size.
    const grow = Math.max(0, 7 - layout.cellX) / 2;
    const side = [Math.max(7, layout.cellX - 1), Math.max(7, layout.cellY - 1)] as const;
    // Two rings, so that one of them contrasts with the cells beneath.
    for (const [ring, inset] of [
      ["--text", 1],
      ["--panel", 3],
    ] as const) {
      context.strokeStyle = colour(ring);
      context.lineWidth = 2;
      const [left, above] = [Math.max(0, x - grow) + inset, Math.max(0, y - grow) + inset];
      context.strokeRect(left, above, Math.max(1, side[0] - 2 * inset), Math.max(1, side[1] - 2 * inset));
    }
    canvas.dataset.drawn = `${launch.id} ${cells ? metric : ""} ${current.join(",")}`;
  };
  const programUnder = (event: MouseEvent): Program | undefined => {
    const found = launch && layout && elementAt(layout, WHOLE, event.offsetX, event.offsetY);
    return launch && found !== undefined ? programAt(launch.grid, found) : undefined;
  };
  const fetchCells = async () => {
    if (!launch || !layout) return;
    const request = ++requests;
    // The map works without its colours; a server that does not answer is reported elsewhere.
    const found = await api
      .programs(launch.id, metric, windowOf(layout, WHOLE).window)
      .catch(() => undefined);
    if (request !== requests || !found) return;
    cells = found;
    legend(formatMetric(metric, found.low ?? 0), formatMetric(metric, found.high ?? 0));
    paint();
  };
  onScheme(paint);
  canvas.onmousemove = (event) => {
    const program = programUnder(event);
    canvas.title = program ? `program ${program.join(", ")}` : "";
  };
  canvas.onclick = (event) => {
    const program = programUnder(event);
    if (program) choose(program);
  };
  canvas.tabIndex = 0;
  canvas.onkeydown = (event) => {
    const steps: Record<string, Program> = {
      ArrowLeft: [-1, 0, 0],
      ArrowRight: [1, 0, 0],
      ArrowUp: [0, -1, 0],
      ArrowDown: [0, 1, 0],
      PageUp: [0, 0, -1],
      PageDown: [0, 0, 1],
    };
    const step = steps[event.key];
    if (!step || !launch) return;
    event.preventDefault();
    event.stopPropagation();
    const grid = launch.grid;
    const to = current.map((index, axis) => index + (step[axis] ?? 0)) as Program;
    if (!to.every((index, axis) => index >= 0 && index < (grid[axis] ?? 1))) return;
    // Mark it at once: the next key may be pressed before the answer arrives.
    current = to;
    paint();
    choose(to);
  };
  return {
    /** Draws a launch, and fetches its values if the launch or the metric changed. */
    show(fresh: Launch, program: Program, by: string) {
      const same = launch?.id === fresh.id && metric === by && cells;
      [launch, current, metric] = [fresh, program, by];
      const [width, height] = room();
      const next = fitMatrix(matrixOf(gridShape(fresh.grid)), width, height);
      const fits = layout && layout.across === next.across && layout.down === next.down && same;
      layout = next;
      if (!fits) cells = undefined;
      paint();
      if (!fits) fetchCells();
    },
  };
}
