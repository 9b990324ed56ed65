"""`python -m triton_viz CLIENT script.py ...`: the command of any client, by the client's name.

`triton-sanitizer`, `triton-profiler` and `triton-race-detector` are short for three of them. For a client of
another package, import that package first: `python -m triton_viz --import my_client mine script.py`.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from triton_viz.core.client_registry import registered_clients


def main(arguments: Sequence[str] | None = None) -> int:
    """The command's entry point; the result is its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m triton_viz",
        description="Run a program with a client watching every kernel that it launches.",
        usage="%(prog)s [--import MODULE] CLIENT [options] (script.py | -m module) [arguments...]",
    )
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a client first",
    )
    parser.add_argument("client", nargs="?", help="the name of a client that has a command")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="the arguments of its command")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    sys.path.insert(0, "")  # modules of the current folder, as with `python -m`
    for module in options.modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            parser.error(f"--import {module}: {error}")
    commands = {name: entry for name, entry in registered_clients().items() if entry.command is not None}
    entry = commands.get((options.client or "").replace("-", "_"))
    if entry is None:
        known = ", ".join(commands)
        problem = (
            "name a client"
            if options.client is None
            else f"no client with a command is called {options.client!r}"
        )
        parser.error(f"{problem}; choose one of {known}")
    return entry.run_command(options.rest)


if __name__ == "__main__":
    raise SystemExit(main())
