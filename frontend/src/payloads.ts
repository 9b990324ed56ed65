// What the server sends. Written by `python -m tools.page_types` from triton_viz/visualizer/payloads.py:
// change it there. GLOSSARY.md says what each field means.

/** A launch, for the list of launches. */
export interface LaunchSummary {
  id: number;
  kernel: string;
  grid: [number, number, number];
  records: number;
  issues: number;
  profiled: boolean;
  values: boolean;
}

/** Every launch, oldest first. */
export interface LaunchList {
  launches: LaunchSummary[];
  tape: boolean;
}

/** The kernel's source; `first_line` is the number of `lines[0]` in its file. */
export interface SourcePayload {
  file: string;
  first_line: number;
  lines: string[];
}

/** A tensor argument of the launch. */
export interface TensorPayload {
  name: string;
  shape: number[];
  strides: number[];
  dtype: string;
  address: number;
  itemsize: number;
}

/** A line of source, by its file's name without the folder. */
export interface SitePayload {
  file: string;
  line: number;
  function: string;
}

/** A load, a store or an atomic. The tiles of its tensor show the accessed elements. */
export interface AccessPayload {
  uuid: string;
  type: string;
  line: number;
  path: number;
  iterations: [number, number][];
  fields: Record<string, unknown>;
  tensor: string;
  block: number[];
  touched: number;
  masked: number;
  outside: number;
  bytes: number;
  operation: string;
}

/** A product of two tiles, and the most likely accesses of these tiles; empty if there are none. */
export interface DotPayload {
  uuid: string;
  type: string;
  line: number;
  path: number;
  iterations: [number, number][];
  fields: Record<string, unknown>;
  left: number[];
  right: number[];
  result: number[];
  dtype: string;
  left_op: string;
  right_op: string;
  result_op: string;
}

/** The fields of every op. `fields` has those of its type, for the type's renderer. */
export interface OpPayload {
  uuid: string;
  type: string;
  line: number;
  path: number;
  iterations: [number, number][];
  fields: Record<string, unknown>;
}

/** One program of one launch: the first request of the page. */
export interface ProgramData {
  launch: LaunchSummary;
  program: [number, number, number];
  source: SourcePayload;
  tensors: TensorPayload[];
  paths: SitePayload[][];
  visualization_data: (AccessPayload | DotPayload | OpPayload)[];
  first: number;
  total: number;
  sbuf: number;
}

/** A memory on the chip, in bytes of each partition. */
export interface SbufMemory {
  memory: string;
  capacity: number;
  peak: number;
  peak_at: number;
}

/** A buffer on the chip, from the first instruction of its program that uses it to the last. */
export interface SbufBuffer {
  memory: string;
  name: string;
  shape: number[];
  dtype: string;
  partitions: number;
  bytes_per_partition: number;
  start: number;
  end: number;
  path: SitePayload[];
  iterations: [number, number][];
}

/** How one program used the memories on the chip. */
export interface SbufTimeline {
  memories: SbufMemory[];
  events: SbufBuffer[];
  total: number;
  instructions: number;
}

/** Bytes that all programs moved between one tensor and the kernel. */
export interface Traffic {
  type: string;
  tensor: string;
  ops: number;
  elements: number;
  masked: number;
  bytes: number;
}

/** The traffic of each tensor, separately for loads, stores and atomics, in order of first use. */
export interface TrafficTable {
  analysis: Traffic[];
}

/** Totals of all programs at one line of the kernel. */
export interface LineHeat {
  line: number;
  ops: number;
  bytes: number;
  elements: number;
  masked: number;
  issues: number;
}

/** Each line that has ops or issues. */
export interface LineTable {
  lines: LineHeat[];
}

/** One step of a call path, with the source around it. */
export interface CodeFrame {
  file: string;
  line: number;
  function: string;
  first_line: number;
  lines: string[];
}

/** The source lines of an op, the kernel's line first. */
export interface OpCode {
  uuid: string;
  frames: CodeFrame[];
}

/** The distribution of values. */
export interface Histogram {
  name: string;
  counts: number[];
  edges: number[];
  elements: number;
  nan: number;
  infinite: number;
  lowest: number | string | null;
  highest: number | string | null;
  mean: number | null;
}

/** One array of a binary answer: a number for each cell, row by row. */
export interface BinaryLayer {
  name: string;
  dtype: string;
  low: number | null;
  high: number | null;
}

/** The header of a binary answer, before its arrays. */
export interface BinaryHeader {
  across: number;
  down: number;
  layers: BinaryLayer[];
}

/** An op of the program that has an element in its block. */
export interface Toucher {
  uuid: string;
  type: string;
  line: number;
  masked: boolean;
}

/** One element: its index, address, value, and the ops that have it in their blocks. */
export interface ElementTip {
  tensor: string;
  index: number[];
  element: number;
  address: string;
  value: number | boolean | string | null;
  touched_by: Toucher[];
}

/** A violation, with one program that shows it. */
export interface IssuePayload {
  kind: string;
  verdict: string;
  message: string;
  suggestion: string;
  expression: string;
  tensor: string;
  index: number[] | null;
  element: number | null;
  program: [number, number, number];
  others: [number, number, number][];
  line: number;
  other_line: number;
  op: string;
}

