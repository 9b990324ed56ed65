// What a panel of the page is, and what it may ask for.

import type { Op, Program, ProgramData } from "./types";

/** One part of the page. `show` gets each newly fetched program; `select` each op chosen in it. */
export interface Panel {
  show(data: ProgramData): void;
  select?(op: Op | undefined): void;
}

/** What a panel asks for when it is clicked. */
export interface Actions {
  chooseProgram(program: Program): void;
  chooseOp(op: Op | undefined): void;
}
