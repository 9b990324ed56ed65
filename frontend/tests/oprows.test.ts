// The list of ops: its rows, and which of them are drawn.

import { describe, expect, it } from "vitest";
import { treeOf } from "../src/iterations";
import { inView, MARGIN, rowsOf, scrolledTo } from "../src/oprows";
import type { Op } from "../src/types";

const ops = (...iterations: [number, number][][]) => iterations.map((each) => ({ iterations: each }) as Op);

describe("rows", () => {
  it("are ops, and of a loop its head and one iteration", () => {
    const tree = treeOf(ops([], [[7, 0]], [[7, 0]], [[7, 1]], [[7, 1]], []));
    const texts = (selected: number) =>
      rowsOf(tree, selected).map((row) => ("op" in row ? row.op : `loop, iteration ${row.shown}`));
    expect(texts(0)).toEqual([0, "loop, iteration 0", 1, 2, 5]);
    expect(texts(4)).toEqual([0, "loop, iteration 1", 3, 4, 5]);
    expect(rowsOf(tree, 4).map(({ depth }) => depth)).toEqual([0, 0, 1, 1, 0]);
  });
});

describe("of many rows", () => {
  it("those in view are drawn, and some around them", () => {
    expect(inView(100_000, 20, 0, 400)).toEqual([0, 20 + MARGIN]);
    expect(inView(100_000, 20, 20_000, 400)).toEqual([1000 - MARGIN, 1020 + MARGIN]);
    expect(inView(100_000, 20, 100_000 * 20 - 400, 400)).toEqual([99_980 - MARGIN, 100_000]);
    expect(inView(3, 20, 0, 400)).toEqual([0, 3]);
    expect(inView(3, 20, 5000, 400)).toEqual([2, 3]);
  });

  it("one is scrolled into view, as little as it takes", () => {
    expect(scrolledTo(5, 20, 0, 400)).toBe(0);
    expect(scrolledTo(500, 20, 0, 400)).toBe(501 * 20 - 400);
    expect(scrolledTo(5, 20, 9000, 400)).toBe(100);
  });
});
