// What the page asks of an op type. Each type answers in a file of its own; registry.ts lists them.

import type { Op } from "../src/types";

/** The elements of one tensor that an op touched, and how many of its elements were masked off. */
export interface Touched {
  tensor: string;
  elements: number[];
  masked: number;
}

/** How ops of one type are shown. */
export interface Renderer<T extends Op = Op> {
  /** The name in style.css of the colour for this type. */
  colour: string;
  /** What the list of ops says next to the type. */
  label(op: T): string;
  /** What to mark in the tensors, if the op has elements. */
  touched(op: T): Touched | undefined;
  /** What stands above the tensors while the op is selected. */
  detail(op: T): Node;
}
