"""A timeline of an instruction log, as a page, a picture or a trace for Perfetto. No server is needed.

    GT_INSTRUCTION_LOG=gt.log python train.py
    python -m gt.timeline gt.log -o timeline.html     # one file, opens in any browser, also offline
    python -m gt.timeline gt.log -o timeline.png
    python -m gt.timeline gt.log --perfetto out.json  # for ui.perfetto.dev or chrome://tracing

The page is the one that triton_viz serves: its built files are put into one, with the log inside.
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

from gt.picture import write_png
from gt.tape import Tape, read_tape

_MICROSECONDS = 1e6


def main(arguments: list[str] | None = None) -> int:
    """The command's entry point; the result is its exit code."""
    parser = argparse.ArgumentParser(prog="python -m gt.timeline", description="Draw an instruction log.")
    parser.add_argument("log", help="a file that GT_INSTRUCTION_LOG named")
    parser.add_argument("-o", "--output", metavar="FILE", help="a .html or a .png")
    parser.add_argument("--perfetto", metavar="FILE", help="a trace for ui.perfetto.dev")
    options = parser.parse_args(arguments)
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
                f"{options.log} holds no line of an instruction log: set GT_INSTRUCTION_LOG to it"
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


def page(name: str, text: str) -> str:
    """The page with a log inside, as one file."""
    # Found, not imported: the page needs nothing of triton_viz but its files.
    found = importlib.util.find_spec("triton_viz")
    if found is None or not found.submodule_search_locations:
        raise ValueError("the page is part of triton_viz, which is not installed: pip install tapestry")
    static = Path(found.submodule_search_locations[0]) / "static"
    html = (static / "index.html").read_text()
    assets = static / "assets"
    script, style = (assets / "page.js").read_text(), (assets / "page.css").read_text()
    # A log may hold anything, and must not end the script it stands in.
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
    for number, span in enumerate(tape.spans):
        common = {"name": span.label, "cat": span.command, "tid": 1}
        arguments = {"client": span.client, "size": span.size, "details": span.details}
        if span.failed:
            arguments["failed"] = span.failed
        start, took = span.start * _MICROSECONDS, (span.end - span.start) * _MICROSECONDS
        events.append(
            {**common, "ph": "X", "pid": numbers[span.worker], "ts": start, "dur": took, "args": arguments}
        )
        if span.received is not None and span.client in numbers:
            asked = span.received * _MICROSECONDS
            waited = (span.sent - span.received) * _MICROSECONDS
            of_client = {**common, "pid": numbers[span.client], "ts": asked}
            events.append({**of_client, "ph": "X", "dur": waited, "args": {"details": span.details}})
            events.append({**of_client, "ph": "s", "id": number})
            events.append(
                {**common, "ph": "f", "bp": "e", "pid": numbers[span.worker], "ts": start, "id": number}
            )
    return {"traceEvents": events, "displayTimeUnit": "ms"}


if __name__ == "__main__":
    sys.exit(main())
