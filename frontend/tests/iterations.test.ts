// A loop's iterations fold into one, and steps go from one to the next.

import { describe, expect, it } from "vitest";
import { firstOf, holds, nextIteration, nextLine, treeOf } from "../src/iterations";
import type { Op } from "../src/types";

let count = 0;
const op = (line: number, ...iterations: [number, number][]): Op => ({
  uuid: String(count++),
  type: "Load",
  line,
  path: 0,
  iterations,
  fields: {},
});

describe("treeOf", () => {
  it("shows a loop of 34 iterations once", () => {
    const ops = Array.from({ length: 68 }, (_, n) => op(30 + (n % 2), [27, Math.floor(n / 2)]));
    const tree = treeOf([op(20), ...ops, op(40)]);
    expect(tree).toHaveLength(3);
    expect(tree[1]).toMatchObject({ line: 27 });
    const [, loop] = tree;
    if (!loop || "op" in loop) throw new Error("no loop");
    expect(loop.iterations).toHaveLength(34);
    expect(loop.iterations[33]?.nodes).toEqual([{ op: 67 }, { op: 68 }]);
    expect(firstOf(loop.iterations[1]?.nodes ?? [])).toBe(3);
    expect(holds(loop.iterations[1]?.nodes ?? [], 4)).toBe(true);
    expect(holds(loop.iterations[1]?.nodes ?? [], 5)).toBe(false);
  });

  it("nests loops, and tells the same loop entered again", () => {
    const ops = [0, 1].flatMap((outer) => [0, 1].map((inner) => op(9, [5, outer], [6, inner])));
    const [loop, ...rest] = treeOf(ops);
    expect(rest).toEqual([]);
    if (!loop || "op" in loop) throw new Error("no loop");
    expect(loop.iterations.map(({ nodes }) => nodes.length)).toEqual([1, 1]);
    expect(treeOf([op(9, [6, 0]), op(9, [6, 1]), op(9, [6, 0])])).toHaveLength(2);
  });

  it("is empty for a program that did nothing", () => {
    expect(treeOf([])).toEqual([]);
  });
});

describe("steps", () => {
  const ops = [op(1), op(2, [8, 0]), op(3, [8, 0]), op(2, [8, 1]), op(3, [8, 1]), op(4)];

  it("go to the next line", () => {
    expect([0, 1, 4, 5].map((at) => nextLine(ops, at))).toEqual([1, 2, 5, undefined]);
  });

  it("go to the first op of the next or the previous iteration", () => {
    expect([0, 1, 2, 3, 5].map((at) => nextIteration(ops, at))).toEqual([
      undefined,
      3,
      3,
      undefined,
      undefined,
    ]);
    expect([1, 3, 4].map((at) => nextIteration(ops, at, -1))).toEqual([undefined, 1, 1]);
  });
});
