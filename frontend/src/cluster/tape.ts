// Parses GT's instruction log, and derives the times and the client and worker of each instruction.
// gt/inspect/timeline.py reads the same format for files and pictures. Pure functions.

/** One line of the tape. */
export interface Entry {
  time: number;
  sequence: number;
  event: string;
  /** CLIENT or WORKER. */
  role: string;
  name: string;
  command: string;
  bytes: number;
  details: string;
}

/** One instruction on one worker: the times at which it was sent, began and ended. */
export interface Span {
  command: string;
  /** The op's name, or the command's. */
  label: string;
  client: string;
  worker: string;
  /** When the dispatcher received it from the client; undefined if the dispatcher added it. */
  received: number | undefined;
  sent: number;
  start: number;
  end: number;
  /** When the answer to its chunk arrived. */
  answered: number;
  bytes: number;
  details: string;
  failed: string;
  tensor: string;
  isOp: boolean;
  /** The path of its PyTorch module, or `AdamW.step`; empty outside of modules. */
  module: string;
  /** Empty in a forward pass, otherwise `backward` or `recompute`. */
  phase: string;
  /** The line of the user's code: `FILE:LINE`. */
  line: string;
}

/** A tensor on a worker, possibly freed. */
export interface Held {
  tensor: string;
  /** The tensor of which it is a copy in another layout; empty if it is not a copy. */
  copyOf: string;
  shape: string;
  dtype: string;
  layout: string;
  /** The length of each worker's part along the split axis; empty if unknown. */
  parts: number[];
  op: string;
  workers: string[];
  freed: boolean;
}

/** One execution of a hot path on a worker; incomplete if the stream deviated from it. */
export interface HotBand {
  worker: string;
  sequence: string;
  from: number;
  to: number;
  complete: boolean;
}

/** A client's share of the work. */
export interface Share {
  client: string;
  instructions: number;
  bytes: number;
  seconds: number;
}

/** A sequence of instructions that repeats. */
export interface HotPath {
  client: string;
  length: number;
  times: number;
  ops: string[];
}

/** A parsed log, and what is derived from it. */
export interface Tape {
  entries: Entry[];
  spans: Span[];
  clients: string[];
  workers: string[];
  held: Held[];
  shares: Share[];
  hot: HotPath[];
  bands: HotBand[];
  unread: number;
  first: number;
  last: number;
}

const UNITS: Record<string, number> = { B: 1, KB: 1024, MB: 1 << 20, GB: 1 << 30 };
const QUIET = new Set(["FreeTensor", "Site", ""]);
/** The instructions that move parts of tensors between workers, or combine them. */
export const EXCHANGES = new Set([
  "AllGather",
  "AllReduce",
  "AllToAll",
  "Move",
  "Reduce",
  "ReduceScatter",
  "ShardOp",
]);
const HOT_MARK = /HotPath(Start|End)$/;
const LONGEST_PATH = 400;

/** Parses one line; undefined if it is not a line of a tape. */
export function readLine(line: string): Entry | undefined {
  const fields = line.split("|");
  const [elapsed = "", number = "", event = "", source = "", command = "", size = ""] = fields.map((field) =>
    field.trim(),
  );
  const time = /^(\d+(?:\.\d+)?)s$/.exec(elapsed);
  const sequence = /^#(\d+)$/.exec(number);
  const bytes = /^(\d+(?:\.\d+)?)([KMG]?B)$/.exec(size);
  const [role = "", ...name] = source.split(" ");
  if (!time || !sequence || !bytes || !event || !role) return undefined;
  return {
    time: Number(time[1]),
    sequence: Number(sequence[1]),
    event,
    role,
    name: name.join(" "),
    command,
    bytes: Number(bytes[1]) * (UNITS[bytes[2] ?? "B"] ?? 1),
    details: fields.slice(6).join("|").trim(),
  };
}

/** The value of a key in an instruction's details. */
export function detail(details: string, key: string): string {
  return new RegExp(`(?:^| )${key}=(\\S+)`).exec(details)?.[1] ?? "";
}

