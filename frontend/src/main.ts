// The page: fetches what the address names, shows it, and keeps the address up to date.

import "./style.css";
import "./kernel.css";
import "./tensors.css";
import "./report.css";
import "./cluster/cluster.css";
import "./small.css";
import { ApiError, api } from "./api";
import { chipPanel } from "./chip/panel";
import { showCluster } from "./cluster/view";
import { byId, make } from "./dom";
import { showIssues } from "./issues";
import { nextIteration, nextLine } from "./iterations";
import { listenKeys } from "./keys";
import { countOf } from "./layout";
import { positionOf, programAt } from "./map";
import { opsPanel } from "./oplist";
import type { Actions, Focus, Panel } from "./panel";
import type { ProgramData } from "./payloads";
import { showProfile } from "./profile";
import { programsPanel } from "./programs";
import { listenScheme } from "./scheme";
import { sourcePanel } from "./source";
import { tensorsPanel } from "./tensors";
import type { Launch, Op, Program } from "./types";
import { formatPlace, type Place, parsePlace, VIEWS, type ViewName } from "./url";

const PLAY = 700;
const picker = byId<HTMLSelectElement>("launch");
let launches: Launch[] = [];
let hasTape = false;
let view: ViewName = "kernel";
let data: ProgramData | undefined;
let selected: Op | undefined;
let focus: Focus | undefined;
let heading: Program | undefined;
let coming: Place | undefined;
let latest = 0;
let playing: ReturnType<typeof setInterval> | undefined;

const actions: Actions = {
  chooseProgram: (program) => visit({ view, launch: data?.launch.id, program, op: undefined }),
  chooseOp(op) {
    pause();
    select(op);
  },
  pointAt(line) {
    for (const panel of panels) panel.point?.(line);
  },
  goTo(place) {
    const focused = "focus" in place ? place.focus : focus;
    // Another element of what is shown already needs no new program.
    if (!place.program && !place.op && !place.line) {
      focus = focused;
      // What is asked for already must not bring back what was pointed at before.
      if (coming) coming.focus = focused;
      tensors.focus(focus);
      remember();
      return;
    }
    visit(
      { launch: data?.launch.id, program: place.program ?? data?.program, op: place.op, focus: focused },
      place.line,
    );
  },
};
const tensors = tensorsPanel(actions);
// The chip first: whether it is shown decides how much room the tensors have.
const panels: Panel[] = [
  chipPanel(actions),
  sourcePanel(actions),
  programsPanel(actions),
  opsPanel(actions),
  tensors,
];

/** Asks for the launches anew, and shows the place in the address. */
async function start() {
  // A page with its own tape has no server: it is the cluster's view alone.
  if (window.TAPE) {
    document.body.classList.add("alone");
    return visit({ view: "cluster" });
  }
  try {
    ({ launches, tape: hasTape } = await api.launches());
  } catch (error) {
    return explain(error);
  }
  picker.replaceChildren(
    ...launches.map((launch) => {
      const text = `${launch.kernel}  ·  grid ${launch.grid.join(" × ")}  ·  #${launch.id}`;
      const option = make("option", "", text);
      option.value = String(launch.id);
      return option;
    }),
  );
  picker.disabled = !launches.length;
  const place = parsePlace(location.hash);
  if (launches.length || place.view === "cluster") return visit(place);
  if (hasTape) return visit({ view: "cluster" });
  say(
    "No kernel was traced yet",
    'Put @triton_viz.trace("tracer") above a @triton.jit kernel, run it, then call triton_viz.launch().',
  );
}

/** Shows a place. What it leaves open is the newest launch, its first program, and the op selected before. */
async function visit(place: Place, line?: number) {
  const launch = place.launch ?? data?.launch.id ?? launches.at(-1)?.id ?? 0;
  const program: Program = place.program ?? [0, 0, 0];
  const ticket = ++latest;
  const wanted = place.view ?? "kernel";
  coming = place;
  if (wanted === "cluster") {
    turnTo("cluster");
    document.title = "Cluster · Triton-Viz";
    return showCluster(hasTape).catch(explain);
  }
  let fetched: ProgramData;
  try {
    fetched = await api.program(launch, program);
    while (place.op && !fetched.visualization_data.some((op) => op.uuid === place.op)) {
      if (!(await more(fetched))) break;
    }
  } catch (error) {
    if (ticket !== latest) return;
    [heading, coming] = [undefined, undefined];
    return explain(error);
  }
  // Somebody who steps quickly asks for the next program before this one came.
  if (ticket !== latest) return;
  [heading, coming] = [undefined, undefined];
  const before = data?.launch.id === launch && selected ? data.visualization_data.indexOf(selected) : 0;
  if (data?.launch.id !== launch) pause();
  data = fetched;
  focus = place.focus;
  picker.value = String(launch);
  document.title = `${data.launch.kernel} · Triton-Viz`;
  turnTo(wanted);
  for (const panel of panels) panel.show(data);
  tensors.focus(focus);
  const ops = data.visualization_data;
  const asked =
    ops.find((op) => op.uuid === place.op) ?? (line ? ops.find((op) => op.line === line) : undefined);
  select(asked ?? ops[Math.min(Math.max(before, 0), ops.length - 1)]);
  byId("issue-count").textContent = data.launch.issues ? String(data.launch.issues) : "";
  try {
    if (wanted === "profile") await showProfile(data, actions);
    if (wanted === "issues") await showIssues(data.launch, actions);
  } catch (error) {
    if (ticket === latest) explain(error);
  }
}

