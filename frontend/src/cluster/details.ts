// The selected instruction: its client, worker, times, and its line of the log.

import { byId, make } from "../dom";
import { formatBytes, formatSeconds } from "../format";
import type { Span } from "./tape";

/** The module and phase of an instruction; empty if the log does not have them. */
export function moduleOf({ module, phase }: Span): string {
  return [module, phase && `(${phase})`].filter(Boolean).join(" ");
}

/** Shows an instruction; `want` is called with its module if that is clicked. */
export function showInstruction(span: Span | undefined, want: (module: string) => void) {
  const hint = "Click an instruction to see its client, its worker and its times.";
  byId("instruction").replaceChildren(...(span ? partsOf(span, want) : [make("p", "muted", hint)]));
}

function partsOf(span: Span, want: (module: string) => void): Node[] {
  const { module, received, details } = span;
  const facts: [string, string][] = [
    ["from", received === undefined ? "the dispatcher" : span.client],
    ["on", span.worker],
    ["waited", formatSeconds(span.start - (received ?? span.sent))],
    ["took about", formatSeconds(span.end - span.start)],
    ["size", formatBytes(span.bytes)],
  ];
  const list = make("dl", "facts wide");
  for (const [title, fact] of facts) list.append(make("dt", "", title), make("dd", "", fact));
  const title = make("div", "card-head", make("b", "", span.label), make("span", "muted", span.command));
  if (module) {
    const button = make("button", "module-link", module);
    button.title = "Show this module only";
    button.onclick = () => want(module);
    title.append(button);
  }
  if (span.phase) title.append(make("span", "badge", span.phase));
  if (span.line) title.append(make("code", "user-line", span.line));
  const parts: Node[] = [title, list, make("pre", "", details)];
  const launch = /(?:^| )launch=(\d+)/.exec(details)?.[1];
  if (launch) {
    const link = make("a", "", "the kernel that it launched");
    link.href = `#launch=${launch}`;
    parts.push(link);
  }
  if (span.failed) parts.push(make("p", "kind bad", span.failed));
  return parts;
}
