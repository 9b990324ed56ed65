// The page: fetches and shows the route in the address, and keeps the address up to date.

import "./style.css";
import "./kernel.css";
import "./tensors.css";
import "./report.css";
import "./cluster/cluster.css";
import "./small.css";
import { ApiError, api } from "./api";
import { chipPanel } from "./chip/memories";
import { showCluster } from "./cluster/view";
import { byId, make } from "./dom";
import { showIssues } from "./issues";
import { nextIteration, nextLine } from "./iterations";
import { listenKeys } from "./keys";
import { countOf } from "./layout";
import { positionOf, programAt } from "./map";
import { opsPanel } from "./oplist";
import { pager } from "./paging";
import type { Actions, Focus, Panel } from "./panel";
import type { ProgramData } from "./payloads/program_payloads";
import { showProfile } from "./profile";
import { programsPanel } from "./programs";
import { listenScheme } from "./scheme";
import { sourcePanel } from "./source";
import { Store } from "./state";
import { tensorsPanel } from "./tensors";
import type { Launch, Op, Program } from "./types";
import { formatRoute, parseRoute, type Route, VIEWS, type ViewName } from "./url";

const PLAY = 700;
const picker = byId<HTMLSelectElement>("launch");

/** The state of the page, including pending requests. */
interface State {
  launches: Launch[];
  hasTape: boolean;
  view: ViewName;
  /** The shown program. */
  data: ProgramData | undefined;
  selected: Op | undefined;
  focus: Focus | undefined;
  /** The program that was requested last, until it is shown: the next step starts there. */
  requested: Program | undefined;
  /** The route that was requested last, until it is shown. */
  pending: Route | undefined;
  /** Counts visits, to drop answers to earlier ones. */
  visits: number;
  /** Counts steps, to drop answers to earlier ones. */
  steps: number;
  playing: ReturnType<typeof setInterval> | undefined;
}

const store = new Store<State>({
  launches: [],
  hasTape: false,
  view: "kernel",
  data: undefined,
  selected: undefined,
  focus: undefined,
  requested: undefined,
  pending: undefined,
  visits: 0,
  steps: 0,
  playing: undefined,
});

const actions: Actions = {
  chooseProgram(program) {
    const { view, data } = store.state;
    visit({ view, launch: data?.launch.id, program, op: undefined });
  },
  chooseOp(op) {
    pause();
    store.set({ steps: store.state.steps + 1, selected: op });
  },
  pointAt(line) {
    for (const panel of panels) panel.point?.(line);
  },
  goTo(route) {
    const { data, focus, pending } = store.state;
    const focused = "focus" in route ? route.focus : focus;
    // Another element of the program that is shown: nothing has to be fetched.
    if (!route.program && !route.op && !route.line) {
      // A pending request must not bring back the element that was focused before.
      store.set({ focus: focused, pending: pending && { ...pending, focus: focused } });
      remember();
      return;
    }
    visit(
      { launch: data?.launch.id, program: route.program ?? data?.program, op: route.op, focus: focused },
      route.line,
    );
  },
};
const tensors = tensorsPanel(actions);
// The chip first: its height determines the height of the tensors.
const panels: Panel[] = [
  chipPanel(actions),
  sourcePanel(actions),
  programsPanel(actions),
  opsPanel(actions),
  tensors,
];

store.on("data", ({ data }) => {
  if (data) for (const panel of panels) panel.show(data);
});
store.on("focus", ({ focus }) => tensors.focus(focus));
store.on("selected", ({ selected }) => {
  for (const panel of panels) panel.select?.(selected);
  remember();
});

/** Fetches the launches, and shows the route in the address. */
async function start() {
  // A page with its own tape has no server: it is the cluster's view alone.
  if (window.TAPE) {
    document.body.classList.add("alone");
    return visit({ view: "cluster" });
  }
  try {
    const { launches, tape } = await api.launches();
    store.set({ launches, hasTape: tape });
  } catch (error) {
    return showError(error);
  }
  const { launches, hasTape } = store.state;
  picker.replaceChildren(
    ...launches.map((launch) => {
      const text = `${launch.kernel}  ·  grid ${launch.grid.join(" × ")}  ·  #${launch.id}`;
      const option = make("option", "", text);
      option.value = String(launch.id);
      return option;
    }),
  );
  picker.disabled = !launches.length;
  const route = parseRoute(location.hash);
  if (launches.length || route.view === "cluster") return visit(route);
  if (hasTape) return visit({ view: "cluster" });
  showMessage(
    "No kernel was traced yet",
    'Put @triton_viz.trace("tracer") above a @triton.jit kernel, run it, then call triton_viz.launch().',
  );
}

