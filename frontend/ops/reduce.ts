// Reduce and scan: the elements along an axis are combined to one result, or to running results.

import { make } from "../src/dom";
import type { Op } from "../src/types";
import type { Renderer } from "./renderer";

interface Fields {
  combine?: string;
  axis?: number | null;
  input?: number[];
  result?: number[];
  reverse?: boolean;
}

/** Shows a reduction as `sum over axis 0: 64 → ()`, and a scan likewise. */
export function combineRenderer(verb: string): Renderer {
  return {
    colour: "--reduce",
    label: (op) => `${of(op).combine ?? ""} ${shapeOf(of(op).input)}`,
    detail(op) {
      const { combine, axis, input, result, reverse } = of(op);
      const where = axis === null || axis === undefined ? "all axes" : `axis ${axis}`;
      const to = result ? ` → ${shapeOf(result)}` : "";
      const way = reverse ? ", from the end" : "";
      return make(
        "span",
        "",
        make("b", "", combine ?? ""),
        ` ${verb} ${where}: ${shapeOf(input)}${to}${way}`,
      );
    },
  };
}

function of(op: Op): Fields {
  return op.fields as Fields;
}

function shapeOf(shape: number[] | undefined): string {
  return shape?.length ? shape.join("×") : "a scalar";
}
