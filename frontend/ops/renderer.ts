// The interface of renderers. Each op type has a renderer in its own file; registry.ts lists them.

import type { Op } from "../src/types";

/** A mark in a tensor: the elements of an access, in a colour of style.css. */
export interface Mark {
  tensor: string;
  /** The access: of the op itself, or of one that belongs to it. */
  uuid: string;
  colour: string;
  label: string;
}

/** Shows ops of one type. */
export interface Renderer<T extends Op = Op> {
  /** The name in style.css of the colour for this type. */
  colour: string;
  /** The text next to the type in the list of ops. */
  label(op: T): string;
  /** The numbers of elements that it accessed and that were masked off, if it has elements. */
  counts?(op: T): [number, number];
  /** The marks in the tensors; `ops` are all ops of the program. */
  marks?(op: T, ops: Op[]): Mark[];
  /** The description above the tensors while the op is selected. */
  detail(op: T, ops: Op[]): globalThis.Node;
}
