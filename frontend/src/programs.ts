// Choosing a program of the grid: by number, or on a map of all of them.

import { colour, paintCells } from "./cells";
import { byId } from "./dom";
import { cellAt, cellOf, countOf, firstElement, fitMatrix, indexOf, type Layout, matrixOf } from "./layout";
import type { Actions, Panel } from "./panel";
import type { Program } from "./types";

const LARGEST_MAP = 4096;

/** The programs of a grid in order, x fastest, as one number each. */
export function programAt(grid: Program, position: number): Program {
  return indexOf([...grid].reverse(), position).reverse() as Program;
}

/** The opposite of `programAt`. */
export function positionOf(grid: Program, [x, y, z]: Program): number {
  return x + grid[0] * (y + grid[1] * z);
}

/** The panel of the grid. */
export function programsPanel(actions: Actions): Panel {
  const canvas = byId<HTMLCanvasElement>("map");
  const inputs = ["x", "y", "z"].map((axis) => byId<HTMLInputElement>(`program-${axis}`));
  let grid: Program = [1, 1, 1];
  let current: Program = [0, 0, 0];
  let layout: Layout | undefined;

  const paint = () => {
    if (!layout) return;
    const marks = new Uint8Array(layout.across * layout.down);
    marks[cellOf(layout, positionOf(grid, current))] = 1;
    paintCells(canvas, layout, marks, [colour("--cell"), colour("--accent")]);
  };
  const programUnder = (event: MouseEvent): Program | undefined => {
    const cell = layout && cellAt(layout, event.offsetX, event.offsetY);
    const position = layout && cell !== undefined ? firstElement(layout, cell) : undefined;
    return position === undefined ? undefined : programAt(grid, position);
  };

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  canvas.onmousemove = (event) => {
    canvas.title = `program ${programUnder(event)?.join(", ") ?? ""}`;
  };
  canvas.onclick = (event) => {
    const program = programUnder(event);
    if (program) actions.chooseProgram(program);
  };
  for (const input of inputs) {
    input.onchange = () => {
      const wanted = inputs.map((each, axis) => {
        const number = Math.trunc(Number(each.value)) || 0;
        return Math.min(Math.max(number, 0), (grid[axis] ?? 1) - 1);
      });
      actions.chooseProgram(wanted as Program);
    };
  }
  return {
    show(data) {
      grid = data.launch.grid;
      current = data.program;
      const count = countOf(grid);
      byId("grid").textContent = `${grid.join(" × ")} = ${count.toLocaleString("en")}`;
      inputs.forEach((input, axis) => {
        input.max = String((grid[axis] ?? 1) - 1);
        input.value = String(current[axis]);
        input.disabled = grid[axis] === 1;
      });
      canvas.hidden = count > LARGEST_MAP || count < 2;
      const shape = grid[1] * grid[2] === 1 ? [count] : [grid[1] * grid[2], grid[0]];
      layout = canvas.hidden ? undefined : fitMatrix(matrixOf(shape), byId("programs").clientWidth, 150);
      paint();
    },
  };
}
