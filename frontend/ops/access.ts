// The common part of the renderers of loads, stores and atomics.

import { make, plural } from "../src/dom";
import type { Access } from "../src/types";
import type { Renderer } from "./renderer";

/** A renderer for accesses, which describes them with this verb: `reads 32 elements of x`. */
export function accessRenderer(colour: string, verb: string, preposition: string): Renderer<Access> {
  return {
    colour,
    label: nameOf,
    counts: (op) => [op.touched, op.masked],
    marks: (op) =>
      op.tensor.split(", ").map((tensor) => ({ tensor, uuid: op.uuid, colour, label: "this op" })),
    detail(op) {
      const what = `${verb} ${plural(op.touched, "element")} ${preposition} `;
      const masked = op.masked ? `, ${plural(op.masked, "element")} masked off` : ", no element masked off";
      const outside = op.outside ? `, ${plural(op.outside, "element")} outside the view` : "";
      const how = op.operation ? ` (${op.operation})` : "";
      return make("span", "", what, make("b", "", nameOf(op)), how, masked, make("b", "", outside));
    },
  };
}

// If all elements are masked off, no tensor is accessed.
function nameOf(op: Access): string {
  return op.tensor || "no tensor";
}
