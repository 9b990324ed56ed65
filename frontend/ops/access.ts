// What loads and stores have in common: elements of one tensor, some masked off.

import { make, plural } from "../src/dom";
import type { Access } from "../src/types";
import type { Renderer } from "./renderer";

/** A renderer for accesses, told in these words: `reads 32 elements of x`. */
export function accessRenderer(colour: string, verb: string, preposition: string): Renderer<Access> {
  return {
    colour,
    label: nameOf,
    touched: (op) => op,
    detail(op) {
      const what = `${verb} ${plural(op.elements.length, "element")} ${preposition} `;
      const masked = op.masked ? `, ${plural(op.masked, "element")} masked off` : ", no element masked off";
      const outside = op.outside ? `, ${plural(op.outside, "element")} outside the view` : "";
      return make("span", "", what, make("b", "", nameOf(op)), masked, make("b", "", outside));
    },
  };
}

// With all masked off no address is used, so the server cannot tell whose it was.
function nameOf(op: Access): string {
  return op.tensor || "no tensor";
}
