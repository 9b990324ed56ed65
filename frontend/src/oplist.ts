// The list of the program's ops, which shows one iteration of each loop, and, above the tensors, the description of the
// selected op and the buttons to step through the ops.

import { rendererOf } from "../ops/registry";
import { byId, make } from "./dom";
import { firstOf, type Node, treeOf } from "./iterations";
import { inView, type Loop, type Row, rowsOf, scrolledTo } from "./oprows";
import type { Actions, Panel } from "./panel";
import type { ProgramData } from "./payloads/program_payloads";
import type { Op } from "./types";

/** The panel of the ops. */
export function opsPanel(actions: Actions): Panel {
  const list = byId("ops");
  let data: ProgramData | undefined;
  let ops: Op[] = [];
  let tree: Node[] = [];
  let inTree = 0; // the number of ops in the tree: later ones are appended to the same array
  let number = -1;
  let rows: Row[] = [];
  let drawn: [number, number] = [-1, -1]; // which rows are in the document
  let height = 24; // of a row, in pixels

  const drawOp = (at: number): HTMLElement => {
    const op = ops[at] as Op;
    const renderer = rendererOf(op);
    const counts = renderer.counts?.(op);
    const row = make("button", "row", make("span", "number", String(at + 1)), chip(op));
    row.dataset.op = String(at);
    if (at === number) row.setAttribute("aria-current", "true");
    if (op.line && op.line === ops[number]?.line) row.classList.add("same-line");
    // The label of an op without elements also takes the columns of the counts.
    const label = make("span", counts ? "" : "wide", renderer.label(op));
    row.append(make("span", "number", String(op.line || "")), label);
    for (const count of counts ?? []) row.append(make("span", "number", count.toLocaleString("en")));
    row.onclick = () => actions.chooseOp(op);
    return make("li", "", row);
  };
  const drawLoop = (loop: Loop, shown: number): HTMLElement => {
    const current = loop.iterations[shown];
    const count = loop.iterations.length;
    const step = (by: number, name: string, sign: string) => {
      const button = make("button", "", sign);
      button.setAttribute("aria-label", name);
      const to = loop.iterations[shown + by];
      button.disabled = !to;
      button.onclick = () => to && actions.chooseOp(ops[firstOf(to.nodes)]);
      return button;
    };
    const head = make(
      "div",
      "loop-head",
      make("span", "", "loop at line ", make("b", "", String(loop.line))),
      step(-1, "Previous iteration", "‹"),
      make("span", "number", `${(current?.index ?? 0) + 1} of ${count}`),
      step(1, "Next iteration", "›"),
    );
    return make("li", "loop", head);
  };
  const drawRow = (row: Row): HTMLElement => {
    const element = "op" in row ? drawOp(row.op) : drawLoop(row.loop, row.shown);
    element.style.setProperty("--depth", String(row.depth));
    return element;
  };
  const space = (count: number): HTMLElement => {
    const element = make("li", "space");
    element.setAttribute("aria-hidden", "true");
    element.style.height = `${count * height}px`;
    return element;
  };
  /** Draws the rows in view, with empty space for the others. */
  const draw = () => {
    if (!ops.length) {
      list.replaceChildren(make("li", "none", "This program has no recorded ops."));
      return;
    }
    const [first, end] = inView(rows.length, height, list.scrollTop, list.clientHeight);
    if (drawn[0] === first && drawn[1] === end) return;
    drawn = [first, end];
    const shown = rows.slice(first, end).map(drawRow);
    list.replaceChildren(space(first), ...shown, space(rows.length - end));
  };
  /** Draws again after a change of the ops, the selected op or the shown iterations. */
  const redraw = () => {
    rows = rowsOf(tree, number);
    drawn = [-1, -1];
    const at = rows.findIndex((row) => "op" in row && row.op === number);
    draw();
    // All rows have one height, which depends on the page's font.
    const first = list.querySelector<HTMLElement>("li:not(.space, .none)");
    height = first?.getBoundingClientRect().height || height;
    if (at >= 0 && list.clientHeight) {
      const top = scrolledTo(at, height, list.scrollTop, list.clientHeight);
      drawn = [-1, -1];
      draw();
      list.scrollTop = top;
      draw();
    }
  };
  list.onscroll = draw;
  // When it becomes visible, or the window's size changes.
  new ResizeObserver(draw).observe(list);
  return {
    show(fresh) {
      data = fresh;
      ops = data.visualization_data;
      tree = treeOf(ops);
      inTree = ops.length;
      number = -1;
    },
    select(op) {
      if (data && ops.length !== inTree) this.show(data);
      number = op ? ops.indexOf(op) : -1;
      redraw();
      const total = data?.total ?? ops.length;
      byId("position").textContent = total ? `${number + 1} of ${total.toLocaleString("en")}` : "no ops";
      const time = byId<HTMLInputElement>("time");
      time.max = String(Math.max(0, total - 1));
      time.value = String(Math.max(0, number));
      time.disabled = total < 2;
      for (const id of ["previous", "previous-iteration"]) byId<HTMLButtonElement>(id).disabled = number <= 0;
      for (const id of ["next", "next-line", "next-iteration", "play"])
        byId<HTMLButtonElement>(id).disabled = number >= total - 1;
      byId("detail").replaceChildren(
        ...(op ? [chip(op), rendererOf(op).detail(op, ops), loopsOf(op, ops)] : []),
      );
    },
  };
}

/** The iterations that an op is in: `line 27: iteration 2 of 3`. */
function loopsOf(op: Op, ops: Op[]): HTMLElement {
  const loops = op.iterations.map(([line, index], depth) => {
    const same = ops.filter((other) =>
      op.iterations.slice(0, depth).every(([l, i], level) => {
        const at = other.iterations[level];
        return at?.[0] === l && at[1] === i;
      }),
    );
    const indices = same
      .filter((other) => other.iterations[depth]?.[0] === line)
      .map((o) => o.iterations[depth]?.[1]);
    return make("span", "loop-at", `line ${line}: iteration ${index + 1} of ${new Set(indices).size}`);
  });
  return make("span", "loops", ...engineOf(op), ...loops);
}

/** The instruction and the engine that an op is part of, on a chip that has engines. */
function engineOf(op: Op): HTMLElement[] {
  const { instruction, engine, time } = op.fields;
  return engine ? [make("span", "loop-at", `${time}: ${instruction} on the ${engine} engine`)] : [];
}

function chip(op: Op): HTMLElement {
  const element = make("span", "chip", op.type);
  element.style.setProperty("--chip", `var(${rendererOf(op).colour})`);
  return element;
}