/** Fetches the next ops of a program that has more than one answer holds; false if there are none. */
async function more(of: ProgramData): Promise<boolean> {
  const loaded = of.visualization_data.length;
  if (loaded >= of.total) return false;
  const next = await api.program(of.launch.id, of.program, loaded);
  // Paths are numbered in each answer by itself.
  const shift = of.paths.length;
  of.paths.push(...next.paths);
  of.visualization_data.push(...next.visualization_data.map((op) => ({ ...op, path: op.path + shift })));
  return next.visualization_data.length > 0;
}

function turnTo(name: ViewName) {
  view = name;
  byId("message").hidden = true;
  for (const each of VIEWS) {
    byId(`view-${each}`).hidden = each !== name;
    const tab = byId(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
  }
  document.body.dataset.view = name;
}

function select(op: Op | undefined) {
  selected = op;
  for (const panel of panels) panel.select?.(op);
  remember();
}

/** Writes what is looked at into the address. */
function remember() {
  if (!data || view === "cluster") return;
  // Back leads to the launch or view seen before; single steps would only be in its way.
  const was = parsePlace(location.hash);
  const hash = formatPlace({
    view,
    launch: data.launch.id,
    program: data.program,
    op: selected?.uuid,
    focus,
  });
  const moved =
    was.launch !== undefined && (was.launch !== data.launch.id || (was.view ?? "kernel") !== view);
  history[moved ? "pushState" : "replaceState"](null, "", hash);
}

function explain(error: unknown) {
  if (!(error instanceof ApiError)) throw error;
  pause();
  if (error.gone) return say("The server is gone", `${error.message} Start it again, then try again here.`);
  if (view === "cluster") return say("The cluster cannot be shown", error.message);
  say("There is nothing at this address", `${error.message} Another launch may be in the list above.`);
}

function say(title: string, text: string) {
  for (const each of VIEWS) byId(`view-${each}`).hidden = true;
  byId("message").hidden = false;
  byId("message-title").textContent = title;
  byId("message-text").textContent = text;
}

function stepProgram(by: number) {
  if (!data) return;
  // Keys come faster than programs: a step starts where the last one leads.
  const position = positionOf(data.launch.grid, heading ?? data.program) + by;
  if (position < 0 || position >= countOf(data.launch.grid)) return;
  const to = programAt(data.launch.grid, position);
  actions.chooseProgram(to);
  heading = to;
}

/** Selects an op by its number, and fetches it first if it must. */
async function stepTo(number: number | undefined) {
  if (!data || number === undefined || number < 0 || number >= data.total) return pause();
  const asked = data;
  while (number >= asked.visualization_data.length) {
    try {
      if (!(await more(asked))) return;
    } catch (error) {
      return explain(error);
    }
  }
  if (asked === data) select(data.visualization_data[number]);
}

const ops = () => data?.visualization_data ?? [];
const at = () => (selected ? ops().indexOf(selected) : -1);
const steps = {
  previous: () => stepTo(at() - 1),
  next: () => stepTo(at() + 1),
  "next-line": () =>
    stepTo(nextLine(ops(), at()) ?? (ops().length < (data?.total ?? 0) ? ops().length : undefined)),
  "next-iteration": () => stepTo(nextIteration(ops(), at()) ?? undefined),
  "previous-iteration": () => stepTo(nextIteration(ops(), at(), -1)),
};

function pause() {
  clearInterval(playing);
  playing = undefined;
  byId("play").textContent = "▶";
  byId("play").setAttribute("aria-label", "Play");
}

function play() {
  if (playing) return pause();
  byId("play").textContent = "❚❚";
  byId("play").setAttribute("aria-label", "Pause");
  playing = setInterval(() => {
    if (at() >= (data?.total ?? 0) - 1) return pause();
    steps.next();
  }, PLAY);
}

const help = byId<HTMLDialogElement>("help");
byId("open-help").onclick = () => help.showModal();
for (const [id, step] of Object.entries(steps)) {
  byId(id).onclick = () => {
    pause();
    step();
  };
}
byId("play").onclick = play;
byId<HTMLInputElement>("time").oninput = (event) => stepTo(Number((event.target as HTMLInputElement).value));
byId("retry").onclick = start;
for (const name of VIEWS) {
  byId(`tab-${name}`).onclick = () => {
    if (name === "cluster") {
      history.pushState(null, "", formatPlace({ view: "cluster" }));
      return visit({ view: "cluster" });
    }
    if (!launches.length) return start();
    visit({ view: name, launch: data?.launch.id, program: data?.program, op: selected?.uuid, focus });
  };
}
picker.onchange = () => {
  [selected, focus] = [undefined, undefined];
  visit({ view: view === "cluster" ? "kernel" : view, launch: Number(picker.value) });
};
window.addEventListener("hashchange", () => visit(parsePlace(location.hash)));
// Playing on would ask a server that is gone again and again.
document.addEventListener("gone", pause);
listenScheme();
listenKeys({
  ArrowLeft: () => stepProgram(-1),
  ArrowRight: () => stepProgram(1),
  ArrowUp: steps.previous,
  ArrowDown: steps.next,
  k: steps.previous,
  j: steps.next,
  l: steps["next-line"],
  i: steps["next-iteration"],
  I: steps["previous-iteration"],
  " ": play,
  v: () => byId("mode-values").click(),
  a: () => byId("mode-all").click(),
  o: () => byId("mode-op").click(),
  "3": () => byId("solid").click(),
  "0": () => byId("zoom-reset").click(),
  t: () => byId("scheme").click(),
  "?": () => help.showModal(),
});
start();
