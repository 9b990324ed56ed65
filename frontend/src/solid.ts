// A tensor in three dimensions, on request: sheets of its last two axes, one behind the other along the other axes.
// Elements without accesses are transparent, so that sheets further back are visible. Rotation stops before the
// tensor would be edge-on. Each sheet is one image under an affine map, so no library is needed.

import { api, type Cells } from "./api";
import { prepare } from "./cells";
import { colour, mix, type Rgb, ramp, rgb, share } from "./colours";
import type { Layout } from "./layout";
import type { Scene } from "./tensors";
import type { Tensor } from "./types";
import { sizeOf } from "./viewport";

/** The rotation of the tensor: around the vertical axis, and towards the viewer. */
export interface Turn {
  yaw: number;
  pitch: number;
}

/** A sheet's map from elements to the screen: `x = a * col + c * row + e`, `y = b * col + d * row + f`. */
export interface Sheet {
  a: number;
  b: number;
  c: number;
  d: number;
  e: number;
  f: number;
}

const [MOST_ACROSS, MOST_DEEP] = [96, 16];
const [SMALLEST, LONGEST] = [260, 3];
const [TRANSLUCENT, OPAQUE] = [70, 255];
const FIRST: Turn = { yaw: -0.6, pitch: 0.75 };

/** The rotation after a drag; never edge-on, never from below. */
export function turned(turn: Turn, x: number, y: number): Turn {
  const between = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value));
  return {
    yaw: between(turn.yaw + x * 0.01, -1.2, 1.2),
    pitch: between(turn.pitch + y * 0.01, 0.3, 1.3),
  };
}

/** The position of a point on the screen, and its depth. */
export function project([x, y, z]: Rgb, { yaw, pitch }: Turn): Rgb {
  const [turnedX, turnedZ] = [x * Math.cos(yaw) - z * Math.sin(yaw), x * Math.sin(yaw) + z * Math.cos(yaw)];
  return [
    turnedX,
    y * Math.sin(pitch) - turnedZ * Math.cos(pitch) * 0.5,
    turnedZ * Math.sin(pitch) + y * Math.cos(pitch),
  ];
}

/** The axes of a tensor as depth, rows and columns. */
export function axesOf(shape: number[]): [number, number, number] {
  const [cols, rows] = [shape.at(-1) ?? 1, shape.at(-2) ?? 1];
  return [shape.slice(0, -2).reduce((product, size) => product * size, 1), rows, cols];
}

/** The column and row of a sheet under a point of the screen, with fractions. */
export function under({ a, b, c, d, e, f }: Sheet, x: number, y: number): [number, number] {
  const size = a * d - b * c;
  return [(d * (x - e) - c * (y - f)) / size, (a * (y - f) - b * (x - e)) / size];
}

/** One tensor in three dimensions. It caches fetched data, so that rotation needs no requests. */
export class Solid {
  private turn = FIRST;
  private zoom = 1;
  private shift: [number, number] = [0, 0];
  private key = "";
  private planes: Cells[] = [];
  private sheets: Sheet[] = [];
  private scene: Scene | undefined;
  private readonly size: [number, number];
  private readonly axes: [number, number, number];
  private readonly slices: number;
  private readonly bins: [number, number];
  private readonly scratch = document.createElement("canvas");
  private readonly canvas: HTMLCanvasElement;
  private readonly tensor: Tensor;

  constructor(canvas: HTMLCanvasElement, tensor: Tensor, layout: Layout) {
    [this.canvas, this.tensor] = [canvas, tensor];
    // A vector is shown as rows, because a single line of cells is hardly visible.
    this.axes = tensor.shape.length > 1 ? axesOf(tensor.shape) : [1, layout.rows, layout.cols];
    const [deep, rows, cols] = this.axes;
    this.slices = Math.min(deep, MOST_DEEP);
    this.bins = [Math.ceil(cols / MOST_ACROSS), Math.ceil(rows / MOST_ACROSS)];
    const [wide, tall] = sizeOf(layout);
    this.size = [Math.max(wide, SMALLEST), Math.max(tall, SMALLEST * 0.75)];
  }

