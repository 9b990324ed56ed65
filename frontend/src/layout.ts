// The layout of a tensor's drawing: the cell of each element, and the element under a point. Pure functions.

/** A tensor arranged in rows and columns. The last row may be incomplete. */
export interface Matrix {
  rows: number;
  cols: number;
  count: number;
}

/** A matrix drawn as cells. If it does not fit, a cell represents `binX` by `binY` elements. */
export interface Layout extends Matrix {
  binX: number;
  binY: number;
  cellX: number;
  cellY: number;
  across: number;
  down: number;
}

const LARGEST_CELL = 22;
const SMALL_CELL = 5;
const HAIRLINE = 8;

/** The number of elements of a shape. */
export function countOf(shape: number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Rows and columns of a shape: the last axis across, all others down. A single axis wraps into rows. */
export function matrixOf(shape: number[]): Matrix {
  const count = countOf(shape);
  if (count === 0) return { rows: 0, cols: 0, count };
  const last = shape.at(-1);
  if (shape.length > 1 && last) return { rows: count / last, cols: last, count };
  // Powers of two, as blocks are: a block then begins at the same column in every row.
  const cols = count <= 16 ? count : 2 ** Math.ceil(Math.log2(Math.sqrt(2 * count)));
  return { rows: Math.ceil(count / cols), cols, count };
}

/** The largest drawing of a matrix that fits. */
export function fitMatrix(matrix: Matrix, width: number, height: number): Layout {
  const [x, y] = [fitAxis(matrix.cols, width), fitAxis(matrix.rows, height)];
  const bin = Math.max(x.bin, y.bin);
  const cell = Math.min(x.cell, y.cell);
  const shorter = Math.ceil(Math.min(matrix.rows, matrix.cols) / bin) * cell;
  // One scale for both axes keeps the proportions, unless that leaves the shorter side too thin to see.
  const [binX, binY, cellX, cellY] =
    shorter >= HAIRLINE ? [bin, bin, cell, cell] : [x.bin, y.bin, x.cell, y.cell];
  const [across, down] = [Math.ceil(matrix.cols / binX), Math.ceil(matrix.rows / binY)];
  return { ...matrix, binX, binY, cellX, cellY, across, down };
}

function fitAxis(size: number, room: number): { bin: number; cell: number } {
  const pixels = Math.max(1, Math.floor(room));
  const bin = Math.max(1, Math.ceil(size / pixels));
  const exact = pixels / Math.max(1, Math.ceil(size / bin));
  // Small cells have no lines between them, so their sizes may be quarters of a pixel.
  const cell = exact < SMALL_CELL ? Math.floor(exact * 4) / 4 : Math.floor(exact);
  return { bin, cell: Math.max(1, Math.min(LARGEST_CELL, cell)) };
}

/** Several matrices in equal columns, with the number of columns that gives the largest drawings. */
export function arrange(matrices: Matrix[], width: number, height: number, gap: number, caption: number) {
  let best = { columns: 1, area: -1, layouts: [] as Layout[] };
  for (let columns = 1; columns <= Math.min(matrices.length, 4); columns++) {
    const rows = Math.ceil(matrices.length / columns);
    const each = (width - gap * (columns - 1)) / columns;
    // With many tensors the panel scrolls, so that drawings do not become too small.
    const tall = Math.max(100, (height - gap * (rows - 1)) / rows - caption);
    const layouts = sameScale(matrices.map((matrix) => fitMatrix(matrix, each, tall)));
    const drawn = layouts.reduce((sum, at) => sum + at.across * at.cellX * at.down * at.cellY, 0);
    // Tensors below the visible part count less.
    const needed = rows * (tall + caption) + gap * (rows - 1);
    const area = drawn * Math.min(1, (height / needed) ** 2);
    if (area > best.area) best = { columns, area, layouts };
  }
  return best;
}

// Axes of equal length have equal lengths in all drawings, as in a product's matrices, except for far smaller tensors.
function sameScale(layouts: Layout[]): Layout[] {
  const smallest = Math.min(...layouts.map((layout) => Math.min(layout.cellX, layout.cellY)));
  return layouts.map((layout) => {
    const near = layout.cellX === layout.cellY && layout.cellX < 2 * smallest;
    return near ? { ...layout, cellX: smallest, cellY: smallest } : layout;
  });
}

/** The cell that shows an element, counted along the rows of the drawing. */
export function cellOf(layout: Layout, element: number): number {
  const row = Math.floor(element / layout.cols);
  const col = element % layout.cols;
  return Math.floor(row / layout.binY) * layout.across + Math.floor(col / layout.binX);
}

/** The first element of a cell; undefined beyond the end of an incomplete last row. */
export function firstElement(layout: Layout, cell: number): number | undefined {
  const row = Math.floor(cell / layout.across) * layout.binY;
  const element = row * layout.cols + (cell % layout.across) * layout.binX;
  return element < layout.count ? element : undefined;
}

/** The cell under a point of the drawing, in pixels from its corner. */
export function cellAt(layout: Layout, x: number, y: number): number | undefined {
  const [col, row] = [Math.floor(x / layout.cellX), Math.floor(y / layout.cellY)];
  const inside = col >= 0 && row >= 0 && col < layout.across && row < layout.down;
  return inside ? row * layout.across + col : undefined;
}

/** The index of an element along each axis, from its position in the flattened tensor. */
export function indexOf(shape: number[], element: number): number[] {
  const index: number[] = [];
  let left = element;
  for (const size of [...shape].reverse()) {
    index.unshift(left % size);
    left = Math.floor(left / size);
  }
  return index;
}
