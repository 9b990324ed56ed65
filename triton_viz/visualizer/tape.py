"""Reads GT's instruction log in pieces. The page parses the lines."""

from pathlib import Path

from triton_viz.visualizer.payloads import TapeSlice

MOST = 4 << 20
"""The size of a piece in bytes."""


def read_slice(path: Path, start: int | None, most: int = MOST) -> TapeSlice:
    """Whole lines from `start` on, or without it the last ones. OSError if the log cannot be read."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        begin = max(0, size - most) if start is None else min(start, size)
        file.seek(begin)
        data = file.read(most)
    if start is None and begin > 0:  # the first line is cut off
        skipped = data.find(b"\n") + 1
        begin, data = begin + skipped, data[skipped:]
    data = data[: data.rfind(b"\n") + 1]
    text = data.decode("utf-8", "replace")
    return TapeSlice(name=path.name, text=text, start=begin, end=begin + len(data), size=size)
