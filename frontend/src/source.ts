// The kernel's source. The selected op's line is marked; a line with ops leads to them.

import { byId, make, plural, reveal } from "./dom";
import type { Actions, Panel } from "./panel";
import type { Op } from "./types";

/** The panel of the source. */
export function sourcePanel(actions: Actions): Panel {
  const root = byId("source");
  let rows = new Map<number, HTMLElement>();
  let selected: Op | undefined;
  return {
    show({ source, visualization_data: ops }) {
      byId("file").textContent = source.file;
      const indents = source.lines.filter((text) => text.trim()).map((text) => text.search(/\S/));
      const indent = Math.min(...indents);
      rows = new Map(
        source.lines.map((text, offset) => {
          const line = source.first_line + offset;
          const here = ops.filter((op) => op.line === line);
          const row = make(here.length ? "button" : "div", "row");
          const code = make("code", "", text.trimStart() || " ");
          code.style.setProperty("--indent", String(Math.max(0, text.search(/\S/) - indent)));
          row.append(make("span", "number", String(line)), code);
          if (here.length) {
            row.title = `${plural(here.length, "op")} of this program; click for the next one`;
            row.append(make("span", "badge", String(here.length)));
            // In a loop one line has many ops: clicking again goes through them.
            row.onclick = () => actions.chooseOp(here[(here.indexOf(selected as Op) + 1) % here.length]);
          }
          return [line, row];
        }),
      );
      root.replaceChildren(...rows.values());
    },
    select(op) {
      if (selected) rows.get(selected.line)?.removeAttribute("aria-current");
      selected = op;
      const row = op && rows.get(op.line);
      row?.setAttribute("aria-current", "true");
      if (row) reveal(root, row);
    },
  };
}
