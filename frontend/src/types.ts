// What the server sends, field by field as triton_viz/visualizer writes it. GLOSSARY.md says what each means.

/** Which program of a grid, or a grid's size: along x, y and z. */
export type Program = [number, number, number];

/** One launch, as the picker shows it. */
export interface Launch {
  id: number;
  kernel: string;
  grid: Program;
  records: number;
}

/** The kernel's source; `first_line` is the number of `lines[0]` in its file. */
export interface Source {
  file: string;
  first_line: number;
  lines: string[];
}

/** A tensor argument of the launch. */
export interface Tensor {
  name: string;
  shape: number[];
  dtype: string;
}

/** What all programs together moved between one tensor and the kernel. */
export interface Traffic {
  type: string;
  tensor: string;
  ops: number;
  elements: number;
  masked: number;
  bytes: number;
}

/** What every op has. Those of an unknown type may have anything else. */
export interface Op {
  uuid: string;
  type: string;
  line: number;
}

/** A load, a store or an atomic. `elements` are positions in the tensor flattened in row-major order. */
export interface Access extends Op {
  tensor: string;
  elements: number[];
  /** Lanes that hit the memory that the tensor is a view of, but none of its elements. */
  outside: number;
  masked: number;
}

/** A product of two tiles, by their shapes. */
export interface Dot extends Op {
  left: number[];
  right: number[];
  result: number[];
}

/** One program of one launch: all that the page draws. */
export interface ProgramData {
  launch: Launch;
  program: Program;
  source: Source;
  tensors: Tensor[];
  analysis: Traffic[];
  visualization_data: Op[];
}