/** Shows a route. Its defaults are the newest launch, its first program, and the op selected before. */
async function visit(route: Route, line?: number) {
  const was = store.state;
  const launch = route.launch ?? was.data?.launch.id ?? was.launches.at(-1)?.id ?? 0;
  const program: Program = route.program ?? [0, 0, 0];
  const visitNumber = was.visits + 1;
  const wanted = route.view ?? "kernel";
  store.set({ visits: visitNumber, pending: route });
  if (wanted === "cluster") {
    showView("cluster");
    document.title = "Cluster · Triton-Viz";
    return showCluster(was.hasTape).catch(showError);
  }
  let fetched: ProgramData;
  try {
    fetched = await api.program(launch, program);
    while (route.op && !fetched.visualization_data.some((op) => op.uuid === route.op)) {
      if (!(await more(fetched))) break;
    }
  } catch (error) {
    if (visitNumber !== store.state.visits) return;
    store.set({ requested: undefined, pending: undefined });
    return showError(error);
  }
  // A user who steps quickly requests the next program before this one has arrived.
  const { visits, pending, data, selected } = store.state;
  if (visitNumber !== visits) return;
  const same = data?.launch.id === launch;
  const before = same && selected ? data.visualization_data.indexOf(selected) : 0;
  if (!same) pause();
  picker.value = String(launch);
  document.title = `${fetched.launch.kernel} · Triton-Viz`;
  showView(wanted);
  // Another element may have been focused since this was requested.
  const focus = pending === undefined ? route.focus : pending.focus;
  store.set({ requested: undefined, pending: undefined, data: fetched, focus });
  const ops = fetched.visualization_data;
  const asked =
    ops.find((op) => op.uuid === route.op) ?? (line ? ops.find((op) => op.line === line) : undefined);
  store.set({ selected: asked ?? ops[Math.min(Math.max(before, 0), ops.length - 1)] });
  byId("issue-count").textContent = fetched.launch.issues ? String(fetched.launch.issues) : "";
  try {
    if (wanted === "profile") await showProfile(fetched, actions);
    if (wanted === "issues") await showIssues(fetched.launch, actions);
  } catch (error) {
    if (visitNumber === store.state.visits) showError(error);
  }
}

/** Fetches the next ops of a program whose ops do not fit into one answer; false if there are none. */
const more = pager((of, first) => api.program(of.launch.id, of.program, first));

function showView(name: ViewName) {
  store.set({ view: name });
  byId("message").hidden = true;
  for (const each of VIEWS) {
    byId(`view-${each}`).hidden = each !== name;
    const tab = byId(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
  }
  document.body.dataset.view = name;
}

/** Writes the shown view, program, op and element into the address. */
function remember() {
  const { data, view, selected, focus } = store.state;
  if (!data || view === "cluster") return;
  // The back button leads to the previous launch or view, not to single steps.
  const was = parseRoute(location.hash);
  const hash = formatRoute({
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

function showError(error: unknown) {
  if (!(error instanceof ApiError)) throw error;
  pause();
  if (error.gone)
    return showMessage(
      "The server does not answer",
      `${error.message} Start it again, then click Try again.`,
    );
  if (store.state.view === "cluster") return showMessage("The cluster cannot be shown", error.message);
  showMessage(
    "There is nothing at this address",
    `${error.message} Another launch may be in the list above.`,
  );
}

function showMessage(title: string, text: string) {
  for (const each of VIEWS) byId(`view-${each}`).hidden = true;
  byId("message").hidden = false;
  byId("message-title").textContent = title;
  byId("message-text").textContent = text;
}

function stepProgram(by: number) {
  const { data, requested } = store.state;
  if (!data) return;
  // Keys come faster than answers: a step starts at the program that was requested last.
  const position = positionOf(data.launch.grid, requested ?? data.program) + by;
  if (position < 0 || position >= countOf(data.launch.grid)) return;
  const to = programAt(data.launch.grid, position);
  actions.chooseProgram(to);
  store.set({ requested: to });
}

/** Selects an op by its number, and fetches it first if necessary. */
async function stepTo(number: number | undefined) {
  const { data: asked } = store.state;
  if (!asked || number === undefined || number < 0 || number >= asked.total) return pause();
  const step = store.state.steps + 1;
  store.set({ steps: step });
  while (number >= asked.visualization_data.length) {
    try {
      if (!(await more(asked))) return;
    } catch (error) {
      return showError(error);
    }
  }
  // The last key or click decides, not the answer that arrives last.
  const { data, steps } = store.state;
  if (asked === data && step === steps) store.set({ selected: asked.visualization_data[number] });
}

const ops = () => store.state.data?.visualization_data ?? [];
const total = () => store.state.data?.total ?? 0;
const at = () => (store.state.selected ? ops().indexOf(store.state.selected) : -1);
const steps = {
  previous: () => stepTo(at() - 1),
  next: () => stepTo(at() + 1),
  "next-line": () => stepTo(nextLine(ops(), at()) ?? (ops().length < total() ? ops().length : undefined)),
  "next-iteration": () => stepTo(nextIteration(ops(), at()) ?? undefined),
  "previous-iteration": () => stepTo(nextIteration(ops(), at(), -1)),
};

function pause() {
  clearInterval(store.state.playing);
  store.set({ playing: undefined });
  byId("play").textContent = "▶";
  byId("play").setAttribute("aria-label", "Play");
}

function play() {
  if (store.state.playing) return pause();
  byId("play").textContent = "❚❚";
  byId("play").setAttribute("aria-label", "Pause");
  const playing = setInterval(() => {
    if (at() >= total() - 1) return pause();
    steps.next();
  }, PLAY);
  store.set({ playing });
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
      history.pushState(null, "", formatRoute({ view: "cluster" }));
      return visit({ view: "cluster" });
    }
    const { launches, data, selected, focus } = store.state;
    if (!launches.length) return start();
    visit({ view: name, launch: data?.launch.id, program: data?.program, op: selected?.uuid, focus });
  };
}
picker.onchange = () => {
  const { view } = store.state;
  // Another launch begins at its first op.
  visit({ view: view === "cluster" ? "kernel" : view, launch: Number(picker.value), program: undefined });
};
window.addEventListener("hashchange", () => visit(parseRoute(location.hash)));
// Stop playing if the server does not answer.
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
