"""A timeline of an instruction log, as a page, a picture or a trace for Perfetto; or of a running server.

    GT_INSTRUCTION_LOG=gt.log python train.py
    python -m gt.timeline gt.log -o timeline.html     # one file, opens in any browser, also offline
    python -m gt.timeline gt.log -o timeline.png
    python -m gt.timeline gt.log --perfetto out.json  # for ui.perfetto.dev or chrome://tracing
    python -m gt.timeline -p 29500                    # a running server, by its port (and --host)

The page is that of triton_viz: its built files and the log are written into one file, which needs no server.
A running server is shown live, at an address that is printed; Ctrl-C ends the command.
"""

import argparse
import json
import sys
import webbrowser
from pathlib import Path

from gt.client.connection import RemoteConnection
from gt.errors import GTError
from gt.inspect.live import LivePage, static_files
from gt.inspect.picture import write_png
from gt.inspect.tape import Tape, read_tape

_MICROSECONDS = 1e6


def main(arguments: list[str] | None = None) -> int:
    """The command's entry point; the result is its exit code."""
    parser = argparse.ArgumentParser(prog="python -m gt.timeline", description="Draw an instruction log.")
    parser.add_argument("log", nargs="?", help="an instruction log, which GT_INSTRUCTION_LOG=FILE writes")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write a page (FILE.html) or a picture (FILE.png)"
    )
    parser.add_argument("--perfetto", metavar="FILE", help="write a trace for ui.perfetto.dev")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the machine of a running server (default %(default)s)"
    )
    parser.add_argument("-p", "--port", type=int, help="the port of a running server, which is shown live")
    parser.add_argument(
        "--page-port",
        type=int,
        metavar="PORT",
        help="the port of the live page (default 8001, or any free port)",
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="print the address of the live page, without opening a browser",
    )
    options = parser.parse_args(arguments)
    if (options.port is None) == (options.log is None):
        parser.error("give either an instruction log, or a running server's port with -p")
    if options.port is not None:
        if options.output or options.perfetto:
            parser.error("-o and --perfetto are for a log: run the server with GT_INSTRUCTION_LOG=FILE")
        return _live(f"{options.host}:{options.port}", options.page_port, not options.no_browser)
    target = None if options.output is None else Path(options.output)
    if target is not None and target.suffix not in (".html", ".png"):
        parser.error(f"{target} is neither a .html nor a .png")
    if target is None and options.perfetto is None:
        parser.error("nothing to write: give -o FILE.html, -o FILE.png or --perfetto FILE")
    try:
        text = Path(options.log).read_text(errors="replace")
        tape = read_tape(text.splitlines())
        if not tape.entries:
            raise ValueError(
                f"{options.log} has no line of an instruction log: write one with GT_INSTRUCTION_LOG=FILE"
            )
        if target is not None and target.suffix == ".html":
            target.write_text(page(Path(options.log).name, text))
        if target is not None and target.suffix == ".png":
            write_png(tape, target)
        if options.perfetto is not None:
            Path(options.perfetto).write_text(json.dumps(perfetto(tape)))
    except (OSError, ValueError) as error:
        print(f"gt.timeline: {error}", file=sys.stderr)
        return 1
    written = [name for name in (options.output, options.perfetto) if name is not None]
    print(f"{' and '.join(written)}: {len(tape.spans)} instructions on {len(tape.workers)} workers")
    return 0


def _live(address: str, port: int | None, open_browser: bool) -> int:
    """Show a running server until Ctrl-C."""
    try:
        connection = RemoteConnection(address, timeout=5.0)
    except (OSError, GTError) as error:
        print(f"gt.timeline: {error}", file=sys.stderr)
        return 1
    try:
        shown = LivePage(connection, port)
        print(f"gt.timeline: the server at {address}, live at {shown.address} (Ctrl-C stops)", flush=True)
        if open_browser:
            webbrowser.open(shown.address)
        shown.run()
    except KeyboardInterrupt:
        pass
    except (OSError, ValueError) as error:
        print(f"gt.timeline: {error}", file=sys.stderr)
        return 1
    finally:
        connection.close()
    return 0


def page(name: str, text: str) -> str:
    """The page with a log inside, as one file."""
    static = static_files()
    html = (static / "index.html").read_text()
    assets = static / "assets"
    script, style = (assets / "page.js").read_text(), (assets / "page.css").read_text()
    # Text in a log must not end the <script> element that it is in.
    tape = json.dumps({"name": name, "text": text}).replace("<", "\\u003c")
    kept = [line for line in html.splitlines() if "./assets/page." not in line]
    body = f'<script>window.TAPE = {tape};</script>\n<script type="module">\n{script}\n</script>\n</body>'
    return "\n".join(kept).replace("</head>", f"<style>\n{style}\n</style>\n</head>").replace("</body>", body)


def perfetto(tape: Tape) -> dict[str, object]:
    """The tape as trace events: a process for each client and worker, arrows from one to the other."""
    events: list[dict[str, object]] = []
    numbers = {name: number for number, name in enumerate(["dispatcher", *tape.clients, *tape.workers], 1)}
    for name, number in numbers.items():
        role = "worker" if name in tape.workers else "client" if name in tape.clients else ""
        title = f"{role} {name}".strip()
        events.append({"ph": "M", "name": "process_name", "pid": number, "tid": 1, "args": {"name": title}})
    for band in tape.hot_paths:
        # On a line of its own: a path is not one of the instructions it holds.
        took = (band.end - band.start) * _MICROSECONDS
        what = {
            "name": "hot path",
            "cat": "hot",
            "args": {"sequence": band.sequence, "complete": band.complete},
        }
        when = {
            "ph": "X",
            "pid": numbers[band.worker],
            "tid": 2,
            "ts": band.start * _MICROSECONDS,
            "dur": took,
        }
        events.append({**what, **when})
    for number, span in enumerate(tape.spans):
        common = {"name": span.label, "cat": span.command, "tid": 1}
        arguments = {"client": span.client, "size": span.size, "details": span.details}
        arguments |= {
            key: text for key in ("module", "phase", "line", "failed") if (text := getattr(span, key))
        }
        start, took = span.start * _MICROSECONDS, (span.end - span.start) * _MICROSECONDS
        events.append(
            {**common, "ph": "X", "pid": numbers[span.worker], "ts": start, "dur": took, "args": arguments}
        )
        if span.received is not None and span.client in numbers:
            received = span.received * _MICROSECONDS
            waited = (span.sent - span.received) * _MICROSECONDS
            of_client = {**common, "pid": numbers[span.client], "ts": received}
            events.append({**of_client, "ph": "X", "dur": waited, "args": {"details": span.details}})
            events.append({**of_client, "ph": "s", "id": number})
            events.append(
                {**common, "ph": "f", "bp": "e", "pid": numbers[span.worker], "ts": start, "id": number}
            )
    return {"traceEvents": events, "displayTimeUnit": "ms"}


if __name__ == "__main__":
    sys.exit(main())
