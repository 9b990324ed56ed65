"""Puts what a stream repeats into one instruction, a Repeat.

The detector says where a known sequence begins; what follows is held here until it has come whole, and then
becomes a repeat. If something else comes, what is held goes on as it is. A client condenses what it sends,
and a worker what nobody has condensed before.
"""

from collections.abc import Sequence
from typing import Any

from gt.transport.protocol import LocalInstruction, Mark, Op, WorkerHotPathEnd, WorkerHotPathStart
from gt.transport.repeats import Template, repeat_of
from gt.transport.sequences import HotSequence
from gt.worker.hotpath_detector import HotPathDetector


class Condenser:
    """One client's stream, with repeats."""

    def __init__(self, patient: bool = False) -> None:
        self.detector = HotPathDetector()
        self._patient = patient
        """Whether a sequence that has come whole waits for what is freed right after it, and a few ops that
        come again and again for more of them."""
        self._whole: tuple[HotSequence, list[Op]] | None = None
        """What is held is all of this sequence, if anything; and its ops."""
        self.held: list[Any] | None = None
        """The instructions of a sequence that is expected, and has not come to its end."""
        self.marks: list[Mark] = []
        """The sequences that began and ended in what was condensed last."""
        self._templates: dict[Any, Template] = {}

    def condense(self, instructions: Sequence[LocalInstruction]) -> list[Any]:
        """The instructions, as far as they need not be held, with repeats among them."""
        detector = self.detector
        stream: list[Any] = detector.feed(instructions)
        self.marks = [stream[place] for place in detector.marked]
        if not self.marks and self.held is None:
            return stream
        out: list[Any] = []
        before = 0
        if self._whole is not None:
            before = self._end(*self._whole, stream, 0, out)
        came = iter(detector.came)
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
            self.held = held
            before = self._end(*next(came), stream, before, out)
        if self.held is None:
            out += stream[before:]
        elif self._whole is None:
            self.held = self.held + stream[before:]
            expected = detector.expected[1]
            if expected is not None and expected.little and not self._patient:
                out += self.release()
                self.marks.append(WorkerHotPathEnd(expected.id, False))
        return out

    def _end(
        self, sequence: HotSequence, ops: list[Op], stream: list[Any], place: int, out: list[Any]
    ) -> int:
        """Put out the repeat that is held, with what is freed from this place on; the result is the next."""
        assert self.held is not None
        end = place
        while end < len(stream) and type(stream[end]) is int:
            end += 1
        self.held = self.held + stream[place:end]
        if end == len(stream) and self._patient:
            self._whole = sequence, ops
            return end
        first, repeat = repeat_of(sequence, ops, self.held, self._templates)
        out += first
        out.append(repeat)
        self.held = self._whole = None
        return end

    def release(self) -> list[Any]:
        """What is held: nothing more is waited for."""
        held, self.held = self.held, None
        whole, self._whole = self._whole, None
        if whole is not None and held is not None:
            first, repeat = repeat_of(*whole, held, self._templates)
            return [*first, repeat]
        if held is not None:
            self.detector.give_up()
        return held or []
