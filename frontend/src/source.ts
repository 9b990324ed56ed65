// The kernel's source with a heat strip for each line: bytes, masked elements and issues of all programs. The line of
// the selected op is marked. A click on a line with ops selects them in turn.

import { api } from "./api";
import { byId, make, plural, reveal } from "./dom";
import { formatBytes, formatShare } from "./format";
import type { Actions, Panel } from "./panel";
import type { LineHeat, ProgramData } from "./payloads/program_payloads";
import type { Op } from "./types";

/** The panel of the source. */
export function sourcePanel(actions: Actions): Panel {
  const root = byId("source");
  let rows = new Map<number, HTMLElement>();
  let selected: Op | undefined;
  let shown = -1;
  let pointed: HTMLElement | undefined;
  let heat: LineHeat[] = [];
  let data: ProgramData | undefined;

  const paintHeat = () => {
    const most = Math.max(1, ...heat.map((line) => line.bytes));
    for (const line of heat) {
      const strip = rows.get(line.line)?.querySelector<HTMLElement>(".heat");
      if (!strip) continue;
      const masked = line.masked / Math.max(1, line.elements + line.masked);
      strip.style.setProperty("--bytes-share", String(line.bytes ? Math.max(0.04, line.bytes / most) : 0));
      strip.style.setProperty("--masked-share", String(masked));
      strip.classList.toggle("has-issues", line.issues > 0);
      const words = [
        `${formatBytes(line.bytes)} moved by all programs`,
        `${formatShare(masked)} of its elements masked off`,
        line.issues ? plural(line.issues, "issue") : "no issues",
      ];
      strip.title = words.join(", ");
      strip.setAttribute("aria-label", strip.title);
    }
  };
  return {
    show(fresh) {
      data = fresh;
      const { launch, source, visualization_data: ops } = fresh;
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
          const strip = make("span", "heat");
          strip.setAttribute("role", "img");
          strip.setAttribute("aria-label", "no bytes moved");
          row.append(make("span", "number", String(line)), strip, code);
          row.dataset.line = String(line);
          if (here.length) {
            row.title = `${plural(here.length, "op")} of this program; click for the next one`;
            row.append(make("span", "badge", String(here.length)));
            // In a loop one line has many ops: each click selects the next one.
            row.onclick = () => actions.chooseOp(here[(here.indexOf(selected as Op) + 1) % here.length]);
          }
          return [line, row];
        }),
      );
      root.replaceChildren(...rows.values());
      if (launch.id !== shown) {
        heat = [];
        shown = launch.id;
        // The source works without it; a server that does not answer is reported elsewhere.
        api.lines(launch.id).then(
          (table) => {
            if (shown !== launch.id) return;
            heat = table.lines;
            paintHeat();
          },
          () => undefined,
        );
      }
      paintHeat();
    },
    select(op) {
      pointed?.classList.remove("pointed");
      if (selected) rows.get(selected.line)?.removeAttribute("aria-current");
      selected = op;
      const row = op && rows.get(op.line);
      row?.setAttribute("aria-current", "true");
      if (row) reveal(root, row);
      showCalled(op, data);
    },
    point(line) {
      pointed?.classList.remove("pointed");
      pointed = rows.get(line);
      pointed?.classList.add("pointed");
      if (pointed) reveal(root, pointed);
    },
  };
}

/** The functions that the selected op's line called, down to the op itself. */
async function showCalled(op: Op | undefined, data: ProgramData | undefined) {
  const root = byId("called");
  const deep = op && (data?.paths[op.path]?.length ?? 0) > 1;
  root.hidden = !deep;
  root.dataset.op = op?.uuid ?? "";
  if (!op || !deep) return;
  const found = await api.code(op.uuid).catch(() => undefined);
  if (!found || root.dataset.op !== op.uuid) return;
  const frames = found.frames.slice(1).map((frame) => {
    const code = frame.lines.map((text, offset) => {
      const line = frame.first_line + offset;
      const row = make("div", "row", make("span", "number", String(line)), make("code", "", text || " "));
      if (line === frame.line) row.setAttribute("aria-current", "true");
      return row;
    });
    return make("div", "", make("p", "muted called-in", `in ${frame.function}, ${frame.file}`), ...code);
  });
  root.replaceChildren(...frames);
}
