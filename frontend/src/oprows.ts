// The rows of the list of ops, and which of them to draw: a program may have a hundred thousand ops.

import { holds, type Node } from "./iterations";

/** A loop of the tree of ops. */
export type Loop = Exclude<Node, { op: number }>;

/** A row of the list: an op, or the head of a loop with the iteration that is shown below it. */
export type Row = { depth: number } & ({ op: number } | { loop: Loop; shown: number });

/** The rows of a tree, with one iteration of each loop: the one with the selected op, or else the first. */
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

/** The number of rows that are drawn above and below those in view. */
export const MARGIN = 30;

/** The first row to draw and the end, for `count` rows of equal height in pixels. */
export function inView(count: number, row: number, top: number, height: number): [number, number] {
  const first = Math.max(0, Math.floor(top / row) - MARGIN);
  return [Math.min(first, Math.max(0, count - 1)), Math.min(count, Math.ceil((top + height) / row) + MARGIN)];
}

/** The scroll position nearest to the current one at which a row is in view. */
export function scrolledTo(at: number, row: number, top: number, height: number): number {
  return Math.min(Math.max(top, (at + 1) * row - height), at * row);
}
