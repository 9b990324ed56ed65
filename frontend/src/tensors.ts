// Every tensor argument as a grid of its elements: what the selected op touched, and what its program did.

import { rendererOf } from "../ops/registry";
import { colour, paintCells } from "./cells";
import { byId, make, plural } from "./dom";
import { arrange, cellAt, cellOf, firstElement, indexOf, type Layout, matrixOf } from "./layout";
import type { Panel } from "./panel";
import type { Op, ProgramData, Tensor } from "./types";

const [UNTOUCHED, BY_PROGRAM, BY_OP] = [0, 1, 2];
const WORDS = ["not touched by this program", "touched by another op of this program", "touched by this op"];
const [GAP, CAPTION] = [24, 28];

interface View {
  tensor: Tensor;
  canvas: HTMLCanvasElement;
  layout: Layout;
  /** What the whole program touched; the selected op's marks come on top. */
  program: Uint8Array;
  marks: Uint8Array;
}

/** The panel of the tensors. */
export function tensorsPanel(): Panel {
  const root = byId("tensors");
  let data: ProgramData | undefined;
  let views: View[] = [];
  let selected: Op | undefined;

  const build = () => {
    if (!data) return;
    const shapes = data.tensors.map((tensor) => matrixOf(tensor.shape));
    const { columns, layouts } = arrange(shapes, root.clientWidth, root.clientHeight, GAP, CAPTION);
    root.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const ops = data.visualization_data;
    views = data.tensors.map((tensor, position) => viewOf(tensor, layouts[position] as Layout, ops));
    root.replaceChildren(...views.map(figureOf));
    paint();
  };
  const paint = () => {
    const touched = selected && rendererOf(selected).touched(selected);
    const chosen = selected ? colour(rendererOf(selected).colour) : "";
    const colours = [colour("--cell"), colour("--tint"), chosen];
    for (const view of views) {
      const elements = touched?.tensor === view.tensor.name ? touched.elements : [];
      view.marks = mark(view.layout, view.program.slice(), elements, BY_OP);
      paintCells(view.canvas, view.layout, view.marks, colours);
      const what = `${plural(elements.length, "element")} touched by this op`;
      view.canvas.setAttribute("aria-label", `${view.tensor.name}: ${what}`);
    }
    // The legend wears the colour of the selected op's type; an op without elements has none to explain.
    byId("legend-op").style.setProperty("--chip", chosen);
    byId("legend-op").hidden = !touched;
  };

  new ResizeObserver(build).observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  return {
    show(fresh) {
      data = fresh;
      selected = undefined;
      build();
    },
    select(op) {
      selected = op;
      paint();
    },
  };
}

function viewOf(tensor: Tensor, layout: Layout, ops: Op[]): View {
  const program = new Uint8Array(layout.across * layout.down).fill(UNTOUCHED);
  for (const op of ops) {
    const touched = rendererOf(op).touched(op);
    if (touched?.tensor === tensor.name) mark(layout, program, touched.elements, BY_PROGRAM);
  }
  return { tensor, canvas: make("canvas"), layout, program, marks: program };
}

function mark(layout: Layout, marks: Uint8Array, elements: number[], value: number): Uint8Array {
  for (const element of elements) marks[cellOf(layout, element)] = value;
  return marks;
}

function figureOf(view: View): HTMLElement {
  const { tensor, canvas } = view;
  const shape = tensor.shape.join(" × ") || "scalar";
  canvas.dataset.tensor = tensor.name;
  canvas.setAttribute("role", "img");
  const tip = byId("tip");
  canvas.onpointermove = (event) => {
    const text = describe(view, event.offsetX, event.offsetY);
    tip.hidden = !text;
    tip.textContent = text;
    const right = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    tip.style.transform = `translate(${right}px, ${event.clientY + 18}px)`;
  };
  canvas.onpointerleave = () => {
    tip.hidden = true;
  };
  const caption = make(
    "figcaption",
    "",
    make("b", "", tensor.name),
    ` ${shape} `,
    make("span", "dtype", tensor.dtype),
  );
  return make("figure", "", caption, canvas);
}

function describe({ tensor, layout, marks }: View, x: number, y: number): string {
  const cell = cellAt(layout, x, y);
  const element = cell === undefined ? undefined : firstElement(layout, cell);
  if (cell === undefined || element === undefined) return "";
  const more = layout.binX * layout.binY > 1 ? ` and up to ${layout.binX * layout.binY - 1} next to it` : "";
  return `${tensor.name}[${indexOf(tensor.shape, element).join(", ")}]${more}: ${WORDS[marks[cell] ?? 0]}`;
}
