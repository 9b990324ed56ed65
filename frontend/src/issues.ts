// The issues of the sanitizer and the race detector. A click goes to the program, the line and the element.

import { api } from "./api";
import { byId, empty, make, plural, table } from "./dom";
import type { Actions } from "./panel";
import type { IssueList, IssuePayload } from "./payloads/report_payloads";
import type { Launch } from "./types";

/** Shows a launch's issues. */
export async function showIssues(launch: Launch, actions: Actions) {
  const found = await api.issues(launch.id);
  const parts: HTMLElement[] = found.issues.map((issue) => card(issue, actions));
  if (!found.checked) {
    parts.push(
      empty(
        "No client checked this launch.",
        'Trace it with `@triton_viz.trace(["tracer", "sanitizer", "race_detector"])` and run it again.',
      ),
    );
  } else if (!parts.length) {
    parts.push(make("div", "empty good", make("p", "", "No issue was found.")));
  }
  if (found.verdicts.length) parts.push(verdicts(found, actions));
  byId("issue-list").replaceChildren(...parts);
}

function card(issue: IssuePayload, actions: Actions): HTMLElement {
  const kind = make("span", issue.verdict === "violation" ? "kind bad" : "kind", issue.kind);
  const where = issue.index && issue.tensor ? `${issue.tensor}[${issue.index.join(", ")}]` : issue.tensor;
  const facts = [`line ${issue.line}`, `program ${issue.program.join(", ")}`, where].filter(Boolean);
  const head = make("div", "card-head", kind, make("span", "muted", facts.join(" · ")));
  const button = make("button", "issue", head, make("p", "", issue.message));
  if (issue.suggestion) button.append(make("p", "suggestion", "Try: ", issue.suggestion));
  if (issue.expression) button.append(make("pre", "", issue.expression));
  button.onclick = () =>
    actions.goTo({
      program: issue.program,
      op: issue.op || undefined,
      line: issue.line,
      focus: issue.element === null ? undefined : { tensor: issue.tensor, element: issue.element },
    });
  if (!issue.others.length) return button;
  const others = issue.others.map((program) => {
    const link = make(
      "button",
      "link",
      `program ${program.join(", ")} at line ${issue.other_line || issue.line}`,
    );
    link.onclick = () => actions.goTo({ program, line: issue.other_line || issue.line });
    return link;
  });
  return make("div", "pair", button, make("div", "by", "and ", ...others));
}

function verdicts(found: IssueList, actions: Actions): HTMLElement {
  const ok = found.verdicts.filter((one) => one.verdict === "ok").length;
  const title = make(
    "h2",
    "",
    "Accesses ",
    make(
      "span",
      "",
      `${ok} of ${plural(found.verdicts.length, "access")} are ok`.replace("accesss", "accesses"),
    ),
  );
  const rows = found.verdicts.map((one) => [
    String(one.line),
    one.access,
    one.tensor,
    make("span", one.verdict === "violation" ? "kind bad" : "kind", one.verdict),
    one.proof,
  ]);
  const go = found.verdicts.map((one) => () => actions.goTo({ line: one.line }));
  return make(
    "section",
    "panel",
    title,
    table(["line", "access", "tensor", "verdict", "proof or reason"], rows, go),
  );
}
