// Zoom and pan: a point keeps its element, and a window never asks for more than the canvas shows.

import { describe, expect, it } from "vitest";
import { fitMatrix, matrixOf } from "../src/layout";
import { axesOf, project, turned, under } from "../src/solid";
import { centre, elementAt, pan, sizeOf, type Viewport, WHOLE, windowOf, zoomAt } from "../src/viewport";

const SHAPES = [[100], [40, 48], [3000, 20], [1_000_000], [4, 3, 5]].map((shape) => ({ shape }));

describe.each(SHAPES)("a tensor of shape $shape", ({ shape }) => {
  const layout = fitMatrix(matrixOf(shape), 500, 300);
  const [width, height] = sizeOf(layout);

  it("is shown whole at first, one cell for each bin of the layout", () => {
    const { window, at } = windowOf(layout, WHOLE);
    expect(window).toMatchObject({ top: 0, left: 0, bin_x: layout.binX, bin_y: layout.binY });
    expect([window.across, window.down]).toEqual([layout.across, layout.down]);
    expect(at).toMatchObject({ x: 0, y: 0, cellX: layout.cellX, cellY: layout.cellY });
  });

  it("keeps the element under the pointer while it zooms in to single elements", () => {
    let view: Viewport = WHOLE;
    const [x, y] = [width * 0.6, height * 0.4];
    for (let step = 0; step < 60; step++) {
      view = zoomAt(layout, view, x, y, 1.3);
      const before = elementAt(layout, view, x, y);
      expect(elementAt(layout, zoomAt(layout, view, x, y, 1.1), x, y)).toBe(before);
    }
    const { window, at } = windowOf(layout, view);
    expect([window.bin_x, window.bin_y]).toEqual([1, 1]);
    expect(Math.min(at.cellX, at.cellY)).toBeGreaterThanOrEqual(40);
  });

  it("never asks for more cells than there are pixels", () => {
    for (let view = WHOLE, step = 0; step < 40; step++) {
      const { window } = windowOf(layout, view);
      expect(window.across).toBeLessThanOrEqual(width + 2);
      expect(window.down).toBeLessThanOrEqual(height + 2);
      view = zoomAt(layout, view, 10, 10, 1.3);
    }
  });

  it("comes back when it is dragged and zoomed out", () => {
    const away = pan(layout, zoomAt(layout, WHOLE, 5, 5, 4), -1e6, -1e6);
    expect(zoomAt(layout, away, 0, 0, 1e-9)).toEqual(WHOLE);
  });

  it("finds an element that it was centred on", () => {
    const element = Math.floor(layout.count * 0.7);
    const view = centre(layout, element);
    const { window } = windowOf(layout, view);
    const [row, col] = [Math.floor(element / layout.cols), element % layout.cols];
    expect(row - window.top).toBeGreaterThanOrEqual(0);
    expect(row - window.top).toBeLessThanOrEqual(window.down * window.bin_y);
    expect(col - window.left).toBeLessThanOrEqual(window.across * window.bin_x);
  });
});

describe("three dimensions", () => {
  it("take all axes but the last two as depth", () => {
    expect(axesOf([2, 3, 4, 5])).toEqual([6, 4, 5]);
    expect(axesOf([4, 5])).toEqual([1, 4, 5]);
  });
  it("find the element under a point", () => {
    const sheet = { a: 2, b: 1, c: -0.5, d: 3, e: 10, f: 20 };
    const [x, y] = [10 + 2 * 4 - 0.5 * 7, 20 + 4 + 3 * 7];
    expect(under(sheet, x, y)).toEqual([expect.closeTo(4), expect.closeTo(7)]);
  });
  it("are never turned edge-on, however far one drags", () => {
    for (const [x, y] of [
      [1e6, 1e6],
      [-1e6, -1e6],
      [3, -1e6],
    ] as const) {
      const turn = turned({ yaw: 0, pitch: 0.7 }, x, y);
      const [right, down] = [project([1, 0, 0], turn), project([0, 1, 0], turn)];
      const area = Math.abs(right[0] * down[1] - right[1] * down[0]);
      expect(area).toBeGreaterThan(0.09);
    }
  });
});
