// Draws cells on a canvas: one colour each, scaled up without smoothing.

import type { Rgb } from "./colours";

const scratch = typeof document === "undefined" ? undefined : document.createElement("canvas");

/** Sets a canvas to a size in CSS pixels, at the screen's resolution. Returns its context. */
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  context.scale(ratio, ratio);
  return context;
}

/** Draws `across` by `down` cells of a size; `of` returns the colour of each, or none. */
export function drawCells(
  context: CanvasRenderingContext2D,
  across: number,
  down: number,
  at: { x: number; y: number; cellX: number; cellY: number },
  of: (cell: number) => Rgb | undefined,
  line: string,
) {
  if (!scratch || !across || !down) return;
  const pixels = new Uint8ClampedArray(4 * across * down);
  for (let cell = 0; cell < across * down; cell++) {
    const found = of(cell);
    if (!found) continue;
    pixels.set(found, 4 * cell);
    pixels[4 * cell + 3] = 255;
  }
  scratch.width = across;
  scratch.height = down;
  scratch.getContext("2d")?.putImageData(new ImageData(pixels, across, down), 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(scratch, at.x, at.y, across * at.cellX, down * at.cellY);
  // Small cells have no lines between them, which would hide their colours.
  if (Math.min(at.cellX, at.cellY) < 5) return;
  context.fillStyle = line;
  for (let i = 1; i <= across; i++) context.fillRect(at.x + i * at.cellX - 1, at.y, 1, down * at.cellY);
  for (let i = 1; i <= down; i++) context.fillRect(at.x, at.y + i * at.cellY - 1, across * at.cellX, 1);
}
