// Paging: the ops of a large program come in several answers, each of which is fetched once.

import type { ProgramData } from "./payloads/program_payloads";

/** Fetches the answer of a program that begins with its op number `first`. */
export type Fetch = (of: ProgramData, first: number) => Promise<ProgramData>;

/**
 * A function that appends the next ops to a program; true if there were any. A call while a request is pending
 * waits for its answer.
 */
export function pager(fetch: Fetch): (of: ProgramData) => Promise<boolean> {
  const pending = new WeakMap<ProgramData, Promise<boolean>>();

  async function append(of: ProgramData): Promise<boolean> {
    const next = await fetch(of, of.visualization_data.length);
    // Paths are numbered separately in each answer.
    const shift = of.paths.length;
    of.paths.push(...next.paths);
    of.visualization_data.push(...next.visualization_data.map((op) => ({ ...op, path: op.path + shift })));
    return next.visualization_data.length > 0;
  }

  return (of) => {
    const waiting = pending.get(of);
    if (waiting) return waiting;
    if (of.visualization_data.length >= of.total) return Promise.resolve(false);
    const asked = append(of).finally(() => pending.delete(of));
    pending.set(of, asked);
    return asked;
  };
}
