// One tensor on its canvas: fetches its cells, draws them, zooms, pans and describes the element under the pointer.

import { api, type Cells } from "./api";
import { drawCells, prepare } from "./cells";
import { colour, mix, type Rgb, ramp, rgb, share } from "./colours";
import { byId, make } from "./dom";
import { formatNumber, formatShort } from "./format";
import { indexOf, type Layout } from "./layout";
import { Solid } from "./solid";
import type { Scene } from "./tensors";
import type { Tensor } from "./types";
import { centre, elementAt, pan, sizeOf, type Viewport, WHOLE, windowOf, zoomAt } from "./viewport";

const BY_OP = 3;
const WORDS = [
  "not accessed by this program",
  "accessed by another op of this program",
  "masked off in this op",
  "accessed by this op",
];
const TEXT_CELL = 44;
const STILL = 120;

/** The figure of a tensor. */
export class TensorView {
  readonly figure: HTMLElement;
  private readonly canvas = make("canvas");
  private readonly range = make("span", "range");
  private view: Viewport = WHOLE;
  private readonly solid: Solid;
  private scene: Scene | undefined;
  private cells: Cells | undefined;
  private marks: Cells | undefined;
  private requests = 0;
  private hovering = 0;
  readonly tensor: Tensor;
  private readonly layout: Layout;

  constructor(tensor: Tensor, layout: Layout, choose: (element: number) => void) {
    [this.tensor, this.layout] = [tensor, layout];
    const shape = tensor.shape.join(" × ") || "scalar";
    const name = make("b", "", tensor.name);
    const caption = make(
      "figcaption",
      "",
      name,
      ` ${shape} `,
      make("span", "dtype", tensor.dtype),
      this.range,
    );
    this.solid = new Solid(this.canvas, tensor, layout);
    this.figure = make("figure", "", caption, this.canvas);
    this.canvas.dataset.tensor = tensor.name;
    // At its final size, so that the layout does not change when the cells arrive.
    prepare(this.canvas, ...sizeOf(layout));
    this.canvas.setAttribute("role", "img");
    this.listen(choose);
  }

  /** Whether this view can be reused. */
  fits(tensor: Tensor, layout: Layout): boolean {
    return JSON.stringify([tensor, layout]) === JSON.stringify([this.tensor, this.layout]);
  }

  /** Resets the zoom. */
  reset() {
    this.view = WHOLE;
    this.solid.reset();
  }

  /** Moves an element into the middle. */
  lookAt(element: number) {
    this.view = centre(this.layout, element);
  }

  /** Draws the fetched cells again, in the colours of the current scheme. */
  repaint() {
    if (this.scene?.solid) this.solid.paint();
    else this.paint();
  }

  /** Fetches and draws a scene. The last call wins; `data-drawn` is set when it is drawn. */
  async draw(scene: Scene) {
    this.scene = scene;
    const request = ++this.requests;
    delete this.canvas.dataset.drawn;
    if (!this.layout.count) return this.finish(scene);
    const { launch, program } = scene.data;
    const mark = scene.marks.find((one) => one.tensor === this.tensor.name);
    const { window } = windowOf(this.layout, this.view);
    const tile = (fields: Record<string, string | undefined>) =>
      api.tile(launch.id, this.tensor.name, program, fields, window);
    const wanted: Promise<Cells | undefined>[] = [tile({ layer: "marks", op: mark?.uuid })];
    if (scene.mode === "values") wanted.push(tile({ layer: "values", op: scene.op?.uuid }));
    if (scene.mode === "all") wanted.push(tile({ layer: "coverage", kind: scene.kind }));
    const [marks, cells] = await Promise.all(wanted);
    if (request !== this.requests) return;
    [this.marks, this.cells] = [marks, cells];
    if (scene.solid) await this.solid.draw(scene);
    else this.paint();
    if (request === this.requests) this.finish(scene);
  }