/** The end of a text, in whole lines, so that the log of a long-running server does not exhaust the browser's memory. */
export function endOf(text: string, most: number): string {
  return text.length <= most ? text : text.slice(text.indexOf("\n", text.length - most - 1) + 1);
}

/** Reads a whole log. */
export function readTape(text: string): Tape {
  const entries: Entry[] = [];
  let unread = 0;
  for (const line of text.split("\n")) {
    const entry = readLine(line);
    if (entry) entries.push(entry);
    else if (line.trim()) unread++;
  }
  const spans = spansOf(entries);
  const named = (role: string) => [
    ...new Set(entries.filter((entry) => entry.role === role).map((e) => e.name)),
  ];
  return {
    entries,
    spans,
    clients: named("CLIENT"),
    workers: named("WORKER"),
    held: heldOf(spans, layoutsOf(entries)),
    shares: sharesOf(entries, spans),
    hot: hotPaths(entries),
    bands: bandsOf(entries, spans),
    unread,
    first: entries[0]?.time ?? 0,
    last: entries.at(-1)?.time ?? 0,
  };
}

/** The module, the phase and the user's line of an op: the end of its details. */
function siteOf(details: string): Pick<Span, "module" | "phase" | "line"> {
  const [, module = "", phase = "", line = ""] =
    /(?: module=(\S+))?(?: phase=(\w+))?(?: at=(.+))?$/.exec(details) ?? [];
  return { module, phase, line };
}

/** The key that identifies an instruction, such as `result=c1_3`. */
function subject(details: string): string {
  return /(?:^| )((?:result|tensor_id|site)=\S+)/.exec(details)?.[1] ?? "";
}

function spansOf(entries: Entry[]): Span[] {
  const asked = new Map<string, Entry[]>();
  const taken = new Map<string, number>();
  const waiting = new Map<string, Span[]>();
  const done: Span[] = [];
  const push = <T>(map: Map<string, T[]>, key: string, value: T) => {
    const list = map.get(key);
    if (list) list.push(value);
    else map.set(key, [value]);
  };
  let client = "";
  for (const entry of entries) {
    if (HOT_MARK.test(entry.command)) continue; // a mark is not an instruction
    const about = subject(entry.details);
    if (entry.event === "RECV") {
      // The client's tensor numbers, in the form of the workers' lines.
      const [key, value] = about.split("=");
      push(asked, `${entry.command} ${key === "site" ? about : `${key}=${entry.name}_${value}`}`, entry);
    } else if (entry.event === "WORKER_SEND") {
      const command = entry.command.replace(/^Worker/, "");
      // Each worker receives requests in order; one instruction may go to several workers.
      const key = `${command} ${about}`;
      const number = taken.get(`${entry.name} ${key}`) ?? 0;
      taken.set(`${entry.name} ${key}`, number + 1);
      const origin = asked.get(key)?.[number] ?? asked.get(key)?.at(-1);
      const tensor = /=(.+)_(\d+)$/.exec(about);
      client = tensor?.[1] ?? origin?.name ?? client;
      const span: Span = {
        command,
        label: detail(entry.details, "op") || command,
        client,
        worker: entry.name,
        received: origin?.time,
        sent: entry.time,
        start: entry.time,
        end: Number.NaN,
        answered: Number.NaN,
        bytes: entry.bytes,
        details: entry.details,
        failed: "",
        tensor: tensor ? `${tensor[1]}_${tensor[2]}` : "",
        isOp: detail(entry.details, "op") !== "",
        ...siteOf(entry.details),
      };
      push(waiting, `${entry.name} ${entry.command} ${about}`, span);
      done.push(span);
    } else if (entry.event === "WORKER_RECV") {
      // An answer without a key belongs to the oldest pending instruction of its type.
      const key = `${entry.name} ${entry.command} ${about}`;
      const kind = (one: string) => one.startsWith(key) && waiting.get(one)?.length;
      const span = waiting.get(about ? key : ([...waiting.keys()].find(kind) ?? ""))?.shift();
      if (!span) continue;
      span.end = span.answered = entry.time;
      const failed = /FAILED (.*)$/.exec(entry.details);
      if (failed) span.failed = failed[1] ?? "it failed";
    }
  }
  return share(done, entries.at(-1)?.time ?? 0);
}

