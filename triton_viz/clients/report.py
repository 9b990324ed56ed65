"""Reports of issues: on the terminal, as JSON and as SARIF.

An issue is reported the same way by every client: the violation, the tensor and element, the program, the
lines of source, and a suggestion.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from triton_viz.clients.sanitizer.verdict import Verdict
from triton_viz.core.data import Issue, Launch, Site

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_AROUND = 2
"""The number of source lines to show before and after the line of an issue."""
_WARNINGS = ("benign race",)
"""The kinds of issues that are warnings, not errors."""


def issues_of(launches: Launch | Iterable[Launch]) -> list[tuple[Launch, Issue]]:
    """The issues of all launches, each with its launch."""
    given = [launches] if isinstance(launches, Launch) else launches
    return [(launch, record) for launch in given for record in launch.records if isinstance(record, Issue)]


def violations(launches: Launch | Iterable[Launch]) -> list[Issue]:
    """The issues that are errors, not only warnings or notes."""
    return [issue for _, issue in issues_of(launches) if level(issue) == "error"]


def level(issue: Issue) -> str:
    """The severity of an issue: `error`, `warning` (no effect on this launch) or `note` (undecided)."""
    if issue.verdict != "violation":
        return "note"
    return "warning" if issue.kind in _WARNINGS else "error"


# --- on the terminal ---

_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def print_issues(launches: Launch | Iterable[Launch], console: Console | None = None) -> None:
    """Print the issues to the terminal, a panel for each."""
    console = console or Console(stderr=True)
    for launch, issue in issues_of(launches):
        style = _STYLES[level(issue)]
        title = Text(f"{issue.kind} in kernel {launch.kernel}", style)
        if issue.verdict != "violation":
            title.append(f" ({issue.verdict})")
        console.print(
            Panel(Group(*_body(launch, issue)), title=title, title_align="left", border_style=style)
        )


def print_summary(launches: Sequence[Launch], name: str, console: Console | None = None) -> None:
    """Print one line: the launches and accesses that were checked, and the violations."""
    console = console or Console(stderr=True)
    verdicts = [record for launch in launches for record in launch.records if isinstance(record, Verdict)]
    found, bad = len(issues_of(launches)), len(violations(launches))
    text = f"{name}: {_count(len(launches), 'launch', 'launches')}"
    if verdicts:
        proofs = [v.proof if v.verdict == "ok" else v.verdict for v in verdicts]
        order = ("proved", "checked", "violation", "undecided")
        counts = [f"{proofs.count(proof)} {proof}" for proof in order if proof in proofs]
        text += f", {_count(len(verdicts), 'access', 'accesses')} ({', '.join(counts)})"
    text += f", {_count(bad, 'violation', 'violations')}"
    if found > bad:
        text += f", {_count(found - bad, 'other issue', 'other issues')}"
    console.print(Text(text, "bold red" if bad else "green"), soft_wrap=True)


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _body(launch: Launch, issue: Issue) -> Iterable[Any]:
    yield Text(issue.message)
    yield from _facts(launch, issue)
    other = issue.other_path if issue.other_path != issue.call_path else ()
    for label, path in (("", issue.call_path), ("and ", other)):
        for depth, site in enumerate(path):
            called = "called " if depth else ""
            yield Text(f"{label}{called}{site.file}:{site.line}, in {site.function}", "dim")
        if path:
            yield from _source(path[-1])
    if issue.suggestion:
        yield Text("try: " + issue.suggestion, "green")


def _facts(launch: Launch, issue: Issue) -> Iterable[Text]:
    programs = ", ".join(str(program) for program in (issue.program, *issue.others))
    tensor = next((tensor for tensor in launch.tensors if tensor.name == issue.tensor), None)
    if tensor is not None:
        yield Text(f"tensor   {tensor.name}: {tensor.dtype}, shape {tensor.shape}, strides {tensor.strides}")
    if issue.index is not None:
        yield Text(f"element  {issue.tensor}{list(issue.index)}")
    elif issue.offset is not None:
        yield Text(f"offset   {issue.offset} elements from the first")
    if issue.past_end:
        where = "past the end" if issue.past_end > 0 else "before the beginning"
        yield Text(f"distance {abs(issue.past_end)} bytes {where}")
    yield Text(f"program  {programs} of a grid of {launch.grid}")
    if issue.mask is not None or issue.expression:
        yield Text(f"mask     {'none' if issue.mask is None else issue.mask}")
    if issue.expression:
        yield Text("address  " + issue.expression.replace("\n", "\n         "))


def _source(site: Site) -> Iterable[Syntax]:
    try:
        code = Path(site.file).read_text()
    except OSError:
        return  # a trace from another machine
    lines = (max(1, site.line - _AROUND), site.line + _AROUND)
    yield Syntax(
        code, "python", line_numbers=True, line_range=lines, highlight_lines={site.line}, theme="ansi_dark"
    )


# --- JSON and SARIF ---


def issues_as_json(launches: Launch | Iterable[Launch]) -> str:
    """The issues as a list of JSON objects."""
    return json.dumps([_plain(launch, issue) for launch, issue in issues_of(launches)], indent=2)


def _plain(launch: Launch, issue: Issue) -> dict[str, Any]:
    return {
        "kind": issue.kind,
        "verdict": issue.verdict,
        "level": level(issue),
        "message": issue.message,
        "kernel": launch.kernel,
        "launch": launch.id,
        "grid": launch.grid,
        "program": issue.program,
        "others": issue.others,
        "tensor": issue.tensor,
        "index": issue.index,
        "offset": issue.offset,
        "past_end": issue.past_end,
        "mask": issue.mask,
        "expression": issue.expression,
        "suggestion": issue.suggestion,
        "iterations": issue.iterations,
        "path": [_site(site) for site in issue.call_path],
        "other_path": [_site(site) for site in issue.other_path],
    }


def _site(site: Site) -> dict[str, Any]:
    return {"file": site.file, "line": site.line, "function": site.function}


def issues_as_sarif(launches: Launch | Iterable[Launch], tool: str = "triton_viz") -> str:
    """The issues in SARIF 2.1.0, which editors and code hosts show at the lines of source."""
    found = issues_of(launches)
    kinds = sorted({issue.kind for _, issue in found})
    log = {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": tool, "rules": [_rule(kind) for kind in kinds]}},
                "results": [_result(launch, issue, kinds) for launch, issue in found],
            }
        ],
    }
    return json.dumps(log, indent=2)


def _rule(kind: str) -> dict[str, Any]:
    return {"id": _identifier(kind), "shortDescription": {"text": kind}}


def _identifier(kind: str) -> str:
    return kind.replace(" ", "-")


def _result(launch: Launch, issue: Issue, kinds: Sequence[str]) -> dict[str, Any]:
    text = issue.message + (f". Try: {issue.suggestion}" if issue.suggestion else "")
    result: dict[str, Any] = {
        "ruleId": _identifier(issue.kind),
        "ruleIndex": kinds.index(issue.kind),
        "level": level(issue),
        "message": {"text": text},
        "locations": [_location(site) for site in issue.call_path[-1:]],
        "properties": {"kernel": launch.kernel, "program": list(issue.program), "tensor": issue.tensor},
    }
    if len(issue.call_path) > 1:
        frames = [{"location": _location(site)} for site in reversed(issue.call_path)]
        result["stacks"] = [{"message": {"text": "called from"}, "frames": frames}]
    if issue.other_path:
        at = _location(issue.other_path[-1])
        others = ", ".join(map(str, issue.others))
        result["relatedLocations"] = [
            {**at, "id": 1, "message": {"text": f"programs {others} access it here"}}
        ]
    return result


def _location(site: Site) -> dict[str, Any]:
    path = Path(site.file)
    try:  # relative to the current folder, as code hosts require
        uri = path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        uri = path.as_uri() if path.is_absolute() else path.as_posix()
    return {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": site.line}},
        "logicalLocations": [{"name": site.function, "kind": "function"}],
    }