  private finish(scene: Scene) {
    const [low, high] = [this.cells?.low, this.cells?.high];
    const known = low !== null && low !== undefined && high !== null && high !== undefined;
    this.range.textContent = "";
    if (scene.mode === "values" && known)
      this.range.textContent = `${formatNumber(Number(low.toPrecision(3)))} to ${formatNumber(Number(high.toPrecision(3)))}`;
    if (scene.mode === "all" && known) this.range.textContent = `max ${formatShort(high)}×`;
    const marked = scene.marks.some((mark) => mark.tensor === this.tensor.name);
    const words = marked ? "accessed by the selected op" : "not accessed by the selected op";
    this.canvas.setAttribute("aria-label", `${this.tensor.name}, ${words}; drag to move, scroll to zoom`);
    this.canvas.dataset.drawn = `${scene.mode} ${scene.op?.uuid ?? ""} ${scene.solid ? "3d" : "2d"}`;
  }

  private paint() {
    const { scene, layout, marks } = this;
    if (!scene || !marks) return;
    const [width, height] = sizeOf(layout);
    const context = prepare(this.canvas, width, height);
    const { window, at } = windowOf(layout, this.view);
    const of = this.colours(scene, marks);
    const within = (cell: number) => {
      const row = window.top + Math.floor(cell / window.across) * window.bin_y;
      const element = row * layout.cols + window.left + (cell % window.across) * window.bin_x;
      return element < layout.count ? of(cell) : undefined;
    };
    drawCells(context, window.across, window.down, at, within, colour("--panel"));
    if (scene.mode !== "op") this.outline(context, scene, marks, at);
    if (Math.min(at.cellX, at.cellY) >= TEXT_CELL && this.cells) this.write(context, window.across, at);
    const focus = scene.focus?.tensor === this.tensor.name ? scene.focus.element : undefined;
    if (focus !== undefined) {
      const [row, col] = [Math.floor(focus / layout.cols), focus % layout.cols];
      const x = at.x + Math.floor((col - window.left) / window.bin_x) * at.cellX;
      const y = at.y + Math.floor((row - window.top) / window.bin_y) * at.cellY;
      context.strokeStyle = colour("--issue");
      context.lineWidth = 3;
      const grow = Math.max(2, (10 - Math.min(at.cellX, at.cellY)) / 2);
      context.strokeRect(x - grow, y - grow, at.cellX - 1 + 2 * grow, at.cellY - 1 + 2 * grow);
    }
  }

  private colours(scene: Scene, marks: Cells): (cell: number) => Rgb | undefined {
    const plain = rgb("--cell");
    if (scene.mode === "op") {
      const own = scene.marks.find((mark) => mark.tensor === this.tensor.name)?.colour ?? "--load";
      const palette = [plain, rgb("--tint"), rgb("--masked"), rgb(own)];
      return (cell) => palette[marks.numbers[cell] ?? 0];
    }
    const stops = ramp();
    const { numbers, low, high } = this.cells ?? { numbers: [], low: 0, high: 0 };
    const counted = scene.mode === "all";
    return (cell) => {
      const number = numbers[cell];
      if (number === undefined || Number.isNaN(number) || (counted && !number)) return plain;
      return mix(stops, share(number, counted ? 0 : (low ?? 0), high ?? 0));
    };
  }

  /** A ring around the op's elements, in modes in which colours have another meaning. */
  private outline(
    context: CanvasRenderingContext2D,
    scene: Scene,
    marks: Cells,
    at: { x: number; y: number; cellX: number; cellY: number },
  ) {
    if (scene.mode === "all" || Math.min(at.cellX, at.cellY) < 6) return;
    context.strokeStyle = colour("--text");
    context.lineWidth = 1;
    for (let cell = 0; cell < marks.numbers.length; cell++) {
      if (marks.numbers[cell] !== BY_OP) continue;
      const x = at.x + (cell % marks.across) * at.cellX;
      const y = at.y + Math.floor(cell / marks.across) * at.cellY;
      context.strokeRect(x + 0.5, y + 0.5, at.cellX - 2, at.cellY - 2);
    }
  }

