"""Replaces the instructions of a detected sequence by one instruction, a Repeat.

The detector predicts where a known sequence begins. Its instructions are held here until the sequence is
complete, and then become a Repeat; if the prediction was wrong, they are returned unchanged. Clients do this
before they send; workers do it for streams that no client has processed.
"""

from collections.abc import Sequence
from typing import Any

from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instructions import LocalInstruction, Mark, Op, WorkerHotPathEnd, WorkerHotPathStart
from gt.stream.repeats import Template, repeat_of
from gt.stream.sequences import HotSequence


class RepeatBuilder:
    """Builds the repeats of one client's stream."""

    def __init__(self, hold_complete: bool = False) -> None:
        self.detector = HotPathDetector()
        self._hold_complete = hold_complete
        """Whether a complete sequence waits for the frees that directly follow it, and a loop of a few
        ops for more iterations."""
        self._whole: tuple[HotSequence, list[Op]] | None = None
        """The complete sequence that is held, if any, and its ops."""
        self.held: list[Any] | None = None
        """The instructions of the predicted sequence so far."""
        self.marks: list[tuple[int, Mark]] = []
        """The markers of the sequences that began or ended in the last `build`, each with the index of the
        instruction that it precedes."""
        self._given_up: list[Mark] = []
        """The end markers of sequences that were released since the last `build`."""
        self._templates: dict[Any, Template] = {}

    def build(self, instructions: Sequence[LocalInstruction]) -> list[Any]:
        """The instructions that need not be held, with repeats in place of complete sequences."""
        detector = self.detector
        stream: list[Any] = detector.feed(instructions)
        self.marks = [(place - n, stream[place]) for n, place in enumerate(detector.marked)]
        if self._given_up:
            self.marks[:0] = [(0, mark) for mark in self._given_up]
            self._given_up = []
        if not self.marks and self.held is None:
            return stream
        out: list[Any] = []
        before = 0
        if self._whole is not None:
            before = self._end(*self._whole, stream, 0, out)
        completed = iter(detector.completed)
        for place in detector.marked:
            mark, segment = stream[place], stream[before:place]
            before = place + 1
            if type(mark) is WorkerHotPathStart:
                out += segment
                self.held = []
                continue
            held, self.held = (self.held or []) + segment, None
            if not mark.complete:
                out += held
                continue
            self.held = held
            before = self._end(*next(completed), stream, before, out)
        if self.held is None:
            out += stream[before:]
        elif self._whole is None:
            self.held = self.held + stream[before:]
            expected = detector.expected[1]
            if expected is not None and expected.is_tiny and not self._hold_complete:
                out += self.release()
                self.marks += [(len(instructions), mark) for mark in self._given_up]
                self._given_up = []
        return out

    def _end(
        self, sequence: HotSequence, ops: list[Op], stream: list[Any], place: int, out: list[Any]
    ) -> int:
        """Append the held repeat to `out`, with the frees from this index on; returns the next index."""
        assert self.held is not None
        end = place
        while end < len(stream) and type(stream[end]) is int:
            end += 1
        self.held = self.held + stream[place:end]
        if end == len(stream) and self._hold_complete:
            self._whole = sequence, ops
            return end
        first, repeat = repeat_of(sequence, ops, self.held, self._templates)
        out += first
        out.append(repeat)
        self.held = self._whole = None
        return end

    def release(self) -> list[Any]:
        """Return the held instructions, as a repeat if they are a complete sequence, and hold none."""
        held, self.held = self.held, None
        whole, self._whole = self._whole, None
        if whole is not None and held is not None:
            first, repeat = repeat_of(*whole, held, self._templates)
            return [*first, repeat]
        if held is not None:
            expected = self.detector.expected[1]
            if expected is not None and not self._hold_complete:
                self._given_up.append(WorkerHotPathEnd(expected.id, False))
            self.detector.give_up()
        return held or []
