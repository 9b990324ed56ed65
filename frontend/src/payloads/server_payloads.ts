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
