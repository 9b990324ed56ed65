// Any op type that the page does not know, say of a newer server: its fields as they came.

import { make } from "../src/dom";
import type { Access, Op } from "../src/types";
import type { Renderer } from "./renderer";

/** Shows an op of any type. One with `tensor` and `elements` is marked in its tensor as accesses are. */
export const unknown: Renderer<Op & Partial<Access>> = {
  colour: "--other",
  label: (op) => op.tensor ?? "",
  touched(op) {
    if (typeof op.tensor !== "string" || !Array.isArray(op.elements)) return undefined;
    return { tensor: op.tensor, elements: op.elements, masked: op.masked ?? 0 };
  },
  detail(op) {
    const fields = Object.entries(op).filter(([name]) => !["uuid", "type", "line"].includes(name));
    const texts = fields.map(([name, value]) => `${name}: ${shorten(JSON.stringify(value))}`);
    return make("span", "", texts.join(", ") || "no details");
  },
};

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
