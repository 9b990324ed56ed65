// A tensor in three dimensions, on request: the last axis across, the one before it down, all others in depth.
// A turn stops before the tensor would be seen edge-on.

import { api, type Cells } from "./api";
import { prepare } from "./cells";
import { colour, mix, type Rgb, ramp, rgb, share } from "./colours";
import type { Layout } from "./layout";
import type { Scene } from "./tensors";
import type { Tensor } from "./types";
import { sizeOf } from "./viewport";

/** How the tensor is turned: around the upright axis, and towards the eye. */
export interface Turn {
  yaw: number;
  pitch: number;
}

const [MOST_ACROSS, MOST_DEEP] = [40, 12];
const SMALLEST = 260;

/** The turn after a drag; never edge-on, never from below. */
export function turned(turn: Turn, x: number, y: number): Turn {
  const between = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value));
  return {
    yaw: between(turn.yaw + x * 0.01, -1.2, 1.2),
    pitch: between(turn.pitch + y * 0.01, 0.3, 1.3),
  };
}

/** Where a point of the solid is on the screen, and how far away. */
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

/** Fetches a tensor's slices, and draws them one behind the other. */
export async function drawSolid(
  canvas: HTMLCanvasElement,
  tensor: Tensor,
  scene: Scene,
  layout: Layout,
  turn: Turn,
) {
  // A vector is shown as its rows: a hairline in space would be no use.
  const [deep, rows, cols] = tensor.shape.length > 1 ? axesOf(tensor.shape) : [1, layout.rows, layout.cols];
  const slices = Math.min(deep, MOST_DEEP);
  const [bin_x, bin_y] = [Math.ceil(cols / MOST_ACROSS), Math.ceil(rows / MOST_ACROSS)];
  const [across, down] = [Math.ceil(cols / bin_x), Math.ceil(rows / bin_y)];
  const mark = scene.marks.find((one) => one.tensor === tensor.name);
  const layers = { op: "marks", values: "values", all: "coverage" };
  const fields = {
    layer: layers[scene.mode],
    op: scene.mode === "values" ? scene.op?.uuid : mark?.uuid,
    kind: scene.mode === "all" ? scene.kind : undefined,
  };
  const planes = await Promise.all(
    Array.from({ length: slices }, (_, slice) => {
      const top = Math.floor((slice * deep) / slices) * rows;
      const window = { columns: cols, top, left: 0, across, down, bin_x, bin_y };
      return api.tile(scene.data.launch.id, tensor.name, scene.data.program, fields, window);
    }),
  );
  const [wide, tall] = sizeOf(layout);
  const [width, height] = [Math.max(wide, SMALLEST), Math.max(tall, SMALLEST * 0.7)];
  const context = prepare(canvas, width, height);
  const of = painter(scene, mark?.colour ?? "--load", planes);
  // Slices stand far enough apart to be seen one behind the other.
  const apart = slices > 1 ? (Math.max(across, down) * 0.9) / slices : 0;
  const place = (x: number, y: number, z: number) =>
    project([x - across / 2, y - down / 2, (z - (slices - 1) / 2) * apart], turn);
  const corners = [0, across].flatMap((x) =>
    [0, down].flatMap((y) => [0, slices - 1].map((z) => place(x, y, z))),
  );
  const reach = (axis: 0 | 1) => Math.max(...corners.map((corner) => Math.abs(corner[axis])));
  const scale = Math.min(width / 2 / Math.max(1, reach(0)), height / 2 / Math.max(1, reach(1))) * 0.94;
  context.translate(width / 2, height / 2);
  const corner = (x: number, y: number, z: number) => place(x, y, z).map((at) => at * scale) as Rgb;
  context.strokeStyle = colour("--panel");
  context.lineWidth = scale > 5 ? 1 : 0.25;
  // Slices from the back to the front, each a sheet of cells with a little thickness below it.
  for (let slice = slices - 1; slice >= 0; slice--) {
    for (let cell = 0; cell < across * down; cell++) {
      const [x, y] = [cell % across, Math.floor(cell / across)];
      const shade = of(slice, cell);
      const points = [
        corner(x, y, slice),
        corner(x + 1, y, slice),
        corner(x + 1, y + 1, slice),
        corner(x, y + 1, slice),
      ];
      context.fillStyle = `rgb(${shade.join(",")})`;
      context.beginPath();
      for (const [px, py] of points) context.lineTo(px, py);
      context.closePath();
      context.fill();
      if (scale > 2) context.stroke();
    }
  }
}

function painter(scene: Scene, own: string, planes: Cells[]): (slice: number, cell: number) => Rgb {
  const plain = rgb("--cell");
  if (scene.mode === "op") {
    const palette = [plain, rgb("--tint"), rgb("--masked"), rgb(own)];
    return (slice, cell) => palette[planes[slice]?.numbers[cell] ?? 0] ?? plain;
  }
  const [stops, low, high] = [ramp(), planes[0]?.low ?? 0, planes[0]?.high ?? 0];
  const counted = scene.mode === "all";
  return (slice, cell) => {
    const number = planes[slice]?.numbers[cell];
    if (number === undefined || Number.isNaN(number) || (counted && !number)) return plain;
    return mix(stops, share(number, counted ? 0 : low, high));
  };
}
