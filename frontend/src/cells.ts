// Draws a layout's cells on a canvas.

import { firstElement, type Layout } from "./layout";

/** The colour of a name in style.css, as it is now: light or dark. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Paints each cell in the colour that its mark picks from `colours`. */
export function paintCells(canvas: HTMLCanvasElement, layout: Layout, marks: Uint8Array, colours: string[]) {
  const [width, height] = [layout.across * layout.cellX, layout.down * layout.cellY];
  canvas.width = Math.max(1, Math.round(width * devicePixelRatio));
  canvas.height = Math.max(1, Math.round(height * devicePixelRatio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(devicePixelRatio, devicePixelRatio);
  // Small cells touch: lines between them would be all that one sees. Equal neighbours are then one rectangle.
  const line = Math.min(layout.cellX, layout.cellY) >= 4 ? 1 : 0;
  for (let cell = 0, next = 0; cell < marks.length; cell = next) {
    next = cell + 1;
    if (firstElement(layout, cell) === undefined) continue;
    while (
      !line &&
      next % layout.across &&
      marks[next] === marks[cell] &&
      firstElement(layout, next) !== undefined
    )
      next++;
    context.fillStyle = colours[marks[cell] ?? 0] ?? "";
    const [x, y] = [(cell % layout.across) * layout.cellX, Math.floor(cell / layout.across) * layout.cellY];
    context.fillRect(x, y, (next - cell) * layout.cellX - line, layout.cellY - line);
  }
}