/** A worker executes one instruction at a time: those that were sent and answered together share the time evenly. */
function share(spans: Span[], last: number): Span[] {
  const free = new Map<string, number>();
  for (let at = 0; at < spans.length; ) {
    const first = spans[at] as Span;
    let next = at;
    while (
      spans[next]?.worker === first.worker &&
      spans[next]?.sent === first.sent &&
      same(spans[next]?.end, first.end)
    )
      next++;
    const end = Number.isNaN(first.end) ? last : first.end;
    const begin = Math.min(end, Math.max(first.sent, free.get(first.worker) ?? 0));
    // Instructions that compute nothing get no time, unless there are no others.
    const together = spans.slice(at, next);
    const working = together.filter((span) => !QUIET.has(span.command)).length;
    let now = begin;
    for (const span of together) {
      span.start = now;
      if (!working || !QUIET.has(span.command)) now += (end - begin) / (working || together.length);
      span.end = now;
    }
    free.set(first.worker, end);
    at = next;
  }
  return spans;
}

function same(a: number | undefined, b: number): boolean {
  return a === b || (Number.isNaN(a) && Number.isNaN(b));
}

/** The dispatcher's lines on the layouts of tensors, by the workers' names of the tensors. */
function layoutsOf(entries: Entry[]): Map<string, Entry> {
  const found = new Map<string, Entry>();
  for (const entry of entries)
    if (entry.event === "LAYOUT") found.set(`${entry.name}_${detail(entry.details, "tensor_id")}`, entry);
  return found;
}

/** The executions of hot paths. Marks arrive with the answer to a chunk, so a path begins with its chunk. */
export function bandsOf(entries: Entry[], spans: Span[]): HotBand[] {
  const marks = entries.filter((entry) => entry.event === "WORKER_RECV" && HOT_MARK.test(entry.command));
  if (!marks.length) return [];
  const begins = new Map<string, number>();
  for (const span of spans) {
    const key = `${span.worker} ${span.answered}`;
    begins.set(key, Math.min(begins.get(key) ?? span.start, span.start));
  }
  const last = entries.at(-1)?.time ?? 0;
  const open = new Map<string, HotBand>();
  return marks.flatMap((mark): HotBand[] => {
    const sequence = detail(mark.details, "sequence");
    const key = `${mark.name} ${sequence}`;
    if (mark.command.endsWith("Start")) {
      const from = begins.get(`${mark.name} ${mark.time}`) ?? mark.time;
      const band = { worker: mark.name, sequence, from, to: last, complete: false };
      open.set(key, band);
      return [band];
    }
    const band = open.get(key);
    open.delete(key);
    if (band) [band.to, band.complete] = [mark.time, detail(mark.details, "complete") !== "False"];
    return [];
  });
}

function heldOf(spans: Span[], layouts: Map<string, Entry>): Held[] {
  const held = new Map<string, Held>();
  for (const span of spans) {
    const known = held.get(span.tensor);
    const input = held.get(detail(span.details, "input"));
    if (input) input.layout ||= placed(span.details, "from");
    if (!span.tensor || span.command === "GetData") continue;
    if (span.command === "FreeTensor") {
      if (known) known.freed = true;
    } else if (known && !known.freed) {
      if (!known.workers.includes(span.worker)) known.workers.push(span.worker);
      known.layout ||= layoutIn(span.details);
    } else {
      held.delete(span.tensor);
      held.set(span.tensor, {
        tensor: span.tensor,
        copyOf: EXCHANGES.has(span.command) ? detail(span.details, "input") : "",
        shape: detail(span.details, "of") || detail(span.details, "shape"),
        dtype: detail(span.details, "dtype"),
        layout: layoutIn(span.details),
        parts: [],
        op: span.label,
        workers: [span.worker],
        freed: false,
      });
    }
  }
  for (const one of held.values()) {
    const said = layouts.get(one.tensor)?.details;
    if (!said) continue;
    const [layout = "", workers = ""] = detail(said, "layout").split("@");
    one.layout = layout;
    if (workers) one.workers = workers.split(",");
    one.shape = detail(said, "shape");
    one.dtype = detail(said, "dtype");
    one.parts = detail(said, "parts").split(",").filter(Boolean).map(Number);
  }
  return [...held.values()];
}

