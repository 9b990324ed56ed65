// Instruction: one instruction of a chip's engine. The list of ops has it only if it has no recorded ops.

import { make } from "../src/dom";
import { formatSeconds } from "../src/format";
import type { Op } from "../src/types";
import type { Renderer } from "./renderer";

interface Fields {
  name?: string;
  engine?: string;
  number?: number;
  reads?: string[];
  writes?: string[];
  picoseconds?: number;
}

/** Shows an instruction as `tensor_tensor reads a, b and writes c, about 133 ns`. */
export const instruction: Renderer = {
  colour: "--instruction",
  label: (op) => of(op).name ?? "",
  detail(op) {
    const { name, reads, writes, picoseconds } = of(op);
    const parts: (Node | string)[] = [make("b", "", name ?? "")];
    if (reads?.length) parts.push(" reads ", make("b", "", reads.join(", ")));
    if (writes?.length) parts.push(reads?.length ? " and" : "", " writes ", make("b", "", writes.join(", ")));
    if (picoseconds) parts.push(`, about ${formatSeconds(picoseconds * 1e-12)}`);
    return make("span", "", ...parts);
  },
};

function of(op: Op): Fields {
  return op.fields as Fields;
}