  private write(
    context: CanvasRenderingContext2D,
    across: number,
    at: { x: number; y: number; cellX: number; cellY: number },
  ) {
    context.font = "11px sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const [cell, number] of (this.cells?.numbers ?? []).entries()) {
      if (Number.isNaN(number)) continue;
      const [x, y] = [
        at.x + ((cell % across) + 0.5) * at.cellX,
        at.y + (Math.floor(cell / across) + 0.5) * at.cellY,
      ];
      const text = formatShort(Number(number.toPrecision(4)));
      context.lineWidth = 3;
      context.strokeStyle = colour("--panel");
      context.strokeText(text, x, y);
      context.fillStyle = colour("--text");
      context.fillText(text, x, y);
    }
  }

  private listen(choose: (element: number) => void) {
    const { canvas } = this;
    let moved = 0;
    canvas.onwheel = (event) => {
      event.preventDefault();
      const factor = event.deltaY < 0 ? 1.3 : 1 / 1.3;
      if (this.scene?.solid) this.solid.zoomAt(event.offsetX, event.offsetY, factor);
      else this.look(zoomAt(this.layout, this.view, event.offsetX, event.offsetY, factor));
      this.hover(event);
    };
    canvas.onpointerdown = (event) => {
      moved = 0;
      canvas.setPointerCapture(event.pointerId);
    };
    canvas.onpointermove = (event) => {
      if (event.buttons & 1) {
        moved += Math.abs(event.movementX) + Math.abs(event.movementY);
        if (this.scene?.solid) this.solid.drag(event.movementX, event.movementY, event.shiftKey);
        else if (moved > 3) this.look(pan(this.layout, this.view, event.movementX, event.movementY));
      }
      this.hover(event);
    };
    canvas.onpointerleave = () => {
      this.hovering++;
      byId("tip").hidden = true;
    };
    canvas.onclick = (event) => {
      const element = this.under(event)?.element;
      if (moved <= 3 && element !== undefined) choose(element);
    };
    canvas.ondblclick = () => {
      if (this.scene?.solid) {
        this.solid.reset();
        this.solid.draw(this.scene);
      } else this.look(WHOLE);
    };
  }

  /** The element under the pointer, and the value of its cell. */
  private under(event: MouseEvent): { element: number; number: number } | undefined {
    const { layout, scene } = this;
    if (scene?.solid) return this.solid.at(event.offsetX, event.offsetY);
    const element = elementAt(layout, this.view, event.offsetX, event.offsetY);
    if (element === undefined) return undefined;
    const { window, at } = windowOf(layout, this.view);
    const across = Math.floor((event.offsetX - at.x) / at.cellX);
    const cell = Math.floor((event.offsetY - at.y) / at.cellY) * window.across + across;
    const shown = scene?.mode === "all" ? this.cells : this.marks;
    return { element, number: shown?.numbers[cell] ?? 0 };
  }

  private look(view: Viewport) {
    this.view = view;
    // Move the fetched cells at once, then fetch the missing ones.
    this.paint();
    if (this.scene) this.draw(this.scene).catch(() => undefined);
  }

  /** Describes the element under the pointer; when the pointer rests, also its address and value. */
  private hover(event: MouseEvent) {
    const { scene, layout, tensor } = this;
    const tip = byId("tip");
    const mine = ++this.hovering;
    const found = this.under(event);
    if (!scene || !found) {
      tip.hidden = true;
      return;
    }
    const { element, number } = found;
    const { window } = windowOf(layout, this.view);
    const bin = window.bin_x * window.bin_y;
    const more = bin > 1 && !scene.solid ? ` and up to ${bin - 1} next to it` : "";
    const where = `${tensor.name}[${indexOf(tensor.shape, element).join(", ")}]${more}`;
    const showTip = (text: string) => {
      tip.hidden = false;
      tip.textContent = text;
      const right = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
      const below = Math.min(event.clientY + 18, innerHeight - tip.offsetHeight - 8);
      tip.style.transform = `translate(${right}px, ${below}px)`;
    };
    // In 3D only one layer is drawn: with values, accesses are not known.
    const unknown = scene.solid && scene.mode === "values";
    const what = unknown ? "" : `: ${scene.mode === "all" ? times(number) : WORDS[number]}`;
    showTip(`${where}${what}`);
    const { launch, program } = scene.data;
    setTimeout(async () => {
      if (mine !== this.hovering) return;
      const tipped = await api
        .element(launch.id, tensor.name, element, program, scene.op?.uuid)
        .catch(() => undefined);
      if (!tipped || mine !== this.hovering) return;
      const value = launch.values ? `, value ${formatNumber(tipped.value)}` : "";
      showTip(`${where}${what} · address ${tipped.address}${value}`);
    }, STILL);
  }
}

function times(number: number): string {
  return number ? `accessed ${number.toLocaleString("en")}× by all programs` : "accessed by no program";
}
