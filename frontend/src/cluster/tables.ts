// The tables below the timeline: modules, clients, exchanges between workers, hot paths and tensors.

import { byId, make, plural, table } from "../dom";
import { formatBytes, formatSeconds, formatShare } from "../format";
import { matcher, moduleRows, secondsOf } from "./modules";
import { collectivesOf, hotRunsOf } from "./summary";
import { type Held, type Share, type Span, shardsOf, type Tape } from "./tape";

const MOST_ROWS = 200;

/** The empty sections that `showTables` and `showModules` fill. */
export function tableSections(): HTMLElement {
  const columns = [
    section("modules"),
    make("div", "column", section("shares"), section("collectives")),
    section("hot"),
    section("held"),
  ];
  return make("div", "parts in-two", ...columns);
}

function section(id: string): HTMLElement {
  const element = make("section", "panel");
  element.id = `cluster-${id}`;
  return element;
}

function fill(id: string, title: string, note: string, ...parts: Node[]) {
  const scroll = make("div", "scroll limited", ...parts);
  byId(`cluster-${id}`).replaceChildren(make("h2", "", `${title} `, make("span", "", note)), scroll);
}

/** Fills every table but that of the modules. */
export function showTables(tape: Tape) {
  fill("shares", "Clients", "their share of the workers' time", sharesTable(tape.shares));
  fill("hot", "Hot paths", "repeated sequences", ...hotTables(tape));
  fill("collectives", "Between workers", "moved or combined parts of tensors", exchangesTable(tape.spans));
  const alive = tape.held.filter((held) => !held.freed);
  const note = alive.length
    ? `${alive.length.toLocaleString("en")} alive at the end, ${tape.held.length.toLocaleString("en")} in all`
    : `all ${tape.held.length.toLocaleString("en")} were freed; showing the last`;
  fill("held", "Tensors", note, tensorsTable((alive.length ? alive : tape.held).slice(-MOST_ROWS)));
}

/** Fills the table of modules and their times; `want` is called with a module that is clicked. */
export function showModules(tape: Tape, wanted: string, want: (path: string) => void) {
  const root = byId("cluster-modules");
  const named = tape.spans.some((span) => span.module);
  root.hidden = byId("module-search").hidden = !named;
  if (!named) return;
  const all = Math.max(
    1e-12,
    tape.spans.reduce((sum, span) => sum + span.end - span.start, 0),
  );
  const found = moduleRows(tape.spans.filter(matcher(wanted, tape.spans)));
  const rows = found.map((module) => {
    const name = make("span", "module-name", module.name);
    name.style.paddingLeft = `${1.2 * module.depth}em`;
    name.title = module.path;
    const share = secondsOf(module) / all;
    const bar = make("span", "share-bar", formatShare(share));
    bar.style.setProperty("--share", String(share));
    const times = [module.forward, module.backward].map((time) => (time ? formatSeconds(time) : "–"));
    return [name, module.instructions.toLocaleString("en"), ...times, bar];
  });
  const actions = found.map((module) => () => want(module.path === wanted ? "" : module.path));
  const shown = rows.length
    ? table(["module", "instructions", "forward", "backward", "share"], rows, actions)
    : make("p", "muted", `No module is called ${wanted}.`);
  const note = make(
    "span",
    "",
    wanted ? `only ${wanted}` : "time by module; click a row to show only this module",
  );
  const head = make("h2", "", "Modules ", note);
  if (wanted) {
    const every = make("button", "", "Show all");
    every.onclick = () => want("");
    head.append(make("span", "tools-right", every));
  }
  root.replaceChildren(head, make("div", "scroll", shown));
}

function sharesTable(shares: Share[]): HTMLElement {
  const all = Math.max(
    1e-12,
    shares.reduce((sum, share) => sum + share.seconds, 0),
  );
  const rows = shares.map((share) => [
    share.client,
    share.instructions.toLocaleString("en"),
    formatBytes(share.bytes),
    formatSeconds(share.seconds),
    formatShare(share.seconds / all),
  ]);
  return table(["client", "instructions", "sent", "time", "share"], rows);
}

function exchangesTable(spans: Span[]): HTMLElement {
  const rows = collectivesOf(spans).map((kind) => [
    kind.command,
    `${kind.times.toLocaleString("en")}×`,
    formatSeconds(kind.seconds),
    make("span", "ops-chain", kind.ways.slice(0, 2).join("; ") + (kind.ways.length > 2 ? "; …" : "")),
  ]);
  if (!rows.length) return make("p", "muted", "No data moved between workers.");
  return table(["instruction", "times", "time", "from → to"], rows);
}

/** The hot paths that workers executed, if the log has them, and repeated sequences in the clients' streams. */
function hotTables(tape: Tape): Node[] {
  const runs = hotRunsOf(tape.bands).map((run) => [
    make("code", "", run.sequence.length > 12 ? `${run.sequence.slice(0, 11)}…` : run.sequence),
    run.workers.join(", "),
    `${run.times}×`,
    run.broken ? `${run.broken}×` : "–",
    formatSeconds(run.seconds),
  ]);
  const repeats = tape.hot.map((path) => [
    path.client,
    `${path.times}×`,
    plural(path.length, "instruction"),
    make("span", "ops-chain", path.ops.slice(0, 12).join(" → ") + (path.length > 12 ? " → …" : "")),
  ]);
  const parts: Node[] = [];
  if (runs.length) parts.push(table(["hot path", "workers", "times", "incomplete", "time"], runs));
  if (repeats.length) parts.push(table(["client", "repeated", "length", "ops"], repeats));
  return parts.length ? parts : [make("p", "muted", "No sequence repeats at least three times.")];
}

function tensorsTable(tensors: Held[]): HTMLElement {
  const rows = tensors.map((held) => [
    held.copyOf ? make("span", "muted", `copy of ${held.copyOf}`) : held.tensor,
    held.shape || "–",
    held.op,
    make("span", "homes", ...workersOf(held)),
    layoutOf(held),
  ]);
  return table(["tensor", "shape", "made by", "workers", "layout"], rows);
}

/** The workers that hold a tensor, each with its part. */
function workersOf(held: Held): HTMLElement[] {
  const shards = shardsOf(held);
  return held.workers.map((worker, number) => {
    const badge = make("span", "badge", worker);
    if (shards[number]) badge.append(make("code", "", ` ${shards[number]}`));
    return badge;
  });
}

/** A tensor's layout, or the number of its workers if the log does not have it. */
function layoutOf(held: Held): string {
  if (held.layout) return held.layout;
  return held.workers.length > 1 ? `over ${held.workers.length} workers` : "whole";
}
