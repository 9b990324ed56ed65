"""Shows the state of a GT server in the terminal, as the cluster view of the page does in a browser.

    python -m gt.top -p 29500                # a server, by its port (and --host)
    python -m gt.top --log gt.log            # or from an instruction log, also while it grows
    python -m gt.top -p 29500 --once         # once, then end
    python -m gt.top -p 29500 --module layers.0  # of PyTorch's modules, only these and those below them

Ctrl-C ends it.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gt.client.connection import RemoteConnection
from gt.errors import GTError
from gt.inspect.modules import matcher, module_rows
from gt.inspect.tape import Span, read_tape

SECONDS = 1.0
_MAX_READ = 1 << 22
"""How many bytes at the end of a log, or characters at the end of a server's tape, are read."""
_PAGES = 8
"""The largest number of pages of a server's tape that one update reads: the tape may grow faster."""


def main(arguments: list[str] | None = None) -> int:
    """The command's entry point; the result is its exit code."""
    parser = argparse.ArgumentParser(prog="python -m gt.top", description="Watch a GT server.")
    parser.add_argument("--host", default="127.0.0.1", help="the server's machine (default %(default)s)")
    parser.add_argument("-p", "--port", type=int, help="the server's port")
    parser.add_argument("--log", metavar="LOG", help="read an instruction log instead of a server")
    parser.add_argument("--module", metavar="NAME", help="show only modules of this name, such as layers.0")
    parser.add_argument("--once", action="store_true", help="print the tables once, then end")
    parser.add_argument(
        "--every",
        type=float,
        default=SECONDS,
        metavar="SECONDS",
        help="the time between updates (default %(default)g)",
    )
    options = parser.parse_args(arguments)
    if (options.port is None) == (options.log is None):
        parser.error("give either a server's port with -p, or an instruction log with --log")
    if options.every <= 0:
        parser.error(f"--every is a number of seconds above 0, not {options.every:g}")
    try:
        with contextlib.ExitStack() as stack:
            if options.log:
                render = _log(Path(options.log), options.module)
            else:
                connection = RemoteConnection(f"{options.host}:{options.port}", timeout=5.0)
                stack.callback(connection.close)
                render = _server(connection, options.module)
            if options.once:
                Console().print(render())
                return 0
            live = stack.enter_context(Live(render(), refresh_per_second=4))
            while True:
                time.sleep(options.every)
                live.update(render())
    except KeyboardInterrupt:
        return 0
    except (OSError, GTError) as error:
        print(f"gt.top: {error}", file=sys.stderr)
        return 1


def _server(connection: RemoteConnection, module: str | None) -> Callable[[], Group]:
    """A function that renders the state of a running server, and the modules at the end of its tape."""
    before: dict[str, int] = {}
    when = time.monotonic()
    text, end = "", 0

    def render() -> Group:
        nonlocal when, text, end
        for _ in range(_PAGES):
            page = connection.get_tape(end)
            text, end, start = (text + page.text)[-_MAX_READ:], page.next, end
            if end <= start:
                break
        modules = module_tables(read_tape(text.splitlines()).spans, module)
        workers, dispatcher = connection.get_stats(), connection.get_dispatcher_stats()
        passed, when = time.monotonic() - when, time.monotonic()
        found = worker_table(workers, before, passed)
        before.update({name: stats.get("total_instructions", 0) for name, stats in workers.items()})
        return Group(dispatcher_table(connection.address, dispatcher), found, *modules)

    return render


def dispatcher_table(address: str, stats: dict[str, Any]) -> Table:
    """The dispatcher's numbers in a row; this program's own connection is not counted."""
    shown = {**stats, "clients": max(0, stats.get("clients", 1) - 1)}
    plain = {key: value for key, value in shown.items() if isinstance(value, int | float | str)}
    table = Table(title=f"dispatcher at {address}", title_justify="left")
    for key in plain:
        table.add_column(key.replace("_", " "), justify="right")
    table.add_row(*[_count(key, value) for key, value in plain.items()])
    return table


def worker_table(workers: dict[str, dict[str, Any]], before: dict[str, int], passed: float) -> Table:
    """A row for each worker."""
    table = Table(title=f"{len(workers)} worker{'' if len(workers) == 1 else 's'}", title_justify="left")
    for title in ("worker", "engine", "instructions", "per second", "tensors", "bytes"):
        table.add_column(title, justify="left" if title in ("worker", "engine") else "right")
    for name, stats in sorted(workers.items()):
        total = stats.get("total_instructions", 0)
        rate = f"{(total - before[name]) / passed:,.0f}" if name in before and passed > 0 else ""
        held = _count("bytes", stats.get("bytes", 0))
        table.add_row(name, stats.get("engine", ""), f"{total:,}", rate, f"{stats.get('tensors', 0):,}", held)
    return table


def module_tables(spans: Sequence[Span], wanted: str | None) -> list[Table]:
    """A table with a row for each module that took long, indented below the module that it is part of.

    There is none without modules. With `wanted`, only modules of that name are shown.
    """
    if not any(span.module for span in spans):
        return []
    total = sum(span.end - span.start for span in spans) or 1.0
    matches = matcher(wanted or "", spans)
    title = f"modules: {wanted}" if wanted else "modules"
    table = Table(title=title, title_justify="left")
    for column in ("module", "instructions", "forward s", "backward s", "seconds", "share"):
        table.add_column(column, justify="left" if column == "module" else "right")
    for row in module_rows([span for span in spans if not wanted or matches(span.module)]):
        times = [f"{seconds:.3f}" for seconds in (row.forward, row.backward, row.seconds)]
        name = Text("  " * row.depth + row.name)
        table.add_row(name, f"{row.instructions:,}", *times, f"{row.seconds / total:.0%}")
    return [table]


def _log(path: Path, module: str | None) -> Callable[[], Group]:
    """A function that renders the end of an instruction log."""

    def render() -> Group:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _MAX_READ))
            lines = file.read().decode(errors="replace").splitlines()
        tape = read_tape(lines[1:] if size > _MAX_READ else lines)
        clients = Table(title=f"{path.name}: clients", title_justify="left")
        for title in ("client", "instructions", "sent", "seconds on workers"):
            clients.add_column(title, justify="left" if title == "client" else "right")
        for share in tape.shares():
            sent = _count("bytes", share.size)
            clients.add_row(share.client, f"{share.instructions:,}", sent, f"{share.seconds:.3f}")
        workers = Table(title="workers", title_justify="left")
        for title in ("worker", "instructions", "busy seconds", "failed", "last"):
            workers.add_column(title, justify="left" if title in ("worker", "last") else "right")
        for name in tape.workers:
            mine = [span for span in tape.spans if span.worker == name]
            busy = sum(span.end - span.start for span in mine)
            failed = sum(1 for span in mine if span.failed)
            last = mine[-1].label if mine else ""
            workers.add_row(name, f"{len(mine):,}", f"{busy:.3f}", str(failed), last)
        return Group(clients, workers, *module_tables(tape.spans, module))

    return render


def _count(key: str, value: Any) -> str:
    if not isinstance(value, int) or key == "pid":
        return str(value)
    if "bytes" not in key:
        return f"{value:,}"
    size = float(value)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


if __name__ == "__main__":
    sys.exit(main())
