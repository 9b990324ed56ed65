// What the server sends. Written by `python -m tools.page_types` from triton_viz/visualizer/payloads.py:
// change it there. GLOSSARY.md says what each field means.

/** A memory on the chip, in bytes of each partition. */
export interface SbufMemory {
  memory: string;
  capacity: number;
  peak: number;
  peak_at: number;
}

/** A line of source, by its file's name without the folder. */
export interface SitePayload {
  file: string;
  line: number;
  function: string;
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
