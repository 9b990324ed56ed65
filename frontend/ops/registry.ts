// The renderer of each op type. A new type is a file in this folder, and an import and an entry below.

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

// A renderer takes the payload of its own type, so the map must not be more precise than any op.
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

/** The renderer of an op's type, or the one for unknown types. */
export function rendererOf(op: Op): Renderer {
  return RENDERERS.get(op.type) ?? unknown;
}
