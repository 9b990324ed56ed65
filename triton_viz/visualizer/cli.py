"""`triton-visualizer trace.tvz`: show a saved trace."""

import argparse
import sys

from triton_viz.core.trace import load
from triton_viz.errors import TraceFileError
from triton_viz.visualizer.interface import launch


def main(arguments: list[str] | None = None) -> int:
    """The command's entry point; the result is its exit code."""
    parser = argparse.ArgumentParser(
        prog="triton-visualizer", description="Show a saved trace in a web page."
    )
    parser.add_argument("trace", help="a file that triton_viz.save wrote")
    parser.add_argument("-p", "--port", type=int, help="default: 8000, or any free one if that is taken")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    options = parser.parse_args(arguments)
    try:
        load(options.trace)
        launch(options.port, open_browser=not options.no_browser)
    except (OSError, TraceFileError) as error:
        print(f"triton-visualizer: {error}", file=sys.stderr)
        return 1
    return 0
