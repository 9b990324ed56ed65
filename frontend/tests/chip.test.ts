// Buffers on the chip: rows by where they were allocated, and how full a memory is over time.

import { describe, expect, it } from "vitest";
import { inUse, levelAt, levelsOf, rowsOf, scaleOf } from "../src/chip/use";
import type { SbufBuffer } from "../src/payloads/memory_payloads";

function buffer(name: string, line: number, start: number, end: number, bytes = 4): SbufBuffer {
  return {
    memory: "SBUF",
    name,
    shape: [128, bytes / 4],
    dtype: "float32",
    partitions: 128,
    bytes_per_partition: bytes,
    start,
    end,
    path: [{ file: "k.py", line, function: "k" }],
    iterations: [],
  };
}

describe("rows", () => {
  it("hold what one line allocates under one name, next to each other where their times allow", () => {
    const rows = rowsOf([buffer("a", 1, 1, 2), buffer("b", 2, 1, 9), buffer("a", 1, 3, 4)]);
    expect(rows.map((row) => [row.name, row.lanes.length])).toEqual([
      ["a", 1],
      ["b", 1],
    ]);
  });
  it("have a lane for each that is in use at once", () => {
    const [row] = rowsOf([buffer("a", 1, 1, 5), buffer("a", 1, 5, 6, 64), buffer("a", 1, 6, 7)]);
    expect(row?.lanes.map((lane) => lane.length)).toEqual([2, 1]);
    expect([row?.least, row?.most]).toEqual([4, 64]);
  });
  it("tell apart equal names of different lines", () => {
    expect(rowsOf([buffer("tile", 1, 1, 1), buffer("tile", 2, 2, 2)])).toHaveLength(2);
  });
});

describe("what is in use", () => {
  const levels = levelsOf([buffer("a", 1, 1, 3, 8), buffer("b", 2, 3, 4, 16)]);
  it("counts a buffer from its first use to its last, both included", () => {
    expect([0, 1, 2, 3, 4, 5].map((time) => levelAt(levels, time))).toEqual([0, 8, 8, 24, 16, 0]);
    expect(inUse(buffer("a", 1, 1, 3), 3)).toBe(true);
    expect(inUse(buffer("a", 1, 1, 3), 4)).toBe(false);
  });
  it("is nothing where there is none", () => expect(levelsOf([])).toEqual([]));
});

describe("the scale", () => {
  it("reaches the capacity once a good part of it is used, and beyond if it is exceeded", () => {
    expect(scaleOf({ memory: "PSUM", capacity: 100, peak: 50, peak_at: 1 })).toMatchObject({ within: true });
    expect(scaleOf({ memory: "PSUM", capacity: 100, peak: 300, peak_at: 1 }).top).toBeGreaterThan(300);
  });
  it("shows what is small as large as it can", () => {
    expect(scaleOf({ memory: "SBUF", capacity: 1e6, peak: 10, peak_at: 1 })).toEqual({
      top: 15,
      within: false,
    });
  });
});
