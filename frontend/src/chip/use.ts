// Buffers on the chip as rows by the line that allocated them, and the use of a memory over time, which is counted in
// a program's instructions. Pure functions.

import type { SbufBuffer, SbufMemory } from "../payloads/memory_payloads";

/** Buffers of one name and one line, in as many lanes as buffers are in use at once. */
export interface Row {
  name: string;
  line: number;
  lanes: SbufBuffer[][];
  least: number;
  most: number;
}

/** The bytes of each partition that are in use from this instruction until the next level. */
export interface Level {
  from: number;
  bytes: number;
}

/** The kernel's line that allocated a buffer; 0 if it is unknown. */
export function lineOf(buffer: SbufBuffer): number {
  return buffer.path[0]?.line ?? 0;
}

/** Whether a buffer is in use at an instruction. */
export function inUse(buffer: SbufBuffer, time: number): boolean {
  return buffer.start <= time && time <= buffer.end;
}

/** The buffers of one memory as rows, in order of their first allocation. */
export function rowsOf(buffers: SbufBuffer[]): Row[] {
  const rows = new Map<string, Row>();
  for (const buffer of buffers) {
    const size = buffer.bytes_per_partition;
    const key = `${buffer.name} ${lineOf(buffer)}`;
    const row = rows.get(key) ?? {
      name: buffer.name,
      line: lineOf(buffer),
      lanes: [],
      least: size,
      most: size,
    };
    rows.set(key, row);
    [row.least, row.most] = [Math.min(row.least, size), Math.max(row.most, size)];
    const free = row.lanes.find((lane) => (lane.at(-1)?.end ?? -1) < buffer.start);
    if (free) free.push(buffer);
    else row.lanes.push([buffer]);
  }
  return [...rows.values()];
}

/** The use of a memory over time. */
export function levelsOf(buffers: SbufBuffer[]): Level[] {
  const changes = new Map<number, number>();
  const change = (time: number, bytes: number) => changes.set(time, (changes.get(time) ?? 0) + bytes);
  for (const { start, end, bytes_per_partition: bytes } of buffers) {
    change(start, bytes);
    change(end + 1, -bytes);
  }
  let bytes = 0;
  return [...changes.keys()]
    .sort((a, b) => a - b)
    .map((from) => {
      bytes += changes.get(from) ?? 0;
      return { from, bytes };
    });
}

/** The use at one instruction. */
export function levelAt(levels: Level[], time: number): number {
  return levels.findLast((level) => level.from <= time)?.bytes ?? 0;
}

/** The upper end of a memory's axis, and whether it includes the capacity: not if the peak is far below it. */
export function scaleOf({ peak, capacity }: SbufMemory): { top: number; within: boolean } {
  const within = peak > 0.3 * capacity;
  return { top: Math.max(1, within ? 1.1 * Math.max(peak, capacity) : 1.5 * peak), within };
}