/** The part of a tensor on each worker, as an index: `[0:8, :]`; empty if the tape does not have it. */
export function shardsOf(held: Held): string[] {
  const axis = Number(/^sharded\((\d+)\)$/.exec(held.layout)?.[1] ?? Number.NaN);
  const sizes = held.shape.split("x").filter((size) => /^\d+$/.test(size));
  if (Number.isNaN(axis) || held.parts.length !== held.workers.length || axis >= sizes.length) return [];
  let at = 0;
  return held.parts.map((part) => {
    const slices = sizes.map(() => ":");
    slices[axis] = `${at}:${at + part}`;
    at += part;
    return `[${slices.join(", ")}]`;
  });
}

/** The layout of an instruction's result: as logged, or derived from the shapes of the part and the tensor. */
function layoutIn(details: string): string {
  const [part, whole] = [detail(details, "shape").split("x"), detail(details, "of").split("x")];
  const axis = whole[0] ? whole.findIndex((size, at) => size !== part[at]) : -1;
  return detail(details, "layout") || placed(details, "to") || (axis < 0 ? "" : `sharded(${axis})`);
}

/** The layout in `from=sharded(0)@worker_0,worker_1`, the format of instructions that move tensors. */
function placed(details: string, key: string): string {
  const [layout = "", workers] = detail(details, key).split("@");
  return workers ? layout : "";
}

function sharesOf(entries: Entry[], spans: Span[]): Share[] {
  const shares = new Map<string, Share>();
  const of = (client: string) => {
    const found = shares.get(client) ?? { client, instructions: 0, bytes: 0, seconds: 0 };
    shares.set(client, found);
    return found;
  };
  for (const entry of entries) {
    if (entry.event !== "RECV" || !entry.command) continue;
    of(entry.name).instructions++;
    of(entry.name).bytes += entry.bytes;
  }
  for (const span of spans) if (span.client) of(span.client).seconds += span.end - span.start;
  return [...shares.values()].sort((a, b) => b.seconds - a.seconds);
}

/** For each client the sequence that repeats and covers most of its stream. */
export function hotPaths(entries: Entry[]): HotPath[] {
  const streams = new Map<string, string[]>();
  for (const entry of entries) {
    if (entry.event !== "RECV" || QUIET.has(entry.command)) continue;
    const stream = streams.get(entry.name) ?? [];
    stream.push(detail(entry.details, "op") || entry.command);
    streams.set(entry.name, stream);
  }
  return [...streams].flatMap(([client, stream]) => {
    let best: HotPath | undefined;
    for (let length = 1; length <= Math.min(LONGEST_PATH, stream.length / 3); length++) {
      let [run, longest, from] = [0, 0, 0];
      for (let at = length; at < stream.length; at++) {
        run = stream[at] === stream[at - length] ? run + 1 : 0;
        if (run > longest) [longest, from] = [run, at - run - length + 1];
      }
      const times = Math.floor(longest / length) + 1;
      // A longer sequence counts only if it covers clearly more than the shorter one that it consists of.
      if (times >= 3 && (!best || times * length > 1.2 * best.times * best.length)) {
        best = { client, length, times, ops: stream.slice(from, from + length) };
      }
    }
    return best ? [best] : [];
  });
}