/** The sanitizer's verdict for one access. */
export interface VerdictPayload {
  line: number;
  access: string;
  tensor: string;
  verdict: string;
  proof: string;
}

/** All issues of a launch, and the verdicts of accesses without one. */
export interface IssueList {
  issues: IssuePayload[];
  verdicts: VerdictPayload[];
  checked: boolean;
}

/** A line of source code. */
export interface Site {
  file: string;
  line: number;
  function: string;
}

/** Accesses of one line to one tensor. */
export interface SiteTraffic {
  site: Site[];
  kind: string;
  tensor: string;
  dtype: string;
  block: number[];
  steps: number[] | null;
  elements: number;
  masked_off: number;
  bytes: number;
  error: number;
  mask_waste: number;
  most_used: number[];
  requests: number;
  sectors: number;
  sectors_per_request: number;
  coalescing: number;
  distinct_bytes: number;
  distinct_in_programs: number;
  repeats_in_program: number;
  repeats_across: number;
  exact: boolean;
}

/** Accesses of the whole kernel to one tensor. */
export interface TensorTraffic {
  tensor: string;
  shape: number[];
  dtype: string;
  loaded: number;
  stored: number;
  atomics: number;
  distinct_loaded: number;
  distinct_stored: number;
  repeats_in_program: number;
  repeats_across: number;
  exact: boolean;
}

/** The arithmetic of one line. */
export interface Work {
  site: Site[];
  unit: string;
  precision: string;
  flops: number;
}

/** A loop of the kernel. */
export interface Loop {
  file: string;
  line: number;
  kind: string;
  unrolled: boolean;
  trips_least: number;
  trips_most: number;
  trips_total: number;
}

/** How evenly bytes or flops are distributed over the programs. */
export interface Balance {
  of: string;
  least: number;
  median: number;
  most: number;
  mean: number;
  imbalance: number;
  heaviest: [number, number, number][];
  lightest: [number, number, number];
}

/** How often atomics of a tensor update one element. */
export interface Contention {
  tensor: string;
  updates: number;
  elements: number;
  hottest: number[] | number;
  hits: number;
  mean: number;
}

/** Lower bounds of the run time on a device. */
export interface Roofline {
  device: string;
  flops: number;
  least_bytes: number;
  most_bytes: number;
  memory_bytes: number;
  intensity: number;
  ridge: number;
  bound: string;
  seconds: number;
  attainable: number;
}

/** Compiled instructions of one line of source. */
export interface CompiledLine {
  file: string;
  line: number;
  instructions: string[];
  ttgir: string[];
  widths: number[];
}

/** The compiled kernel, for a GPU that need not be present. */
export interface Compiled {
  target: string;
  language: string;
  error: string;
  registers: number | null;
  spills: number | null;
  shared: number | null;
  warps: number | null;
  lines: CompiledLine[];
}

/** A suggested change. */
export interface Finding {
  kind: string;
  message: string;
  change: string;
  cost: number;
  file: string;
  line: number;
  tensor: string;
}

/** One launch of one kernel. */
export interface KernelReport {
  kernel: string;
  file: string;
  line: number;
  grid: [number, number, number];
  programs: number;
  ran: number;
  skipped: string[];
  loaded: number;
  stored: number;
  loaded_error: number;
  stored_error: number;
  flops: number;
  flops_error: number;
  integer_ops: number;
  sites: SiteTraffic[];
  tensors: TensorTraffic[];
  work: Work[];
  loops: Loop[];
  balance: Balance[];
  contention: Contention[];
  roofline: Roofline;
  compiled: Compiled | null;
  findings: Finding[];
}

/** The peak rates of the roofline's device. */
export interface DeviceRoof {
  name: string;
  flops: number;
  bandwidth: number;
}

/** The work of one engine, over all programs. */
export interface EngineWork {
  engine: string;
  instructions: number;
  seconds: number;
  occupancy: number;
  flops: number;
}

/** Transfers from one memory to another, over all programs. */
export interface Move {
  source: string;
  destination: string;
  bytes: number;
}

/** Bytes that instructions read from and wrote to a memory, and its peak use. */
export interface MemoryUse {
  memory: string;
  read: number;
  written: number;
  peak: number;
  capacity: number;
}

/** The work of each engine and memory of the chip, over all programs. */
export interface ChipReport {
  target: string;
  engines: EngineWork[];
  moves: Move[];
  memories: MemoryUse[];
  flops: number;
  hbm_bytes: number;
  intensity: number;
  bound: string;
  seconds: number;
}

/** The profiler's report; None if the launch was not profiled. `chip` is there if the backend counts. */
export interface Profile {
  report: KernelReport | null;
  device: DeviceRoof | null;
  chip: ChipReport | null;
}

/** A piece of GT's instruction log, whole lines only. */
export interface TapeSlice {
  name: string;
  text: string;
  start: number;
  end: number;
  size: number;
  live: boolean;
}

/** The answer to a request that failed. */
export interface ApiProblem {
  error: string;
}
