"""The options that the command lines of server and worker share."""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from gt import logs
from gt.stream import modifiers

DEFAULT_PORT = 12345


class Options(argparse.Namespace):
    """The parsed command line."""

    address: str
    """The server's address, as host:port."""
    modifiers: modifiers.Installed
    report: Callable[[str], None]
    """Prints a line: always if a user started this process, with GT_VERBOSE if a program did."""
    alive: Callable[[], bool]
    """Returns whether the program that started this process, if any, still runs."""
    parent: int | None


def parse(parser: argparse.ArgumentParser) -> Options:
    """Read the command line: the parser's own arguments, and those that server and worker share."""
    parser.add_argument(
        "-p", "--port", type=int, default=DEFAULT_PORT, help="the server's port (default %(default)s)"
    )
    parser.add_argument(
        "--modifier",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="install a stream modifier; may be given several times",
    )
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(namespace=Options())
    if not 0 < options.port < 65536:
        parser.error(f"a port must be between 1 and 65535, but got {options.port}")
    options.address = options.address or f"{options.host}:{options.port}"
    options.report = report if options.parent is None else logs.verbose
    parent = options.parent
    options.alive = lambda: parent is None or os.getppid() == parent
    try:
        options.modifiers = modifiers.Installed(options.modifier)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        fail(f"cannot load a modifier: {error}")
    signal.signal(signal.SIGTERM, _interrupt)  # end on SIGTERM as on Ctrl-C
    return options


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def report(message: str) -> None:
    """Print a line about a server or worker."""
    print(f"[gt] {message}", flush=True)


def fail(message: str) -> NoReturn:
    """End with a message."""
    print(f"[gt] {message}", file=sys.stderr, flush=True)
    sys.exit(1)
