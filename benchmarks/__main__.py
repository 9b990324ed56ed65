"""The front door: `python -m benchmarks`."""

import argparse
import dataclasses
import json
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import gt_core, tv_core
from benchmarks.harness import BENCHMARKS, Result, run

MODULES = (gt_core, tv_core)
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
        _list()
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


def _list() -> None:
    table = Table(
        "name", "what", "against", "goal", title="Benchmarks: python -m benchmarks NAME ... or --all"
    )
    for entry in sorted(BENCHMARKS.values(), key=lambda entry: entry.name):
        table.add_row(entry.name, entry.what, entry.reference, str(entry.goal))
    Console().print(table)


def _print(results: list[Result]) -> None:
    table = Table("name", "against", "median", "goal", "", "half of all repeats", "ours", "theirs")
    for result in results:
        unit = "" if result.goal.endswith("x") else " s"
        table.add_row(
            result.name,
            result.reference,
            f"{result.value:.2f}{unit or 'x'}",
            result.goal,
            "[green]met[/]" if result.met else "[yellow]not yet[/]",
            f"{result.low:.2f} .. {result.high:.2f}",
            _duration(result.subject_seconds),
            _duration(result.reference_seconds),
        )
    Console().print(table)


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


if __name__ == "__main__":
    sys.exit(main())
