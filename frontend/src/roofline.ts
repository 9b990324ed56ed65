// The roofline: the upper bound of a kernel's flops per second on a device, by its flops per byte.

import { svg } from "./dom";
import { formatShort } from "./format";

const [WIDTH, HEIGHT] = [460, 270];
const EDGE = { left: 58, right: 16, top: 16, bottom: 44 };

/** A kernel on a device: its flops per byte, and the device's flops and bytes per second. */
export interface Roof {
  intensity: number;
  attainable: number;
  flops: number;
  bandwidth: number;
}

/** Maps the drawing's range, in powers of ten, to pixels. */
export function axisOf(low: number, high: number, from: number, to: number): (value: number) => number {
  const [first, last] = [Math.log10(low), Math.log10(high)];
  return (value) => from + ((Math.log10(value) - first) / (last - first)) * (to - from);
}

/** The limits of both axes: powers of ten around the ridge and the kernel. */
export function spanOf({ intensity, attainable, flops, bandwidth }: Roof) {
  const ridge = flops / bandwidth;
  const power = (value: number, by: number) => 10 ** (Math.floor(Math.log10(value)) + by);
  const left = Math.min(power(ridge, -2), power(Math.max(intensity, 1e-3), -1));
  const right = Math.max(power(ridge, 2), power(Math.max(intensity, 1e-3), 2));
  const bottom = Math.min(left * bandwidth, Math.max(attainable, 1) / 3);
  return { left, right, bottom: power(bottom, 0), top: power(flops, 1) };
}

/** The drawing. */
export function roofline(roof: Roof): SVGElement {
  const span = spanOf(roof);
  const x = axisOf(span.left, span.right, EDGE.left, WIDTH - EDGE.right);
  const y = axisOf(span.bottom, span.top, HEIGHT - EDGE.bottom, EDGE.top);
  const ridge = roof.flops / roof.bandwidth;
  const parts: SVGElement[] = [];
  for (let at = span.left; at <= span.right * 1.01; at *= 10) {
    parts.push(svg("line", { x1: x(at), x2: x(at), y1: EDGE.top, y2: HEIGHT - EDGE.bottom, class: "grid" }));
    parts.push(
      svg("text", { x: x(at), y: HEIGHT - EDGE.bottom + 16, "text-anchor": "middle" }, formatShort(at)),
    );
  }
  const decades = Math.round(Math.log10(span.top / span.bottom));
  const step = Math.ceil(decades / 6);
  for (let power = 0; power <= decades; power += step) {
    const at = span.bottom * 10 ** power;
    parts.push(svg("line", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(at), y2: y(at), class: "grid" }));
    parts.push(svg("text", { x: EDGE.left - 6, y: y(at) + 4, "text-anchor": "end" }, formatShort(at)));
  }
  const floor = Math.max(span.left, span.bottom / roof.bandwidth);
  const line = `M${x(floor)},${y(floor * roof.bandwidth)} L${x(ridge)},${y(roof.flops)} L${x(span.right)},${y(roof.flops)}`;
  parts.push(svg("path", { d: line, class: "roof" }));
  if (roof.intensity > 0 && roof.attainable > 0) {
    const [px, py] = [x(Math.max(roof.intensity, span.left)), y(roof.attainable)];
    // The label goes to the right of a point on the slope, and below one on the flat part.
    const [flat, last] = [roof.intensity >= ridge, px > WIDTH - 70];
    const label = {
      x: px + (flat ? 0 : 10),
      y: py + 22,
      "text-anchor": last ? "end" : flat ? "middle" : "start",
      class: "here",
    };
    parts.push(svg("circle", { cx: px, cy: py, r: 6, class: "dot" }), svg("text", label, "this kernel"));
  }
  const middle = EDGE.left + (WIDTH - EDGE.left - EDGE.right) / 2;
  parts.push(svg("text", { x: middle, y: HEIGHT - 8, "text-anchor": "middle" }, "flops per byte"));
  const up = { transform: `translate(12 ${HEIGHT / 2}) rotate(-90)`, "text-anchor": "middle" };
  parts.push(svg("text", up, "flops per second"));
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "roofline", role: "img", "aria-label": "roofline" },
    ...parts,
  );
}
