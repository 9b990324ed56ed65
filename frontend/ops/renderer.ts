// The interface of renderers. Each op type has one in a file of its own; registry.ts lists them.

import type { Op } from "../src/types";

/** Something to mark in a tensor: what an access touched, in a colour of style.css. */
export interface Mark {
  tensor: string;
  /** The access: of the op itself, or of one that belongs to it. */
  uuid: string;
  colour: string;
  label: string;
}

/** How ops of one type are shown. */
export interface Renderer<T extends Op = Op> {
  /** The name in style.css of the colour for this type. */
  colour: string;
  /** The text next to the type in the list of ops. */
  label(op: T): string;
  /** How many elements it touched, and how many were masked off, if it has elements. */
  counts?(op: T): [number, number];
  /** What to mark in the tensors; `ops` are all of the program's. */
  marks?(op: T, ops: Op[]): Mark[];
  /** The description above the tensors while the op is selected. */
  detail(op: T, ops: Op[]): globalThis.Node;
}
