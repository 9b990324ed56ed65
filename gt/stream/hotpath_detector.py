"""The hot path detector: finds repeated instructions in a stream and marks where they begin and end.

Two segments of a stream are equal if they have the same ops, structural attributes and data flow. Tensor ids,
floats, seeds and the points at which tensors are freed may differ. Ops are compared as tokens (`tokens.py`).
A training loop is detected in its second step.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from gt import logs
from gt.stream.instruction_table import IN_SEQUENCE
from gt.stream.instructions import Boundary, LocalInstruction, Op, WorkerHotPathEnd, WorkerHotPathStart
from gt.stream.ngram_filter import NGramFilter
from gt.stream.prediction import MIN_BULK_INSTRUCTIONS, Prediction
from gt.stream.repeats import Repeat
from gt.stream.sequences import MAX_SEQUENCE_OPS, TINY_PERIOD, HotSequence, Step, alike
from gt.stream.tokens import (
    MIN_UNROLLED_OPS,
    POSITIONS,
    TINY_LOOP_OPS,
    Distances,
    Token,
    cut_cycle,
    first_ops,
    ops_until_start,
    run_hashes,
    same_token,
    shortest_period,
    steps_of,
)

MIN_SEQUENCE_OPS = 4
"""The smallest number of ops in a sequence."""

_SCAN_INSTRUCTIONS = 512
"""The number of instructions that are checked with the n-gram filter at a time."""

_RESYNC_OPS = 32
"""The number of recent ops that are compared to find the current position in a sequence."""

_MAX_PATTERNS = 1 << 16
"""The largest number of patterns that are counted, which bounds memory in programs that never repeat."""


class HotPathDetector:
    """Injects `WorkerHotPathStart` and `WorkerHotPathEnd` around one client's repeated sequences.

    The detector holds no instruction back. A start marker is a prediction: RepeatBuilder, which uses the
    markers, holds the instructions until the end marker, which states whether the sequence was complete.
    """

    def __init__(
        self, enabled: bool = True, shortest: int = MIN_SEQUENCE_OPS, longest: int = MAX_SEQUENCE_OPS
    ) -> None:
        self.enabled = enabled
        self.sequences: dict[str, HotSequence] = {}
        self._shortest, self._longest = shortest, longest
        self._starts: dict[str, list[HotSequence]] = {}
        """The known sequences by the name of their first op, the longest first."""
        self._cycles: dict[str, list[Token | None]] = {}
        """By sequence id: the tokens of a loop whose first op is only estimated."""
        # Used while no sequence is predicted:
        self._history: list[Token | None] = []
        self._mentioned: dict[int, int] = {}
        """By tensor: the position (index in the history times POSITIONS) of its last mention."""
        self._last_index: dict[tuple[str, Distances], int] = {}
        """By name and distances: the index in the history of the last such token."""
        self._period = 0
        self._run = 0
        self._region = -1
        """The index in the history of the last open Boundary; -1 if there is none."""
        self._ngram_filter = NGramFilter(MIN_UNROLLED_OPS)
        self._skipped: list[Op | None] = []
        """Ops after the end of the history, found to be new by the n-gram filter; not converted to tokens."""
        # Used while one is predicted:
        self._current: Prediction | None = None
        self._to_skip = 0
        """The number of ops to skip before the next prediction."""
        self._total = self._hot = 0
        self._inside = -1
        """The number of instructions in the current sequence so far; -1 outside of a sequence."""
        self._after = False
        """Whether a sequence has just ended: frees that follow directly are counted as part of it."""
        self._patterns: set[int] = set()
        """Hashes of the runs of ops that are no longer in the history."""
        self.marked: list[int] = []
        """The indices of the markers in the last result of `feed`."""
        self.completed: list[tuple[HotSequence, list[Op]]] = []
        """The sequences that were completed in the last call of `feed`, each with its ops."""

    def process(self, cmd: LocalInstruction) -> Iterator[LocalInstruction]:
        """Yield the instruction, with markers before or after it where a sequence begins or ends."""
        yield from self.feed((cmd,))

    def get_stats(self) -> dict[str, Any]:
        """Counts of instructions and sequences.

        An instruction is hot if it is part of a complete sequence, or a free that directly follows one.
        """
        return {
            "total_instructions": self._total,
            "hot_instructions": self._hot,
            "unique_sequences": len(self.patterns()) + len(self.repetitions),
            "hot_sequences": len(self.repetitions),
            "repetitions": self.repetitions,
        }

    @property
    def hot_instructions(self) -> int:
        """How many instructions belong to complete sequences."""
        return self._hot

    @property
    def repetitions(self) -> dict[str, int]:
        """By sequence id: how often it was complete since it was detected."""
        return {id: one.hits for id, one in self.sequences.items() if one.hits}

    def patterns(self) -> set[int]:
        """A hash of each distinct run of unpredicted ops between two instructions that end one."""
        names = [token and token[0] for token in self._history] + [cmd and cmd.op for cmd in self._skipped]
        return self._patterns | run_hashes(names)

    def feed(self, instructions: Sequence[LocalInstruction]) -> list[LocalInstruction]:
        """The instructions with markers among them; sets `marked` and `completed`."""
        if not self.enabled:
            return list(instructions)
        out: list[Any] = []
        self.marked, self.completed = [], []
        index = 0
        while index < len(instructions):
            current = self._current
            if current is None:
                taken = self._skip_new(instructions, index)
            else:
                taken = current.take(instructions, index)
            if taken:
                out += instructions[index : index + taken]
                index += taken
                if current is not None and not current.left:
                    self._complete(current, out)
            else:
                index = self._process_each(instructions, index, out)
        self._total += len(instructions)
        if self.marked or self._inside >= 0 or self._after:
            self._count_hot(out)
        return out

    def _count_hot(self, out: Sequence[Any]) -> None:
        """Count the instructions inside of complete sequences, and the frees right after them."""
        before = 0
        for index in [*self.marked, len(out)]:
            if self._after:
                end = before
                while end < index and type(out[end]) is int:
                    end += 1
                self._hot += end - before
                self._after = end == index == len(out)
            if self._inside >= 0:
                self._inside += index - before
            if index == len(out):
                return
            mark, before = out[index], index + 1
            if type(mark) is WorkerHotPathStart:
                self._inside, self._after = 0, False
            else:
                self._hot += self._inside if mark.complete else 0
                self._inside, self._after = -1, mark.complete

    def _skip_new(self, instructions: Sequence[LocalInstruction], index: int) -> int:
        """The number of instructions from this index on that cannot be part of a repetition, by op names.

        They are added to the history later. 0 if one of them may begin a sequence, or if they are few.
        """
        rest: Sequence[Any] = instructions[index : index + _SCAN_INSTRUCTIONS]
        if next((one.op for one in rest if type(one) is Op), None) in self._starts:
            return 0
        if not IN_SEQUENCE.issuperset(map(type, rest)):
            rest = [*itertools.takewhile(lambda one: type(one) in IN_SEQUENCE, rest)]
        # After skipped ops even one op is skipped: adding it to the history would add all of them.
        if len(rest) < (1 if self._skipped else MIN_BULK_INSTRUCTIONS) or self._to_skip or self._region >= 0:
            return 0
        ops = [one for one in rest if type(one) is Op]
        names = [op.op for op in ops]
        if not self._starts.keys().isdisjoint(names):
            return 0
        if not self._skipped:
            self._ngram_filter.add([token and token[0] for token in self._history[self._ngram_filter.seen :]])
        if not self._ngram_filter.add(names, new=True):
            return 0
        self._skipped += ops
        if len(self._history) + len(self._skipped) > 8 * self._longest:
            self._clear_history()
        return len(rest)

    def _add_skipped(self) -> None:
        """Add the ops that were skipped to the history."""
        skipped, self._skipped = self._skipped, []
        for cmd in skipped:
            if cmd is None:
                self._add_token(None)
            else:
                self._add_op(cmd)

    def _process_each(self, instructions: Sequence[LocalInstruction], index: int, out: list[Any]) -> int:
        """Handle instructions one by one until a sequence begins or ends; returns the next index."""
        append, mentioned = out.append, self._mentioned
        current = self._current
        cmd: Any
        for cmd in instructions[index:]:
            index += 1
            kind = type(cmd)
            if kind is Op:
                if current is not None:
                    refs = current.refs(cmd)
                    if not current.is_next(cmd, refs):
                        current = self._missed(current, cmd, refs, out)
                begins = False
                if current is None:
                    current = self._begin(cmd, out)
                    begins = current is not None
                    if current is None:
                        append(cmd)
                        self._add_op(cmd)
                        continue
                append(cmd)
                current.add(cmd)
                if not current.left:
                    self._complete(current, out)
                    current = None
                elif begins:
                    return index
            elif kind is int:
                if current is None:
                    mentioned.pop(cmd, None)
                append(cmd)
            elif kind in IN_SEQUENCE:
                append(cmd)
            else:
                if current is not None:
                    if not self._end(out):
                        self._begin_cycle_here(current)
                    current = None
                append(cmd)
                self._break()
                if kind is Boundary:
                    self._handle_boundary(cmd.begins)
                return index
        return index

    def count(self, repeat: Repeat) -> None:
        """Count a repeat that the client issued as one instruction. Call this before `feed`."""
        known = self.sequences.get(repeat.sequence.id) or HotSequence(repeat.sequence.steps)
        self.sequences.setdefault(known.id, known).hits += 1
        self._total += repeat.size - 1
        self._hot += repeat.size

    def _complete(self, prediction: Prediction, out: list[Any]) -> None:
        """End a sequence of which all ops have occurred."""
        self.marked.append(len(out))
        out.append(WorkerHotPathEnd(prediction.sequence.id, True))
        prediction.sequence.hits += 1
        self.completed.append((prediction.sequence, prediction.ops))
        self._current = None
        self._break()  # its ops are not in the history, so the next ones do not follow the last token there

    @property
    def expected(self) -> tuple[int, HotSequence | None]:
        """The number of ops to come of the predicted sequence, and the sequence; (0, None) without one."""
        current = self._current  # read once: another thread may call `feed` meanwhile
        left = 0 if current is None else current.left
        return (left, current.sequence) if current is not None and left else (0, None)

    def give_up(self) -> None:
        """End the current prediction, if there is one, as incomplete."""
        if self._current is not None:
            self._give_up(self._current, [])

    def _begin(self, cmd: Op, out: list[Any]) -> Prediction | None:
        """Predict a known sequence that begins with this op; None if there is none."""
        known = self._starts.get(cmd.op)
        if self._to_skip:
            self._to_skip -= 1
            return None
        if not known:
            return None
        for sequence in known:
            prediction = Prediction(sequence)
            if prediction.is_next(cmd, prediction.refs(cmd)):
                self._current = prediction
                self.marked.append(len(out))
                out.append(WorkerHotPathStart(sequence.id))
                return prediction
        return None

    def _missed(
        self, prediction: Prediction, cmd: Op, refs: tuple[int, ...], out: list[Any]
    ) -> Prediction | None:
        """Switch to a sequence with the same beginning that continues with this op, or give up."""
        current, index = prediction.sequence, len(prediction.ops)
        for other in self._starts[current.steps[0].op]:
            if len(other.steps) > index:
                step = other.steps[index]
                same = cmd.op == step.op and refs == step.inputs and alike(cmd.attrs, step.attrs)
                if same and prediction.is_beginning_of(other):
                    prediction.switch_to(other)
                    return prediction
        if self._end(out):
            return None
        last: Sequence[Any] = self._history[-_RESYNC_OPS:]
        recent: list[Any] = [*itertools.takewhile(lambda token: token is not None, reversed(last))][::-1]
        self._to_skip = ops_until_start(current, [*recent, (cmd.op, refs, cmd.attrs)])
        return None

    def _end(self, out: list[Any]) -> bool:
        """End a wrong prediction. Returns True if the ops so far are a shorter known sequence."""
        prediction = self._current
        assert prediction is not None
        for other in self._starts[prediction.sequence.steps[0].op]:
            if len(other) == len(prediction.ops) and prediction.is_beginning_of(other):
                prediction.switch_to(other)
                self._complete(prediction, out)
                return True
        self._give_up(prediction, out)
        return False

    def _give_up(self, prediction: Prediction, out: list[Any]) -> None:
        self._current = None
        self.marked.append(len(out))
        out.append(WorkerHotPathEnd(prediction.sequence.id, False))
        prediction.sequence.misses += 1
        for cmd in prediction.ops:
            self._add_op(cmd)

    def _begin_cycle_here(self, prediction: Prediction) -> None:
        """Let the sequence of a loop begin where the loop was interrupted, for example by a read."""
        tokens = self._cycles.pop(prediction.sequence.id, None)
        if tokens is not None:
            index = len(prediction.ops)
            self._add_sequence(steps_of(tokens[index:] + tokens[:index]))

    def _break(self) -> None:
        """Add a break to the history: no sequence extends across it."""
        self._to_skip = 0
        if self._skipped:
            if self._skipped[-1] is not None:
                self._skipped.append(None)
                self._ngram_filter.add([None])
        elif self._history and self._history[-1] is not None:
            self._add_token(None)

    def _handle_boundary(self, begins: bool) -> None:
        """Handle a Boundary: the ops between two of them are a sequence from the first occurrence on."""
        self._add_skipped()
        if begins:
            self._region = len(self._history)
            return
        region, self._region = self._region, -1
        tokens = self._history[region:-1] if self._history and self._history[-1] is None else []
        if region >= 0 and tokens and None not in tokens and len(tokens) <= self._longest:
            self._add_sequence(steps_of(tokens), explicit=True)

    def _add_op(self, cmd: Op) -> None:
        """Add an op to the history, as a token."""
        if self._skipped:
            self._add_skipped()
        mentioned = self._mentioned
        now = here = len(self._history) * POSITIONS
        distances: list[int] = []
        for tensor in cmd.inputs:
            distances.append(now - mentioned.get(tensor, now))
            here += 1
            mentioned[tensor] = here
        mentioned[cmd.result] = now
        self._add_token((cmd.op, tuple(distances), cmd.attrs))

    def _add_token(self, token: Token | None) -> None:
        """Append a token, or None for a break, and detect whether the last tokens repeat those before."""
        history = self._history
        now = len(history)
        history.append(token)
        key = ("", ()) if token is None else (token[0], token[1])
        period = self._period
        if period and same_token(history[now - period], token):
            self._run += 1
            enough = TINY_LOOP_OPS if period < TINY_PERIOD else MIN_UNROLLED_OPS
            if self._run >= period and self._run >= enough:
                self._add_period(period * -(-enough // period))
        else:
            before = self._last_index.get(key, -1)
            self._period = now - before if before >= 0 and now - before <= self._longest else 0
            self._run = 1 if self._period else 0
        self._last_index[key] = now
        if now > 8 * self._longest:
            self._clear_history()

    def _clear_history(self) -> None:
        """Clear the history, which has grown to its limit. The known sequences are kept."""
        if len(self._patterns) < _MAX_PATTERNS:
            self._patterns = self.patterns()
        self._history.clear()
        self._skipped.clear()
        self._ngram_filter = NGramFilter(MIN_UNROLLED_OPS)
        self._mentioned.clear()
        self._last_index.clear()
        self._period = self._run = 0
        self._region = -1

    def _add_period(self, period: int) -> None:
        """Add the sequences in the last period of the history, which equals the period before it."""
        cycle = self._history[-period:]
        for start, end in cut_cycle(cycle):
            tokens = shortest_period([cycle[n % period] for n in range(start, end)])
            if len(tokens) < self._shortest or self._is_concatenation(tokens):
                continue
            known = self._add_sequence(steps_of(tokens))
            if None not in cycle and known.repeats == 1:
                self._cycles[known.id] = tokens
        self._period = self._run = 0

    def _add_sequence(self, steps: list[Step], explicit: bool = False) -> HotSequence:
        """Add a sequence to those that are predicted; an equal one that is known is returned instead."""
        sequence = HotSequence(steps)
        known = self.sequences.setdefault(sequence.id, sequence)
        if known is sequence:
            logs.debug("compile", f"{sequence.id}: hot path detected, {len(steps)} ops: {first_ops(steps)}")
        known.explicit |= explicit
        known.repeats += 1
        starts = self._starts.setdefault(steps[0].op, [])
        if known in starts:
            starts.remove(known)
        starts.insert(0, known)
        starts.sort(key=len, reverse=True)
        return known

    def _is_concatenation(self, tokens: Sequence[Token | None]) -> bool:
        """Whether these tokens are a concatenation of two or more known sequences."""
        index = parts = 0
        while index < len(tokens):
            token = tokens[index]
            lengths = {len(one) for one in self._starts.get(token[0], ())} if token is not None else set()
            for length in lengths:
                if HotSequence(steps_of(tokens[index : index + length])).id in self.sequences:
                    index, parts = index + length, parts + 1
                    break
            else:
                return False
        return parts > 1
