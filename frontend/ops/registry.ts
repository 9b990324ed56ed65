// Which renderer shows which op type. A new type is one more file here, and one more line below.

import type { Op } from "../src/types";
import { atomic } from "./atomic";
import { dot } from "./dot";
import { load } from "./load";
import type { Renderer } from "./renderer";
import { store } from "./store";
import { unknown } from "./unknown";

const RENDERERS = new Map<string, Renderer>([
  ["Load", load],
  ["Store", store],
  ["Atomic", atomic],
  ["Dot", dot],
]);

/** The renderer of an op's type, or the one that shows any. */
export function rendererOf(op: Op): Renderer {
  return RENDERERS.get(op.type) ?? unknown;
}
