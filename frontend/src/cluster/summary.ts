// Totals of a log: exchanges between workers, and executed hot paths. Pure functions.

import { detail, EXCHANGES, type HotBand, type Span } from "./tape";

/** All instructions of one type that move parts of tensors between workers or combine them. */
export interface Collective {
  command: string;
  /** The number of exchanges; one between several workers counts once. */
  times: number;
  seconds: number;
  ways: string[];
}

/** The exchanges between workers by type, the most frequent first. */
export function collectivesOf(spans: Span[]): Collective[] {
  const groups = new Map<string, Collective & { numbers: Set<string> }>();
  for (const span of spans) {
    if (!EXCHANGES.has(span.command)) continue;
    const group = groups.get(span.command) ?? {
      command: span.command,
      times: 0,
      seconds: 0,
      ways: [],
      numbers: new Set<string>(),
    };
    groups.set(span.command, group);
    group.numbers.add(detail(span.details, "number") || `${span.tensor} ${span.sent}`);
    group.times = group.numbers.size;
    group.seconds += span.end - span.start;
    const way = wayOf(span.details);
    if (way && !group.ways.includes(way)) group.ways.push(way);
  }
  return [...groups.values()].sort((a, b) => b.times - a.times);
}

/** `partial(sum) → sharded(0)`. */
function wayOf(details: string): string {
  const [from, to] = ["from", "to"].map((key) => detail(details, key).split("@")[0] ?? "");
  return from && to ? `${from} → ${to}` : "";
}

/** All runs of one hot path. */
export interface HotRuns {
  sequence: string;
  workers: string[];
  times: number;
  broken: number;
  seconds: number;
}

/** The hot paths that workers executed, the slowest first. */
export function hotRunsOf(bands: HotBand[]): HotRuns[] {
  const runs = new Map<string, HotRuns>();
  for (const band of bands) {
    const found = runs.get(band.sequence) ?? {
      sequence: band.sequence,
      workers: [],
      times: 0,
      broken: 0,
      seconds: 0,
    };
    runs.set(band.sequence, found);
    if (!found.workers.includes(band.worker)) found.workers.push(band.worker);
    found.times++;
    if (!band.complete) found.broken++;
    found.seconds += band.to - band.from;
  }
  return [...runs.values()].sort((a, b) => b.seconds - a.seconds);
}
