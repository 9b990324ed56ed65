// Dot: a product of two tiles. It touches no tensor, so its shapes are drawn instead.

import { make } from "../src/dom";
import type { Dot } from "../src/types";
import type { Renderer } from "./renderer";

const LARGEST = 32;

/** Shows a dot as `A(16×32) @ B(32×8) → C(16×8)`, each tile to scale. */
export const dot: Renderer<Dot> = {
  colour: "--dot",
  label: (op) => `${times(op.left)} @ ${times(op.right)}`,
  touched: () => undefined,
  detail(op) {
    const scale = LARGEST / Math.max(1, ...op.left, ...op.right, ...op.result);
    const tiles = [
      tile("A", op.left, scale),
      "@",
      tile("B", op.right, scale),
      "→",
      tile("C", op.result, scale),
    ];
    return make("span", "dot", ...tiles);
  },
};

function times(shape: number[]): string {
  return shape.join("×");
}

function tile(name: string, shape: number[], scale: number): HTMLElement {
  const box = make("i");
  box.style.width = `${Math.max(3, (shape.at(-1) ?? 1) * scale)}px`;
  box.style.height = `${Math.max(3, (shape.at(-2) ?? 1) * scale)}px`;
  return make("span", "tile", box, make("span", "", make("b", "", name), `(${times(shape)})`));
}
