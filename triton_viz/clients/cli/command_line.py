"""Commands that run an unmodified program with a client watching every kernel it launches.

`main_for` makes `triton-profiler script.py args...` and `triton-profiler -m module args...`, and commands of
other clients.
"""

import argparse
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from triton_viz.core.client import Client
from triton_viz.errors import TritonVizError

C = TypeVar("C", bound=Client)


def main_for(
    client_factory: Callable[[argparse.Namespace], C],
    report: Callable[[C, argparse.Namespace], int],
    *,
    name: str,
    description: str,
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> Callable[..., int]:
    """A command's `main`: parses its options, runs the program with the client, and reports.

    It takes a list of arguments, by default the process's. `report` is called also if the program fails. The
    exit code is the program's, or, if that is 0, the result of `report`.
    """

    def main(arguments: Sequence[str] | None = None) -> int:
        parser = argparse.ArgumentParser(
            prog=name,
            description=description,
            usage=f"{name} [options] (script.py | -m module) [arguments...]",
        )
        add_options(parser)
        parser.add_argument(
            "-m", dest="module", nargs=argparse.REMAINDER, help="a module to run, with its arguments"
        )
        parser.add_argument("program", nargs=argparse.REMAINDER, help="a script to run, with its arguments")
        options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
        command = options.module or options.program
        if not command:
            parser.error("nothing to run: give a script, or -m and a module")
        try:
            client = client_factory(options)
        except TritonVizError as error:
            parser.error(str(error))
        code = _run(client, command, is_module=bool(options.module))
        sys.stdout.flush()
        found = report(client, options)
        return code or found

    return main


def _run(client: Client, command: list[str], is_module: bool) -> int:
    """Run a program like Python's command line, with a client for every kernel. Returns its exit code."""
    from triton_viz.core.trace import trace  # here: that module imports the clients

    program, argv, first_path = command[0], sys.argv, sys.path[0]
    sys.argv = list(command)
    sys.path[0] = str(Path.cwd()) if is_module else str(Path(program).resolve().parent)
    try:
        with trace(client):
            if is_module:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BaseException:  # noqa: BLE001 - whatever the program raises; its report is still wanted
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[0] = argv, first_path
    return 0
