"""Loops of a running kernel: `affine_range`, the other ranges of `nki.language`, and `range`."""

import operator
import sys
from collections.abc import Iterator
from typing import Any

from triton_viz.dsls.nki import nki_machine


def _iterate(numbers: range, line: int) -> Iterator[int]:
    here = nki_machine.current()
    entry = [line, 0]
    here.loops.append(entry)
    for callback in here.before_loop:
        callback(line, len(numbers))
    try:
        for position, number in enumerate(numbers):
            entry[1] = position
            for callback in here.loop_iteration:
                callback(line, position)
            yield number
    finally:
        # also runs after `break`, when the generator is deleted
        if entry in here.loops:
            del here.loops[here.loops.index(entry) :]
        for callback in here.after_loop:
            callback(line)


class Range:
    """The range of a loop, which reports its iterations. It has a length and can be indexed, like
    Python's."""

    def __init__(self, start: Any, stop: Any = None, step: Any = 1):
        bounds = (0, start) if stop is None else (start, stop)
        self.numbers = range(*(operator.index(bound) for bound in (*bounds, step)))

    def __iter__(self) -> Iterator[int]:
        if not nki_machine.is_running():
            return iter(self.numbers)
        return _iterate(self.numbers, _line_of_caller())

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, position: Any) -> Any:
        return self.numbers[position]

    def __contains__(self, number: object) -> bool:
        return number in self.numbers

    def __reversed__(self) -> Iterator[int]:
        return reversed(self.numbers)

    def __repr__(self) -> str:
        return repr(self.numbers)


def _line_of_caller() -> int:
    return sys._getframe(2).f_lineno
