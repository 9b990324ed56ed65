"""`triton-visualizer trace.tvz`: show a saved trace, and GT's tape beside it."""

import argparse
import sys
from pathlib import Path

from triton_viz.core.trace import load
from triton_viz.errors import TraceFileError
from triton_viz.visualizer.interface import launch


def main(arguments: list[str] | None = None) -> int:
    """The command's entry point; the result is its exit code."""
    parser = argparse.ArgumentParser(
        prog="triton-visualizer", description="Show a saved trace in a web page."
    )
    parser.add_argument("trace", nargs="?", help="a file that triton_viz.save wrote")
    parser.add_argument(
        "--tape",
        metavar="LOG",
        help="an instruction log of GT (GT_INSTRUCTION_LOG) to show, also while it grows",
    )
    parser.add_argument("-p", "--port", type=int, help="default: 8000, or any free one if that is taken")
    parser.add_argument(
        "--share", action="store_true", help="let other machines open the page, by a link with a secret token"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, do not open a browser")
    options = parser.parse_args(arguments)
    if options.trace is None and options.tape is None:
        parser.error("nothing to show: give a trace file, or --tape LOG")
    try:
        if options.trace is not None:
            load(options.trace)
        if options.tape is not None:
            Path(options.tape).open("rb").close()
        launch(options.port, share=options.share, open_browser=not options.no_browser, tape=options.tape)
    except (OSError, TraceFileError) as error:
        print(f"triton-visualizer: {error}", file=sys.stderr)
        return 1
    return 0
