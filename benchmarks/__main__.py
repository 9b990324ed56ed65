"""The command line: `python -m benchmarks`."""

import argparse
import dataclasses
import json
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import (
    gt_collectives,
    gt_core,
    gt_hotpaths,
    gt_scaling,
    torch_device,
    tv_core,
    tv_page,
)
from benchmarks.harness import BENCHMARKS, Result, run

MODULES = (gt_collectives, gt_core, gt_hotpaths, gt_scaling, torch_device, tv_core, tv_page)
"""Importing a module is what registers its benchmarks."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run benchmarks beside their reference. Without names: list them.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to run")
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    parser.add_argument(
        "--repeats", type=int, default=9, metavar="N", help="how often each (default 9, at least 2)"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown or options.repeats < 2:
        known = ", ".join(sorted(BENCHMARKS))
        parser.error(
            f"no benchmark is called {', '.join(unknown)}; there are {known}" if unknown else "--repeats >= 2"
        )

    names = sorted(BENCHMARKS) if options.all else options.names
    if not names:
        _list(options.json)
        return 0
    results = []
    for name in names:
        print(f"running {name} ...", file=sys.stderr)
        results.append(run(BENCHMARKS[name], options.repeats))
    if options.json:
        print(json.dumps([dataclasses.asdict(result) for result in results], indent=2))
    else:
        _print(results)
    return 0


def _list(as_json: bool) -> None:
    if as_json:
        fields = ("name", "what", "reference", "goal")
        entries = [{field: str(getattr(entry, field)) for field in fields} for entry in BENCHMARKS.values()]
        print(json.dumps(entries, indent=2))
        return
    table = _table("name", "goal", "against", "what", title="python -m benchmarks NAME ..., or --all")
    for entry in sorted(BENCHMARKS.values(), key=lambda entry: entry.name):
        table.add_row(entry.name, str(entry.goal), entry.reference, entry.what)
    Console().print(table)


def _print(results: list[Result]) -> None:
    table = _table("name", "median", "goal", "", "half of all", "against")
    for result in results:
        table.add_row(
            result.name,
            f"{result.value:.2f}{_unit(result)}",
            result.goal,
            "[green]met[/]" if result.met else "[yellow]not yet[/]",
            f"{result.low:.2f} .. {result.high:.2f}",
            result.reference if _unit(result) == "x" else f"{result.ratio:.2f}x {result.reference}",
        )
    Console().print(table)


def _unit(result: Result) -> str:
    return "x" if result.goal.endswith("x") else " s" if result.goal.endswith(" s") else ""


def _table(*columns: str, title: str | None = None) -> Table:
    """Only the words at the end of a line may wrap; names and numbers stay whole."""
    table = Table(title=title, box=None, padding=(0, 2, 0, 0), header_style="bold underline")
    for column in columns:
        table.add_column(column, no_wrap=column not in ("against", "what"), overflow="fold")
    return table


if __name__ == "__main__":
    sys.exit(main())
