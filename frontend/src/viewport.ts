// Zoom and pan: the part of a matrix that a canvas shows, and the element under a point. Pure functions.

import type { Window } from "./api";
import type { Layout } from "./layout";

/** The element at the canvas's corner, and the zoom factor: 1 fits the whole matrix. */
export interface Viewport {
  left: number;
  top: number;
  zoom: number;
}

export const WHOLE: Viewport = { left: 0, top: 0, zoom: 1 };
const LARGEST_CELL = 96;

/** The canvas's size, which does not depend on the zoom. */
export function sizeOf(layout: Layout): [number, number] {
  return [layout.across * layout.cellX, layout.down * layout.cellY];
}

/** The width and height of an element, in pixels. */
export function scaleOf(layout: Layout, zoom: number): [number, number] {
  return [(layout.cellX / layout.binX) * zoom, (layout.cellY / layout.binY) * zoom];
}

/** The cells that a canvas shows, and where it draws them. */
export function windowOf(layout: Layout, view: Viewport) {
  const [scaleX, scaleY] = scaleOf(layout, view.zoom);
  const [width, height] = sizeOf(layout);
  const bin_x = Math.max(1, Math.ceil(1 / scaleX - 1e-9));
  const bin_y = Math.max(1, Math.ceil(1 / scaleY - 1e-9));
  const left = Math.floor(view.left / bin_x) * bin_x;
  const top = Math.floor(view.top / bin_y) * bin_y;
  const [cellX, cellY] = [bin_x * scaleX, bin_y * scaleY];
  const [x, y] = [(left - view.left) * scaleX, (top - view.top) * scaleY];
  const across = cells(width - x, cellX, layout.cols - left, bin_x);
  const down = cells(height - y, cellY, layout.rows - top, bin_y);
  const window: Window = { columns: Math.max(1, layout.cols), top, left, across, down, bin_x, bin_y };
  return { window, at: { x, y, cellX, cellY } };
}

function cells(room: number, cell: number, left: number, bin: number): number {
  return Math.max(1, Math.min(Math.ceil(room / cell - 1e-9), Math.ceil(left / bin)));
}

/** The view after zooming by a factor around the point under the pointer. */
export function zoomAt(layout: Layout, view: Viewport, x: number, y: number, factor: number): Viewport {
  const [unit] = scaleOf(layout, 1);
  const [, unitY] = scaleOf(layout, 1);
  const largest = Math.max(1, LARGEST_CELL / Math.min(unit, unitY));
  const zoom = Math.min(largest, Math.max(1, view.zoom * factor));
  const [beforeX, beforeY] = scaleOf(layout, view.zoom);
  const [afterX, afterY] = scaleOf(layout, zoom);
  return clamp(layout, {
    zoom,
    left: view.left + x / beforeX - x / afterX,
    top: view.top + y / beforeY - y / afterY,
  });
}

/** The view after dragging, given in pixels. */
export function pan(layout: Layout, view: Viewport, x: number, y: number): Viewport {
  const [scaleX, scaleY] = scaleOf(layout, view.zoom);
  return clamp(layout, { ...view, left: view.left - x / scaleX, top: view.top - y / scaleY });
}

/** A view with an element in its middle, zoomed in far enough to see the element. */
export function centre(layout: Layout, element: number): Viewport {
  const [width, height] = sizeOf(layout);
  const [unitX, unitY] = scaleOf(layout, 1);
  const zoom = Math.max(1, 12 / Math.min(unitX, unitY));
  const [scaleX, scaleY] = scaleOf(layout, zoom);
  const [row, col] = [Math.floor(element / layout.cols), element % layout.cols];
  return clamp(layout, {
    zoom,
    left: col + 0.5 - width / scaleX / 2,
    top: row + 0.5 - height / scaleY / 2,
  });
}

function clamp(layout: Layout, view: Viewport): Viewport {
  const [width, height] = sizeOf(layout);
  const [scaleX, scaleY] = scaleOf(layout, view.zoom);
  const furthest = (size: number, room: number) => Math.max(0, size - room);
  return {
    zoom: view.zoom,
    left: Math.min(Math.max(0, view.left), furthest(layout.cols, width / scaleX)),
    top: Math.min(Math.max(0, view.top), furthest(layout.rows, height / scaleY)),
  };
}

/** The element under a point of the canvas; undefined outside of the tensor. */
export function elementAt(layout: Layout, view: Viewport, x: number, y: number): number | undefined {
  const [scaleX, scaleY] = scaleOf(layout, view.zoom);
  const [col, row] = [Math.floor(view.left + x / scaleX), Math.floor(view.top + y / scaleY)];
  if (col < 0 || row < 0 || col >= layout.cols || row >= layout.rows) return undefined;
  const element = row * layout.cols + col;
  return element < layout.count ? element : undefined;
}
