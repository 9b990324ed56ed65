// The renderer of all other op types: shows their fields.

import { make } from "../src/dom";
import type { Renderer } from "./renderer";

/** Shows an op of any type. */
export const unknown: Renderer = {
  colour: "--other",
  label: (op) => (typeof op.fields.name === "string" ? op.fields.name : ""),
  detail(op) {
    const texts = Object.entries(op.fields).map(
      ([name, value]) => `${name}: ${shorten(JSON.stringify(value))}`,
    );
    return make("span", "", texts.join(", ") || "no details");
  },
};

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
