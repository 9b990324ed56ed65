// The text of GT's instruction log: from the server, where it may still grow, or from the page itself.

import { api } from "../api";
import type { TapeSlice } from "../payloads/server_payloads";
import { endOf } from "./tape";

const MOST_TEXT = 8 << 20;

/** The part of a log that was fetched. */
export class InstructionLog {
  name = "";
  text = "";
  /** Whether its beginning is missing, because the log is too long to show at once. */
  cut = false;
  /** Whether it comes from a running server. */
  live = false;
  private end: number | undefined;
  private pending: Promise<boolean> | undefined;
  private readonly fetchSlice: (start?: number) => Promise<TapeSlice>;

  constructor(fetchSlice: (start?: number) => Promise<TapeSlice> = api.tape) {
    this.fetchSlice = fetchSlice;
  }

  /** The pending request. */
  get fetching(): boolean {
    return this.pending !== undefined;
  }

  /** Fetches new lines; true if there are any. Concurrent calls share one request. */
  fetchMore(): Promise<boolean> {
    // Two requests from the same position would add the same lines twice.
    this.pending ??= this.append().finally(() => {
      this.pending = undefined;
    });
    return this.pending;
  }

  private async append(): Promise<boolean> {
    const slice = await this.fetchSlice(this.end);
    // A log that became shorter was replaced.
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
