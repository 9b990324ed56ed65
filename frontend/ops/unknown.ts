// Any op type that has no renderer, such as one of a newer server: its fields as they are.

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
