// Where elements are drawn: every element has one cell, and a point leads back to it.

import { describe, expect, it } from "vitest";
import { arrange, cellAt, cellOf, firstElement, fitMatrix, indexOf, matrixOf } from "../src/layout";

describe("matrixOf", () => {
  it.each([
    [[], 1, 1],
    [[8], 1, 8],
    [[100], 7, 16],
    [[40, 48], 40, 48],
    [[2, 3, 5], 6, 5],
    [[1, 100], 1, 100],
  ])("shows a tensor of shape %j in %i rows of %i", (shape, rows, cols) => {
    expect(matrixOf(shape)).toMatchObject({ rows, cols });
  });

  it("has no rows for a tensor without elements", () => {
    expect(matrixOf([4, 0])).toEqual({ rows: 0, cols: 0, count: 0 });
  });

  it("wraps a vector into rows that hold all of it and are not a hairline", () => {
    for (const count of [17, 1000, 4097, 1_000_000]) {
      const { rows, cols } = matrixOf([count]);
      expect(rows * cols).toBeGreaterThanOrEqual(count);
      expect((rows - 1) * cols).toBeLessThan(count);
      expect(cols / rows).toBeLessThan(10);
    }
  });
});

describe("fitMatrix", () => {
  const shapes = [[], [100], [40, 48], [3000, 20], [7, 5000], [1000, 1200], [2, 3, 5]].map((shape) => ({
    shape,
  }));

  it.each(shapes)("keeps $shape within the room", ({ shape }) => {
    const layout = fitMatrix(matrixOf(shape), 500, 200);
    expect(layout.across * layout.cellX).toBeLessThanOrEqual(500);
    expect(layout.down * layout.cellY).toBeLessThanOrEqual(200);
  });

  it.each(shapes)("finds elements of $shape under the point where they are drawn", ({ shape }) => {
    const layout = fitMatrix(matrixOf(shape), 500, 200);
    const step = Math.ceil(layout.count / 1000);
    for (let element = 0; element < layout.count; element += step) {
      const cell = cellOf(layout, element);
      const x = (cell % layout.across) * layout.cellX;
      const y = Math.floor(cell / layout.across) * layout.cellY;
      expect(cellAt(layout, x, y)).toBe(cell);
      const first = firstElement(layout, cell) as number;
      expect(Math.floor(element / layout.cols) - Math.floor(first / layout.cols)).toBeLessThan(layout.binY);
      expect((element % layout.cols) - (first % layout.cols)).toBeLessThan(layout.binX);
    }
  });

  it("draws one element as one cell while there is room", () => {
    expect(fitMatrix(matrixOf([40, 48]), 500, 200)).toMatchObject({ binX: 1, binY: 1, cellX: 5, cellY: 5 });
  });

  it("keeps the proportions of a large tensor", () => {
    expect(fitMatrix(matrixOf([1000, 1200]), 500, 200)).toMatchObject({
      binX: 5,
      binY: 5,
      across: 240,
      down: 200,
    });
  });

  it("gives up proportions rather than draw a hairline", () => {
    const layout = fitMatrix(matrixOf([100_000, 4]), 500, 200);
    expect(layout.across * layout.cellX).toBeGreaterThan(50);
  });
});

describe("arrange", () => {
  it("puts tall tensors side by side and wide ones below each other", () => {
    const [tall, wide] = [matrixOf([300, 30]), matrixOf([30, 300])];
    expect(arrange([tall, tall, tall], 600, 600, 20, 20).columns).toBe(3);
    expect(arrange([wide, wide, wide], 600, 600, 20, 20).columns).toBe(1);
  });

  it("gives tensors of like size one scale, and leaves a small one large", () => {
    const shapes = [[40, 48], [48, 56], [4]].map(matrixOf);
    const cells = arrange(shapes, 500, 500, 20, 20).layouts.map((layout) => layout.cellX);
    expect(cells[0]).toBe(cells[1]);
    expect(cells[2]).toBeGreaterThan(2 * (cells[0] as number));
  });
});

describe("points outside", () => {
  const layout = fitMatrix(matrixOf([100]), 352, 200);

  it("have no cell beyond the drawing", () => {
    expect(cellAt(layout, -1, 0)).toBeUndefined();
    expect(cellAt(layout, layout.across * layout.cellX, 0)).toBeUndefined();
    expect(cellAt(layout, 0, layout.down * layout.cellY)).toBeUndefined();
  });

  it("have no element after the end of a short last row", () => {
    expect(firstElement(layout, 99)).toBe(99);
    expect(firstElement(layout, 100)).toBeUndefined();
  });
});

describe("indexOf", () => {
  it.each([
    [[], 0, []],
    [[100], 42, [42]],
    [[40, 48], 48, [1, 0]],
    [[2, 3, 5], 29, [1, 2, 4]],
  ])("in shape %j, element %i is at %j", (shape, element, index) => {
    expect(indexOf(shape, element)).toEqual(index);
  });
});
