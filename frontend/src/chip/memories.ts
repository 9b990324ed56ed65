// The memories on the chip over time, for backends that record them: the use of each memory under its capacity, and
// a bar for each buffer from its first use to its last. A click on a bar selects the line that allocated it.

import "./chip.css";
import { api } from "../api";
import { byId, make, plural, svg } from "../dom";
import { formatBytes, formatShare } from "../format";
import type { Actions, Panel } from "../panel";
import type { SbufBuffer, SbufMemory, SbufTimeline } from "../payloads/memory_payloads";
import type { ProgramData } from "../payloads/program_payloads";
import type { Op } from "../types";
import { inUse, type Level, levelAt, levelsOf, lineOf, type Row, rowsOf, scaleOf } from "./use";

const TALL = 40;

interface Bar {
  element: HTMLElement;
  buffer: SbufBuffer;
}

/** The panel of the memories on the chip, hidden if the program uses none. */
export function chipPanel(actions: Actions): Panel {
  const root = byId("chip");
  let data: ProgramData | undefined;
  let timeline: SbufTimeline | undefined;
  let selected: Op | undefined;
  let bars: Bar[] = [];
  let levels = new Map<string, Level[]>();
  let numbers = new Map<SbufBuffer, number>();

  /** Marks the buffers that are in use at the selected op's instruction, and those that it reads and writes. */
  const mark = () => {
    if (!timeline) return;
    const time = timeOf(selected);
    const [read, written] = [numbersIn(selected, "buffers_read"), numbersIn(selected, "buffers_written")];
    const end = timeline.instructions + 1;
    root.style.setProperty("--now", `${((time - 0.5) / end) * 100}%`);
    root.classList.toggle("timeless", !time);
    for (const { element, buffer } of bars) {
      const live = inUse(buffer, time);
      const number = numbers.get(buffer) ?? -1;
      element.classList.toggle("live", live);
      element.classList.toggle("read", read.includes(number));
      element.classList.toggle("written", written.includes(number) || buffer.start === time);
    }
    for (const memory of timeline.memories) {
      const now = levelAt(levels.get(memory.memory) ?? [], time);
      const head = root.querySelector(`[data-memory="${memory.memory}"] .now`);
      if (head) head.textContent = time ? `now ${formatBytes(now)}` : "";
    }
    const where = byId("chip-now");
    where.textContent = time ? `instruction ${time} of ${timeline.instructions}` : "";
    root.dataset.time = String(time);
  };
  const choose = (buffer: SbufBuffer) => {
    const ops = data?.visualization_data ?? [];
    // The op of its first use; a buffer without a use has only its line.
    const first =
      ops.find((op) => timeOf(op) === buffer.start) ?? ops.find((op) => timeOf(op) > buffer.start);
    if (first) actions.chooseOp(first);
    actions.pointAt(lineOf(buffer));
  };
  const draw = () => {
    if (!timeline) return;
    bars = [];
    levels = new Map();
    numbers = new Map(timeline.events.map((buffer, number) => [buffer, number]));
    const parts = timeline.memories.map((memory) => {
      const mine = timeline?.events.filter((event) => event.memory === memory.memory) ?? [];
      levels.set(memory.memory, levelsOf(mine));
      const use = usagePart(memory, levels.get(memory.memory) ?? [], timeline?.instructions ?? 0);
      const part = make("div", "memory", headPart(memory), use);
      part.dataset.memory = memory.memory;
      const rows = rowsOf(mine).map((row) => rowPart(row, (timeline?.instructions ?? 0) + 1, bars, choose));
      const title = make("span", "muted", `buffers in ${memory.memory}`);
      const buffers = make("div", "buffers", title, ...rows);
      buffers.dataset.buffers = memory.memory;
      return [part, buffers] as const;
    });
    // The use of all memories comes first: there may be more buffers than fit.
    byId("chip-memories").replaceChildren(...parts.map(([use]) => use), ...parts.map(([, rows]) => rows));
    const cut = timeline.total - timeline.events.length;
    byId("chip-note").textContent =
      plural(timeline.total, "buffer") + (cut > 0 ? `, the last ${cut.toLocaleString("en")} not shown` : "");
    mark();
  };
  return {
    show(fresh) {
      data = fresh;
      root.hidden = !fresh.sbuf;
      byId("hbm").hidden = !fresh.sbuf;
      document.body.classList.toggle("on-chip", fresh.sbuf > 0);
      if (!fresh.sbuf) {
        timeline = undefined;
        return;
      }
      // The rest of the view works without it; a server that does not answer is reported elsewhere.
      api.sbuf(fresh.launch.id, fresh.program).then(
        (found) => {
          if (data !== fresh) return;
          timeline = found;
          draw();
        },
        () => undefined,
      );
    },
    select(op) {
      selected = op;
      mark();
    },
  };
}

