// The interface of the page's panels, and the actions that they may call.

import type { ProgramData } from "./payloads/program_payloads";
import type { Op, Program } from "./types";

/** One part of the page. `show` receives each newly fetched program, `select` each selected op. */
export interface Panel {
  show(data: ProgramData): void;
  select?(op: Op | undefined): void;
  /** Points at a line of the kernel, which may have no op. */
  point?(line: number): void;
}

/** The focused element of a tensor. */
export interface Focus {
  tensor: string;
  element: number;
}

/** The actions that a panel may call, such as on a click. */
export interface Actions {
  chooseProgram(program: Program): void;
  chooseOp(op: Op | undefined): void;
  /** Marks a line of the kernel, besides the selected op's. */
  pointAt(line: number): void;
  /** Shows the kernel at a program, an op (or any op of a line) and an element of it. */
  goTo(route: { program?: Program; op?: string; line?: number; focus?: Focus }): void;
}
