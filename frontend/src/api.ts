// The server's endpoints. Answers are not cached here.

import type {
  BinaryHeader,
  ElementTip,
  Histogram,
  SbufTimeline,
  TrafficTable,
} from "./payloads/memory_payloads";
import type { LineTable, OpCode, ProgramData } from "./payloads/program_payloads";
import type { IssueList, Profile } from "./payloads/report_payloads";
import type { LaunchList, TapeSlice } from "./payloads/server_payloads";
import type { Program } from "./types";

/** A failed request. `gone` is true if no server answered. */
export class ApiError extends Error {
  readonly gone: boolean;

  constructor(message: string, gone: boolean) {
    super(message);
    this.gone = gone;
  }
}

/** Which cells of a matrix to fetch: see `Window` in tensor_tiles.py. */
export interface Window {
  columns: number;
  top: number;
  left: number;
  across: number;
  down: number;
  bin_x: number;
  bin_y: number;
}

/** One array of numbers, one for each cell, with its limits over the whole matrix. */
export interface Cells {
  across: number;
  down: number;
  numbers: Float32Array | Uint8Array;
  low: number | null;
  high: number | null;
}

let pending = 0;

type Fields = Record<string, string | number | number[] | undefined>;

/** One function for each endpoint. */
export const api = {
  launches: () => getJson<LaunchList>("launches", {}),
  program: (launch: number, program: Program, first?: number) =>
    getJson<ProgramData>("data", { launch, program, first }),
  sbuf: (launch: number, program: Program) => getJson<SbufTimeline>("sbuf", { launch, program }),
  traffic: (launch: number) => getJson<TrafficTable>("traffic", { launch }),
  lines: (launch: number) => getJson<LineTable>("lines", { launch }),
  code: (uuid: string) => getJson<OpCode>("op_code", { uuid }),
  histogram: (uuid: string, bins: number) => getJson<Histogram>("histogram", { uuid, bins }),
  element: (launch: number, tensor: string, element: number, program: Program, op?: string) =>
    getJson<ElementTip>("element", { launch, tensor, element, program, op }),
  issues: (launch: number) => getJson<IssueList>("issues", { launch }),
  profile: (launch: number) => getJson<Profile>("profile", { launch }),
  tape: (start?: number) => getJson<TapeSlice>("tape", { start }),
  programs: (launch: number, metric: string, window: Window) =>
    getCells("programs", { launch, metric, ...window }),
  tile: (launch: number, tensor: string, program: Program, fields: Fields, window: Window) =>
    getCells("tensor", { launch, tensor, program, ...fields, ...window }),
};

async function getJson<T>(path: string, fields: Fields): Promise<T> {
  return (await ask(path, fields, (response) => response.json())) as T;
}

async function getCells(path: string, fields: Fields): Promise<Cells> {
  return unpack((await ask(path, fields, (response) => response.arrayBuffer())) as ArrayBuffer);
}

async function ask(path: string, fields: Fields, read: (response: Response) => Promise<unknown>) {
  const query = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value)).replaceAll("%2C", ",")}`);
  let response: Response;
  let body: unknown;
  countPending(1);
  try {
    // A launch's data changes when its kernel runs again, so no answer is reused.
    response = await fetch(`api/${path}${query.length ? "?" : ""}${query.join("&")}`, { cache: "no-store" });
    body = response.ok ? await read(response) : await response.json();
  } catch {
    document.dispatchEvent(new Event("gone"));
    throw new ApiError("The program that serves this page does not answer.", true);
  } finally {
    countPending(-1);
  }
  if (!response.ok) {
    throw new ApiError(
      (body as { error?: string }).error ?? `The server answered ${response.status}.`,
      false,
    );
  }
  return body;
}

/** Counts pending requests in the document's `data-waiting`: at 0 the page has all answers. */
function countPending(more: number) {
  pending += more;
  document.documentElement.dataset.waiting = String(pending);
}

/** The first array of a binary answer: the header's length, the header, then arrays, padded to 8 bytes. */
export function unpack(buffer: ArrayBuffer): Cells {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))) as BinaryHeader;
  const [layer] = header.layers;
  const start = 8 + Math.ceil(length / 8) * 8;
  const count = header.across * header.down;
  const numbers =
    layer?.dtype === "uint8" ? new Uint8Array(buffer, start, count) : new Float32Array(buffer, start, count);
  return {
    across: header.across,
    down: header.down,
    numbers,
    low: layer?.low ?? null,
    high: layer?.high ?? null,
  };
}
