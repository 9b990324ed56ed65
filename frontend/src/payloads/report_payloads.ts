// What the server sends. Written by `python -m tools.page_types` from triton_viz/visualizer/payloads.py:
// change it there. GLOSSARY.md says what each field means.

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
