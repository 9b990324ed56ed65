// The ops of the program in the order they happened, and above the tensors the selected one in words.

import { rendererOf } from "../ops/registry";
import { byId, make, reveal } from "./dom";
import type { Actions, Panel } from "./panel";
import type { Op } from "./types";

/** The panel of the ops. */
export function opsPanel(actions: Actions): Panel {
  const list = byId("ops");
  let ops: Op[] = [];
  let rows: HTMLElement[] = [];
  let marked: HTMLElement | undefined;
  return {
    show(data) {
      ops = data.visualization_data;
      rows = ops.map((op, number) => {
        const row = opRow(op, number);
        row.onclick = () => actions.chooseOp(op);
        return row;
      });
      list.replaceChildren(...rows.map((row) => make("li", "", row)));
      if (!ops.length) list.append(make("li", "none", "This program loaded and stored nothing."));
    },
    select(op) {
      const number = op ? ops.indexOf(op) : -1;
      marked?.removeAttribute("aria-current");
      marked = rows[number];
      marked?.setAttribute("aria-current", "true");
      if (marked) reveal(list, marked);
      byId("position").textContent = `${number + 1} of ${ops.length}`;
      byId<HTMLButtonElement>("previous").disabled = number <= 0;
      byId<HTMLButtonElement>("next").disabled = number >= ops.length - 1;
      byId("detail").replaceChildren(...(op ? [chip(op), rendererOf(op).detail(op)] : []));
    },
  };
}

function opRow(op: Op, number: number): HTMLButtonElement {
  const renderer = rendererOf(op);
  const touched = renderer.touched(op);
  const row = make("button", "row", make("span", "number", String(number + 1)), chip(op));
  // An op without elements has its label where the counts would be.
  const label = make("span", touched ? "" : "wide", renderer.label(op));
  row.append(make("span", "number", String(op.line || "")), label);
  for (const count of touched ? [touched.elements.length, touched.masked] : []) {
    row.append(make("span", "number", count.toLocaleString("en")));
  }
  return row;
}

function chip(op: Op): HTMLElement {
  const element = make("span", "chip", op.type);
  element.style.setProperty("--chip", `var(${rendererOf(op).colour})`);
  return element;
}