  /** Fetches the data of a scene, unless it is cached, and draws it. */
  async draw(scene: Scene) {
    const mark = scene.marks.find((one) => one.tensor === this.tensor.name);
    const layers = { op: "marks", values: "values", all: "coverage" };
    const fields = {
      layer: layers[scene.mode],
      op: scene.mode === "values" ? scene.op?.uuid : mark?.uuid,
      kind: scene.mode === "all" ? scene.kind : undefined,
    };
    const { launch, program } = scene.data;
    const key = JSON.stringify([launch.id, launch.records, program, fields]);
    if (key !== this.key) {
      const [, rows, cols] = this.axes;
      const [bin_x, bin_y] = this.bins;
      const [across, down] = [Math.ceil(cols / bin_x), Math.ceil(rows / bin_y)];
      const planes = await Promise.all(
        Array.from({ length: this.slices }, (_, slice) => {
          const top = this.indexOf(slice) * rows;
          const window = { columns: cols, top, left: 0, across, down, bin_x, bin_y };
          const until = (top + rows) * cols;
          return api.tile(launch.id, this.tensor.name, program, { ...fields, until }, window);
        }),
      );
      [this.planes, this.key] = [planes, key];
    }
    this.scene = scene;
    this.paint();
  }

  /** Rotates or moves the tensor by a drag, given in pixels. */
  drag(x: number, y: number, move: boolean) {
    if (move) this.shift = [this.shift[0] + x, this.shift[1] + y];
    else this.turn = turned(this.turn, x, y);
    this.paint();
  }

  /** Zooms in or out around a point of the screen. */
  zoomAt(x: number, y: number, factor: number) {
    const next = Math.min(20, Math.max(1, this.zoom * factor));
    const by = next / this.zoom;
    const [left, top] = [x - this.size[0] / 2, y - this.size[1] / 2];
    this.shift = next === 1 ? [0, 0] : [left - (left - this.shift[0]) * by, top - (top - this.shift[1]) * by];
    this.zoom = next;
    this.paint();
  }

  /** Resets rotation, zoom and position. */
  reset() {
    [this.turn, this.zoom, this.shift] = [FIRST, 1, [0, 0]];
  }

  /** The element under a point and its value: the nearest marked one, or else that of the first sheet. */
  at(x: number, y: number): { element: number; number: number } | undefined {
    const [, rows, cols] = this.axes;
    const [bin_x, bin_y] = this.bins;
    let first: { element: number; number: number } | undefined;
    for (const [slice, sheet] of this.sheets.entries()) {
      const [col, row] = under(sheet, x, y).map(Math.floor) as [number, number];
      const plane = this.planes[slice];
      if (!plane || col < 0 || row < 0 || col >= cols || row >= rows) continue;
      const number = plane.numbers[Math.floor(row / bin_y) * plane.across + Math.floor(col / bin_x)] ?? 0;
      const found = { element: (this.indexOf(slice) * rows + row) * cols + col, number };
      if (number > 0 && this.scene?.mode !== "values") return found;
      first ??= found;
    }
    return first;
  }

  private indexOf(slice: number): number {
    return Math.floor((slice * this.axes[0]) / this.slices);
  }

  /** Draws the fetched data. */
  paint() {
    const { scene, planes, slices, turn } = this;
    if (!scene || !planes.length) return;
    const [, rows, cols] = this.axes;
    const [width, height] = this.size;
    const context = prepare(this.canvas, width, height);
    // A very long sheet is drawn shorter, because its other axis would be too thin to see.
    const longest = Math.max(rows, cols);
    const [unitX, unitY] = [
      Math.max(cols, longest / LONGEST) / cols,
      Math.max(rows, longest / LONGEST) / rows,
    ];
    const [wide, tall] = [cols * unitX, rows * unitY];
    const apart = slices > 1 ? (1.1 * longest) / slices : 0;
    const projected = (x: number, y: number, z: number) =>
      project([x * unitX - wide / 2, y * unitY - tall / 2, (z - (slices - 1) / 2) * apart], turn);
    const corners = [0, cols].flatMap((x) =>
      [0, rows].flatMap((y) => [0, slices - 1].map((z) => projected(x, y, z))),
    );
    const reach = (axis: 0 | 1) => Math.max(...corners.map((corner) => Math.abs(corner[axis])));
    const fit = Math.min((width / 2 - 34) / reach(0), (height / 2 - 22) / reach(1));
    const scale = fit * this.zoom;
    const [left, top] = [width / 2 + this.shift[0], height / 2 + this.shift[1]];
    const screen = (x: number, y: number, z: number): [number, number] => {
      const [px, py] = projected(x, y, z);
      return [left + px * scale, top + py * scale];
    };
    this.sheets = planes.map((_, z) => {
      const [e, f] = screen(0, 0, z);
      const [right, down] = [screen(1, 0, z), screen(0, 1, z)];
      return { a: right[0] - e, b: right[1] - f, c: down[0] - e, d: down[1] - f, e, f };
    });
    const mark = scene.marks.find((one) => one.tensor === this.tensor.name);
    const of = painter(scene, mark?.colour ?? "--load", planes);
    context.imageSmoothingEnabled = false;
    const line = colour("--muted");
    // From back to front: no rotation changes this order.
    for (let z = slices - 1; z >= 0; z--) {
      this.drawSheet(context, this.sheets[z] as Sheet, planes[z] as Cells, (cell) => of(z, cell));
      context.strokeStyle = line;
      context.lineWidth = 0.75;
      context.stroke();
    }
    this.label(context, screen);
  }

