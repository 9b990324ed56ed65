// The interface of the page's panels, and the actions that they may call.

import type { ProgramData } from "./payloads";
import type { Op, Program } from "./types";

/** One part of the page. `show` gets each newly fetched program; `select` each op chosen in it. */
export interface Panel {
  show(data: ProgramData): void;
  select?(op: Op | undefined): void;
  /** Points at a line of the kernel, which may have no op. */
  point?(line: number): void;
}

/** An element of a tensor that is pointed at. */
export interface Focus {
  tensor: string;
  element: number;
}

/** What a panel asks for when it is clicked. */
export interface Actions {
  chooseProgram(program: Program): void;
  chooseOp(op: Op | undefined): void;
  /** Shows a line of the kernel, besides the selected op's. */
  pointAt(line: number): void;
  /** Shows the kernel at a program, an op (or any op of a line) and an element of it. */
  goTo(place: { program?: Program; op?: string; line?: number; focus?: Focus }): void;
}
