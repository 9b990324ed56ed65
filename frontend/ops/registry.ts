// Which renderer shows which op type. A new type is one more file here, and one more line below.

import type { Op } from "../src/types";
import { atomic } from "./atomic";
import { dot } from "./dot";
import { instruction } from "./instruction";
import { load } from "./load";
import { combineRenderer } from "./reduce";
import type { Renderer } from "./renderer";
import { store } from "./store";
import { transfer } from "./transfer";
import { unknown } from "./unknown";

// Each renderer knows the payload of its own type; from here on they are all alike.
const RENDERERS = new Map<string, Renderer>([
  ["Load", load as Renderer],
  ["Store", store as Renderer],
  ["Atomic", atomic as Renderer],
  ["Dot", dot as Renderer],
  ["Reduce", combineRenderer("over")],
  ["Scan", combineRenderer("along")],
  ["Transfer", transfer],
  ["Instruction", instruction],
]);

/** The renderer of an op's type, or the one that shows any. */
export function rendererOf(op: Op): Renderer {
  return RENDERERS.get(op.type) ?? unknown;
}
