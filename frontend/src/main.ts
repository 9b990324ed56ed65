// The page: fetches what the address names, shows it, and keeps the address up to date.

import "./style.css";
import { ApiError, fetchLaunches, fetchProgram } from "./api";
import { byId, make } from "./dom";
import { listenKeys } from "./keys";
import { countOf } from "./layout";
import { opsPanel } from "./oplist";
import type { Actions, Panel } from "./panel";
import { positionOf, programAt, programsPanel } from "./programs";
import { sourcePanel } from "./source";
import { tensorsPanel } from "./tensors";
import { trafficPanel } from "./traffic";
import type { Launch, Op, Program, ProgramData } from "./types";
import { formatPlace, type Place, parsePlace } from "./url";

const picker = byId<HTMLSelectElement>("launch");
let launches: Launch[] = [];
let data: ProgramData | undefined;
let selected: Op | undefined;
let latest = 0;

const actions: Actions = {
  chooseProgram: (program) => visit({ launch: data?.launch.id, program }),
  chooseOp: select,
};
const panels: Panel[] = [
  sourcePanel(actions),
  programsPanel(actions),
  opsPanel(actions),
  tensorsPanel(),
  trafficPanel(),
];

/** Asks for the launches anew, and shows the place in the address. */
async function start() {
  try {
    launches = await fetchLaunches();
  } catch (error) {
    return explain(error);
  }
  picker.replaceChildren(
    ...launches.map((launch) => {
      const option = make(
        "option",
        "",
        `${launch.kernel}  ·  grid ${launch.grid.join(" × ")}  ·  #${launch.id}`,
      );
      option.value = String(launch.id);
      return option;
    }),
  );
  picker.disabled = !launches.length;
  if (launches.length) return visit(parsePlace(location.hash));
  say(
    "No kernel was traced yet",
    'Put @triton_viz.trace("tracer") above a @triton.jit kernel, run it, then call triton_viz.launch().',
  );
}

/** Shows a place. What it leaves open is the newest launch, its first program, and the op selected before. */
async function visit(place: Place) {
  const launch = place.launch ?? launches.at(-1)?.id ?? 0;
  const program: Program = place.program ?? [0, 0, 0];
  const ticket = ++latest;
  let fetched: ProgramData;
  try {
    fetched = await fetchProgram(launch, program);
  } catch (error) {
    if (ticket === latest) explain(error);
    return;
  }
  // Somebody who steps quickly asks for the next program before this one came.
  if (ticket !== latest) return;
  const before = data?.launch.id === launch && selected ? data.visualization_data.indexOf(selected) : 0;
  data = fetched;
  byId("message").hidden = true;
  byId("panels").hidden = false;
  picker.value = String(launch);
  document.title = `${data.launch.kernel} · Triton-Viz`;
  for (const panel of panels) panel.show(data);
  const ops = data.visualization_data;
  select(ops.find((op) => op.uuid === place.op) ?? ops[Math.min(Math.max(before, 0), ops.length - 1)]);
}

function select(op: Op | undefined) {
  selected = op;
  for (const panel of panels) panel.select?.(op);
  if (!data) return;
  // Back leads to the launch seen before; that many steps between programs and ops would only be in its way.
  const was = parsePlace(location.hash).launch;
  const hash = formatPlace({ launch: data.launch.id, program: data.program, op: op?.uuid });
  const moved = was !== undefined && was !== data.launch.id;
  history[moved ? "pushState" : "replaceState"](null, "", hash);
}

function explain(error: unknown) {
  if (!(error instanceof ApiError)) throw error;
  if (error.gone) return say("The server is gone", `${error.message} Start it again, then try again here.`);
  say("There is nothing at this address", `${error.message} Another launch may be in the list above.`);
}

function say(title: string, text: string) {
  byId("panels").hidden = true;
  byId("message").hidden = false;
  byId("message-title").textContent = title;
  byId("message-text").textContent = text;
}

function stepProgram(by: number) {
  if (!data) return;
  const position = positionOf(data.launch.grid, data.program) + by;
  if (position < 0 || position >= countOf(data.launch.grid)) return;
  visit({ launch: data.launch.id, program: programAt(data.launch.grid, position) });
}

function stepOp(by: number) {
  const ops = data?.visualization_data ?? [];
  const next = selected && ops[ops.indexOf(selected) + by];
  if (next) select(next);
}

const help = byId<HTMLDialogElement>("help");
byId("open-help").onclick = () => help.showModal();
byId("previous").onclick = () => stepOp(-1);
byId("next").onclick = () => stepOp(1);
byId("retry").onclick = start;
picker.onchange = () => visit({ launch: Number(picker.value) });
window.addEventListener("hashchange", () => visit(parsePlace(location.hash)));
listenKeys({
  ArrowLeft: () => stepProgram(-1),
  ArrowRight: () => stepProgram(1),
  ArrowUp: () => stepOp(-1),
  ArrowDown: () => stepOp(1),
  k: () => stepOp(-1),
  j: () => stepOp(1),
  "?": () => help.showModal(),
});
start();
