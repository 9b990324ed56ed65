// The time of a PyTorch program by module, as a tree. gt/inspect/modules.py does the same for the terminal. Pure
// functions.

import type { Span } from "./tape";

export const MOST_MODULES = 20;
/** The name for instructions outside of modules. */
const OUTSIDE = "(no module)";

/** A module with all its submodules. */
export interface Module {
  path: string;
  /** The last part of its path, without the path of its parent. */
  name: string;
  depth: number;
  instructions: number;
  forward: number;
  /** The seconds of backward passes, including recomputation. */
  backward: number;
  /** Whether it has instructions of its own. */
  own: boolean;
  parts: Map<string, Module>;
}

/** The time of a module on workers, forward and backward. */
export function secondsOf(module: Module): number {
  return module.forward + module.backward;
}

/** The rows of a table of modules: the slowest ones with their submodules below them, the slowest first. */
export function moduleRows(spans: Span[], most = MOST_MODULES): Module[] {
  const root = newModule("", "");
  for (const span of spans) if (span.isOp) add(root, span);
  const tops = partsOf(root);
  const shown = new Set(tops);
  const waiting = [...tops];
  for (;;) {
    waiting.sort((a, b) => secondsOf(a) - secondsOf(b));
    const largest = waiting.pop();
    if (!largest) break;
    const parts = partsOf(largest);
    if (!parts.length || shown.size + parts.length > most) continue;
    for (const part of parts) shown.add(part);
    waiting.push(...parts);
  }
  const list = (modules: Module[], depth: number): Module[] =>
    modules
      .filter((one) => shown.has(one))
      .flatMap((one) => {
        one.depth = depth;
        return [one, ...list(partsOf(one), depth + 1)];
      });
  return list(tops, 0).slice(0, most);
}

function newModule(path: string, name: string): Module {
  return { path, name, depth: 0, instructions: 0, forward: 0, backward: 0, own: false, parts: new Map() };
}

function add(root: Module, span: Span) {
  let module = root;
  for (const name of span.module ? span.module.split(".") : [OUTSIDE]) {
    const path = module.path ? `${module.path}.${name}` : name;
    const part = module.parts.get(name) ?? newModule(path, name);
    module.parts.set(name, part);
    module = part;
    module.instructions++;
    module[span.phase ? "backward" : "forward"] += span.end - span.start;
  }
  module.own = true;
}

/** A module's submodules, the slowest first. A single submodule is replaced by its own submodules. */
function partsOf(module: Module): Module[] {
  return [...module.parts.values()].map(joined).sort((a, b) => secondsOf(b) - secondsOf(a));
}

function joined(module: Module): Module {
  let found = module;
  while (found.parts.size === 1 && !found.own) {
    const [only] = [...found.parts.values()] as [Module];
    only.name = only.path.slice(found.path.length - found.name.length);
    found = only;
  }
  return found;
}

/** Whether a path names a module of this name or one of its submodules. A name is one or several parts of a path, such
 * as `layers.0`, or, if no module has it, the beginning of one. */
export function matcher(wanted: string, spans: Span[]): (span: Span) => boolean {
  const name = wanted.trim();
  if (!name) return () => true;
  if (name === OUTSIDE) return (span) => span.isOp && !span.module;
  const whole = (span: Span) => `.${span.module}.`.includes(`.${name}.`);
  return spans.some(whole) ? whole : (span) => `.${span.module}`.includes(`.${name}`);
}
