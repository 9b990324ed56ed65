// The text of GT's instruction log: from the server, where it may still grow, or from the page itself.

import { api } from "../api";
import type { TapeSlice } from "../payloads";
import { endOf } from "./tape";

const MOST_TEXT = 8 << 20;

/** A log, as far as it was fetched. */
export class InstructionLog {
  name = "";
  text = "";
  /** Whether lines are missing at its beginning: it is too long to show at once. */
  cut = false;
  /** Whether it comes from a server that runs. */
  live = false;
  private end: number | undefined;
  private pending: Promise<boolean> | undefined;
  private readonly fetchSlice: (start?: number) => Promise<TapeSlice>;

  constructor(fetchSlice: (start?: number) => Promise<TapeSlice> = api.tape) {
    this.fetchSlice = fetchSlice;
  }

  /** Whether an answer is on its way. */
  get fetching(): boolean {
    return this.pending !== undefined;
  }

  /** Fetches the lines that were written since; true if there are any. Two calls at a time share one answer. */
  fetchMore(): Promise<boolean> {
    // Two answers that begin at the same line would give its lines twice.
    this.pending ??= this.append().finally(() => {
      this.pending = undefined;
    });
    return this.pending;
  }

  private async append(): Promise<boolean> {
    const slice = await this.fetchSlice(this.end);
    // A log that became shorter is a new one.
    if (this.end !== undefined && slice.size < this.end) {
      [this.text, this.end] = ["", undefined];
      return this.append();
    }
    this.cut ||= this.end === undefined && slice.start > 0;
    this.cut ||= this.text.length + slice.text.length > MOST_TEXT;
    this.text = endOf(this.text + slice.text, MOST_TEXT);
    [this.name, this.end, this.live] = [slice.name, slice.end, slice.live ?? false];
    return slice.text !== "";
  }
}