/** The number of the instruction that an op is part of; 0 if it is unknown. */
function timeOf(op: Op | undefined): number {
  return typeof op?.fields.time === "number" ? op.fields.time : 0;
}

function numbersIn(op: Op | undefined, field: string): number[] {
  const numbers = op?.fields[field];
  return Array.isArray(numbers) ? numbers.map(Number) : [];
}

function headPart({ memory, capacity, peak }: SbufMemory): HTMLElement {
  const over = peak > capacity;
  const words = `peak ${formatBytes(peak)}, ${formatShare(peak / capacity)} of a partition's ${formatBytes(capacity)}`;
  return make(
    "div",
    "memory-head",
    make("b", "", memory),
    make("span", over ? "peak over" : "peak", over ? `${words}: over capacity` : words),
    make("span", "now"),
  );
}

/** The use of a memory over time, as steps under a line at its capacity. */
function usagePart(memory: SbufMemory, levels: Level[], instructions: number): HTMLElement {
  const end = instructions + 1;
  const { top, within } = scaleOf(memory);
  const y = (bytes: number) => TALL - (bytes / top) * TALL;
  const steps = levels.map(({ from, bytes }) => `H${from - 1} V${y(bytes)}`).join(" ");
  const line = within ? y(memory.capacity) : 1;
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${end} ${TALL}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${memory.memory} in use over ${instructions} instructions, at most ${formatBytes(memory.peak)}`,
    },
    svg("path", { d: `M0,${TALL} ${steps} H${end} V${TALL} Z`, class: "in-use" }),
    svg("line", { x1: 0, x2: end, y1: line, y2: line, class: within ? "capacity" : "capacity far" }),
  );
  const label = make(
    "span",
    "capacity-label",
    within ? `capacity ${formatBytes(memory.capacity)}` : "capacity ↑",
  );
  label.style.top = `${line}px`;
  const peak = make("i", "peak-mark");
  peak.style.left = `${((memory.peak_at - 0.5) / end) * 100}%`;
  peak.style.top = `${y(memory.peak)}px`;
  peak.title = `the peak, first at instruction ${memory.peak_at}`;
  const lane = make("div", "lane usage");
  lane.append(picture, label, peak);
  const axis = make("span", "axis", make("span", "", formatBytes(Math.round(top))), make("span", "", "0"));
  return make("div", "buffer-row", axis, lane, make("span"));
}

function rowPart(row: Row, end: number, bars: Bar[], choose: (buffer: SbufBuffer) => void): HTMLElement {
  const all = row.lanes.flat().sort((a, b) => a.start - b.start);
  let next = 0;
  const name = make("button", "buffer-name", make("b", "", row.name));
  if (row.line) name.append(make("span", "muted", ` line ${row.line}`));
  name.title = `${plural(all.length, "buffer")}; click for the next one`;
  name.onclick = () => {
    const buffer = all[next++ % all.length];
    if (buffer) choose(buffer);
  };
  const lane = make("div", "lane");
  lane.style.height = `${row.lanes.length * 1.15}em`;
  row.lanes.forEach((buffers, number) => {
    for (const buffer of buffers) {
      const bar = make("i", "bar");
      bar.style.left = `${((buffer.start - 1) / end) * 100}%`;
      bar.style.width = `${((buffer.end - buffer.start + 1) / end) * 100}%`;
      bar.style.top = `${number * 1.15}em`;
      bar.dataset.buffer = buffer.name;
      bar.onclick = () => choose(buffer);
      bar.onpointermove = (event) => showTip(event, buffer);
      bar.onpointerleave = () => {
        byId("tip").hidden = true;
      };
      lane.append(bar);
      bars.push({ element: bar, buffer });
    }
  });
  const least = formatBytes(row.least);
  const size = row.least === row.most ? least : `${least} to ${formatBytes(row.most)}`;
  return make("div", "buffer-row", name, lane, make("span", "number size", size));
}

function showTip(event: PointerEvent, buffer: SbufBuffer) {
  const tip = byId("tip");
  const site = buffer.path.at(-1);
  const loops = buffer.iterations.map(([line, index]) => `line ${line}: iteration ${index + 1}`);
  const lines = [
    `${buffer.name}  ${buffer.shape.join(" × ") || "scalar"} ${buffer.dtype} in ${buffer.memory}`,
    `${formatBytes(buffer.bytes_per_partition)} in each of ${plural(buffer.partitions, "partition")}`,
    `in use from instruction ${buffer.start} to ${buffer.end}`,
    `allocated at ${site ? `${site.file}, line ${site.line}` : "an unknown line"}`,
    ...loops,
  ];
  tip.replaceChildren(...lines.map((text) => make("div", "", text)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - width - 8);
  const top = event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16;
  tip.style.transform = `translate(${left}px, ${top}px)`;
}
