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
