// Ops of a program as a tree: a loop's ops are shown for one iteration, which can be chosen.

import type { Op } from "./types";

/** An op by its number, or a loop with the ops of each of its iterations. */
export type Node = { op: number } | { line: number; iterations: { index: number; nodes: Node[] }[] };

/** The tree of ops in execution order. */
export function treeOf(ops: Op[]): Node[] {
  return grow(ops, 0, ops.length, 0);
}

function grow(ops: Op[], first: number, last: number, depth: number): Node[] {
  const nodes: Node[] = [];
  let at = first;
  while (at < last) {
    const around = ops[at]?.iterations[depth];
    if (!around) {
      nodes.push({ op: at++ });
      continue;
    }
    const [line] = around;
    const iterations: { index: number; nodes: Node[] }[] = [];
    // An iteration number that does not increase means that the loop was entered again.
    for (let before = -1; at < last; ) {
      const next = ops[at]?.iterations[depth];
      if (!next || next[0] !== line || next[1] <= before) break;
      const begin = at;
      const index = next[1];
      while (at < last) {
        const same = ops[at]?.iterations[depth];
        if (!same || same[0] !== line || same[1] !== index) break;
        at++;
      }
      iterations.push({ index, nodes: grow(ops, begin, at, depth + 1) });
      before = index;
    }
    nodes.push({ line, iterations });
  }
  return nodes;
}

/** Whether an op is somewhere below these nodes. */
export function holds(nodes: Node[], number: number): boolean {
  return firstOf(nodes) <= number && number <= lastOf(nodes);
}

/** The number of the first op below these nodes. */
export function firstOf(nodes: Node[]): number {
  const [node] = nodes;
  if (!node) return Number.POSITIVE_INFINITY;
  return "op" in node ? node.op : firstOf(node.iterations[0]?.nodes ?? []);
}

function lastOf(nodes: Node[]): number {
  const node = nodes.at(-1);
  if (!node) return Number.NEGATIVE_INFINITY;
  return "op" in node ? node.op : lastOf(node.iterations.at(-1)?.nodes ?? []);
}

/** The next op, by number, on another line; undefined after the last. */
export function nextLine(ops: Op[], from: number): number | undefined {
  const found = ops.findIndex((op, number) => number > from && op.line !== ops[from]?.line);
  return found < 0 ? undefined : found;
}

/** The first op of the next (or, by -1, of the previous) iteration of the innermost loop around an op. */
export function nextIteration(ops: Op[], from: number, by: 1 | -1 = 1): number | undefined {
  const mine = ops[from]?.iterations ?? [];
  const depth = mine.length - 1;
  if (depth < 0) return undefined;
  const same = (op: Op | undefined) =>
    op?.iterations.length !== undefined &&
    op.iterations.length > depth &&
    mine.every(([line, index], level) => {
      const [theirs, at] = op.iterations[level] ?? [];
      return theirs === line && (level === depth || at === index);
    });
  const indexOf = (op: Op | undefined) => op?.iterations[depth]?.[1] ?? -1;
  let at = from;
  while (same(ops[at + by]) && indexOf(ops[at + by]) === indexOf(ops[from])) at += by;
  if (!same(ops[at + by])) return undefined;
  at += by;
  // Backwards, this is the iteration's last op: continue to its first.
  while (by < 0 && same(ops[at - 1]) && indexOf(ops[at - 1]) === indexOf(ops[at])) at--;
  return at;
}