  /** One sheet as an image, and its frame as a path for the caller to stroke. */
  private drawSheet(
    context: CanvasRenderingContext2D,
    { a, b, c, d, e, f }: Sheet,
    plane: Cells,
    of: (cell: number) => [Rgb, number],
  ) {
    const { scratch } = this;
    const [, rows, cols] = this.axes;
    [scratch.width, scratch.height] = [plane.across, plane.down];
    const pixels = new Uint8ClampedArray(4 * plane.across * plane.down);
    for (let cell = 0; cell < plane.across * plane.down; cell++) {
      const [shade, opacity] = of(cell);
      pixels.set(shade, 4 * cell);
      pixels[4 * cell + 3] = opacity;
    }
    scratch.getContext("2d")?.putImageData(new ImageData(pixels, plane.across, plane.down), 0, 0);
    context.save();
    context.transform(a, b, c, d, e, f);
    context.beginPath();
    context.rect(0, 0, cols, rows);
    context.clip();
    context.drawImage(scratch, 0, 0, plane.across * this.bins[0], plane.down * this.bins[1]);
    context.restore();
  }

  /** Labels each axis with its number and length. */
  private label(
    context: CanvasRenderingContext2D,
    screen: (x: number, y: number, z: number) => [number, number],
  ) {
    const [deep, rows, cols] = this.axes;
    const rank = this.tensor.shape.length;
    if (rank < 2) return;
    context.fillStyle = colour("--muted");
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "center";
    const write = (text: string, [x, y]: [number, number], dx: number, dy: number) => {
      context.save();
      context.translate(x + dx, y + dy);
      // Labels beside a sheet are vertical, which needs less width.
      if (dx) context.rotate(-Math.PI / 2);
      context.fillText(text, 0, 0);
      context.restore();
    };
    write(`axis ${rank - 1}: ${cols}`, screen(cols / 2, rows, 0), 0, 12);
    const nearer = this.turn.yaw <= 0 ? 0 : cols;
    write(`axis ${rank - 2}: ${rows}`, screen(nearer, rows / 2, 0), nearer ? 11 : -11, 0);
    if (rank < 3) return;
    const over = rank === 3 ? "axis 0" : `axes 0–${rank - 3}`;
    const some = this.slices < deep ? `, ${this.slices} shown` : "";
    const far = this.turn.yaw <= 0 ? cols : 0;
    write(`${over}: ${deep}${some}`, screen(far / 2 + cols / 4, 0, this.slices - 1), 0, -9);
  }
}

/** The colour and the opacity of each cell of each sheet: cells without a mark are translucent. */
function painter(scene: Scene, own: string, planes: Cells[]): (slice: number, cell: number) => [Rgb, number] {
  const plain: [Rgb, number] = [rgb("--cell"), TRANSLUCENT];
  if (scene.mode === "op") {
    const palette: [Rgb, number][] = [plain, ...["--tint", "--masked", own].map(opaque)];
    return (slice, cell) => palette[planes[slice]?.numbers[cell] ?? 0] ?? plain;
  }
  const [stops, low, high] = [ramp(), planes[0]?.low ?? 0, planes[0]?.high ?? 0];
  const counted = scene.mode === "all";
  return (slice, cell) => {
    const number = planes[slice]?.numbers[cell];
    if (number === undefined || Number.isNaN(number) || (counted && !number)) return plain;
    return [mix(stops, share(number, counted ? 0 : low, high)), OPAQUE];
  };
}

function opaque(name: string): [Rgb, number] {
  return [rgb(name), OPAQUE];
}
