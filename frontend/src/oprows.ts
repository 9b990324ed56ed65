// The rows of the list of ops, and which of them are in view: a program may have a hundred thousand.

import { holds, type Node } from "./iterations";

/** A loop of the tree of ops. */
export type Loop = Exclude<Node, { op: number }>;

/** A row of the list: an op, or the head of a loop with the iteration that is shown below it. */
export type Row = { depth: number } & ({ op: number } | { loop: Loop; shown: number });

/** The rows of a tree, of each loop one iteration: that with the selected op, or else the first. */
export function rowsOf(tree: Node[], selected: number): Row[] {
  const rows: Row[] = [];
  const add = (nodes: Node[], depth: number) => {
    for (const node of nodes) {
      if ("op" in node) {
        rows.push({ depth, op: node.op });
        continue;
      }
      const found = node.iterations.findIndex((iteration) => holds(iteration.nodes, selected));
      const shown = Math.max(0, found);
      rows.push({ depth, loop: node, shown });
      add(node.iterations[shown]?.nodes ?? [], depth + 1);
    }
  };
  add(tree, 0);
  return rows;
}

/** Rows that are drawn above and below those in view. */
export const MARGIN = 30;

/** The first row to draw, and the one after the last, of so many rows of one height in pixels. */
export function inView(count: number, row: number, top: number, height: number): [number, number] {
  const first = Math.max(0, Math.floor(top / row) - MARGIN);
  return [Math.min(first, Math.max(0, count - 1)), Math.min(count, Math.ceil((top + height) / row) + MARGIN)];
}

/** Where to scroll to, so that a row is in view: as little as it takes. */
export function scrolledTo(at: number, row: number, top: number, height: number): number {
  return Math.min(Math.max(top, (at + 1) * row - height), at * row);
}
