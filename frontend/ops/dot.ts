// Dot: a product of two tiles. The tiles are marked in the tensors of their most likely accesses, and the detail shows
// the progress of the loop along k.

import { make } from "../src/dom";
import type { Access, Dot, Op } from "../src/types";
import type { Mark, Renderer } from "./renderer";

const LARGEST = 32;

/** Shows a dot as `A(16×32) @ B(32×8) → C(16×8)`, each tile to scale. */
export const dot: Renderer<Dot> = {
  colour: "--dot",
  label: (op) => `${times(op.left)} @ ${times(op.right)}`,
  marks(op, ops) {
    const tiles: [string, string, string][] = [
      [op.left_op, "--load", "A"],
      [op.right_op, "--load", "B"],
      [op.result_op, "--store", "C"],
    ];
    return tiles.flatMap(([uuid, colour, name]): Mark[] => {
      const access = ops.find((other) => other.uuid === uuid) as Access | undefined;
      return access?.tensor ? [{ tensor: access.tensor, uuid, colour, label: `tile ${name}` }] : [];
    });
  },
  detail(op, ops) {
    const scale = LARGEST / Math.max(1, ...op.left, ...op.right, ...op.result);
    const tiles = [
      tile("A", op.left, scale),
      "@",
      tile("B", op.right, scale),
      "→",
      tile("C", op.result, scale),
    ];
    return make("span", "dot", ...tiles, alongK(op, ops));
  },
};

/** The iterations of the loop along k as a row of blocks, the completed ones filled. */
function alongK(op: Dot, ops: Op[]): HTMLElement {
  const steps = stepsOf(op, ops);
  if (steps.count < 2) return make("span");
  const blocks = Array.from({ length: Math.min(steps.count, 24) }, (_, block) =>
    make("i", (block * steps.count) / Math.min(steps.count, 24) <= steps.at ? "done" : ""),
  );
  return make(
    "span",
    "along-k",
    make("span", "blocks", ...blocks),
    `k: step ${steps.at + 1} of ${steps.count}`,
  );
}

/** The position of a dot among those at its line, within one iteration of the loops around the innermost. */
export function stepsOf(op: Op, ops: Op[]): { at: number; count: number } {
  const outer = (other: Op) => JSON.stringify(other.iterations.slice(0, -1));
  const same = ops.filter(
    (other) =>
      other.type === op.type &&
      other.path === op.path &&
      other.iterations.length === op.iterations.length &&
      outer(other) === outer(op),
  );
  return { at: same.indexOf(op), count: same.length };
}

function times(shape: number[]): string {
  return shape.join("×");
}

function tile(name: string, shape: number[], scale: number): HTMLElement {
  const box = make("i");
  box.style.width = `${Math.max(3, (shape.at(-1) ?? 1) * scale)}px`;
  box.style.height = `${Math.max(3, (shape.at(-2) ?? 1) * scale)}px`;
  return make("span", "tile", box, make("span", "", make("b", "", name), `(${times(shape)})`));
}
