"""Puts what a stream repeats into one instruction, a Repeat.

The detector says where a known sequence begins; what follows is held here until it has come whole, and then
becomes a repeat. If something else comes, what is held goes on as it is. A client condenses what it sends,
and a worker what nobody has condensed before.
"""

from collections.abc import Sequence
from typing import Any

from gt.transport.protocol import LocalInstruction, Mark, WorkerHotPathStart
from gt.transport.repeats import Template, repeat_of
from gt.worker.hotpath_detector import HotPathDetector


class Condenser:
    """One client's stream, with repeats."""

    def __init__(self, detector: HotPathDetector | None = None) -> None:
        self.detector = detector or HotPathDetector()
        self.held: list[Any] | None = None
        """The instructions of a sequence that is expected, and has not come to its end."""
        self.marks: list[Mark] = []
        """The sequences that began and ended in what was condensed last."""
        self._templates: dict[Any, Template] = {}

    def condense(self, instructions: Sequence[LocalInstruction]) -> list[Any]:
        """The instructions, as far as they need not be held, with repeats among them."""
        detector = self.detector
        stream: list[Any] = detector.feed(instructions)
        if not detector.marked and self.held is None:
            self.marks = []
            return stream
        self.marks = [stream[place] for place in detector.marked]
        out: list[Any] = []
        before = 0
        for place in detector.marked:
            mark, stretch = stream[place], stream[before:place]
            before = place + 1
            if type(mark) is WorkerHotPathStart:
                out += stretch
                self.held = []
                continue
            held, self.held = (self.held or []) + stretch, None
            if not mark.complete:
                out += held
                continue
            while before < len(stream) and type(stream[before]) is int:  # frees that only came too late
                held.append(stream[before])
                before += 1
            first, repeat = repeat_of(detector.sequences[mark.sequence], held, self._templates)
            out += first
            out.append(repeat)
        if self.held is None:
            out += stream[before:]
        else:
            self.held = self.held + stream[before:]
        return out

    def release(self) -> list[Any]:
        """What is held: nothing more is waited for."""
        held, self.held = self.held, None
        if held is not None:
            self.detector.give_up()
        return held or []
