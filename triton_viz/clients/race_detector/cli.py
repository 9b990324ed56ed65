"""`triton-race-detector script.py ...`: run an unchanged program, and look for races in its kernels."""

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import triton_viz
from triton_viz.clients import report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program and print the races of its launches. The result is 1 if there were any."""
    parser = argparse.ArgumentParser(prog="triton-race-detector", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write what was found as JSON")
    parser.add_argument("--sarif", metavar="FILE", help="write what was found as SARIF 2.1.0")
    parser.add_argument("-m", action="store_true", dest="module", help="the program is a module")
    parser.add_argument("program", help="a script, or with -m a module")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="what the program is given")
    options = parser.parse_args(arguments)
    try:
        failed = _run(options.program, options.args, options.module)
    finally:  # also what was found before the program raised an error
        report.print_issues(triton_viz.launches)
        for file, write in ((options.json, report.issues_as_json), (options.sarif, report.issues_as_sarif)):
            if file:
                Path(file).write_text(write(triton_viz.launches) + "\n")
    return 1 if report.violations(triton_viz.launches) else failed


def _run(program: str, args: list[str], module: bool) -> int:
    """Run it as Python would; its own exit code is the result."""
    before, path = sys.argv, sys.path[:]
    sys.argv = [program, *args]
    sys.path[0] = str(Path.cwd()) if module else str(Path(program).resolve().parent)
    try:
        with triton_viz.trace("race_detector"):
            if module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv, sys.path[:] = before, path
    return 0


if __name__ == "__main__":
    sys.exit(main())
