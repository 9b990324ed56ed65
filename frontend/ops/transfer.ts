// Transfer: a copy between two on-chip memories. Transfers from and to HBM are loads and stores.

import { make } from "../src/dom";
import { formatBytes } from "../src/format";
import type { Op } from "../src/types";
import type { Renderer } from "./renderer";

interface Fields {
  source?: string;
  destination?: string;
  tensor?: string;
  shape?: number[];
  bytes?: number;
}

/** Shows a transfer as `moves tile (128×64, 32.0 KiB) from SBUF to PSUM`. */
export const transfer: Renderer = {
  colour: "--transfer",
  label: (op) => `${wayOf(op)}  ${of(op).tensor ?? ""}`,
  detail(op) {
    const { source, destination, tensor, shape, bytes } = of(op);
    return make(
      "span",
      "",
      "moves ",
      make("b", "", tensor ?? "a tile"),
      ` (${shape?.join("×") ?? ""}, ${formatBytes(bytes ?? 0)}) `,
      source === destination ? "within " : `from ${source ?? "?"} to `,
      make("b", "", destination ?? "?"),
    );
  },
};

function of(op: Op): Fields {
  return op.fields as Fields;
}

function wayOf(op: Op): string {
  return `${of(op).source ?? "?"} → ${of(op).destination ?? "?"}`;
}
