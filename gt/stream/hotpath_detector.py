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
"""How many ops a sequence has at least."""

_SCAN_INSTRUCTIONS = 512
"""How many instructions are checked for novelty at a time."""

_RESYNC_OPS = 32
"""How many recent ops are compared to find the current position in a sequence."""

_MAX_PATTERNS = 1 << 16
"""How many distinct patterns are counted: bounds the memory of a program that never repeats."""


class HotPathDetector:
    """Injects `WorkerHotPathStart` and `WorkerHotPathEnd` around one client's repeated sequences.

    It never holds an instruction back. A start is a prediction: the code that uses the markers
    (RepeatBuilder) holds the instructions until the end marker, which has whether the sequence was complete.
    """

    def __init__(
        self, enabled: bool = True, shortest: int = MIN_SEQUENCE_OPS, longest: int = MAX_SEQUENCE_OPS
    ) -> None:
        self.enabled = enabled
        self.sequences: dict[str, HotSequence] = {}
        self._shortest, self._longest = shortest, longest
        self._starts: dict[str, list[HotSequence]] = {}
        """Sequences by the name of their first op, the longest first."""
        self._cycles: dict[str, list[Token | None]] = {}
        """The tokens of sequences whose beginning in their loop is a guess, by id."""
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
        self._unlearned: list[Op | None] = []
        """Ops after the end of the history that the n-gram filter found to be new; not yet converted to
        tokens."""
        # Used while one is predicted:
        self._current: Prediction | None = None
        self._skip = 0
        """How many ops must pass before the next prediction."""
        self._total = self._hot = 0
        self._inside = -1
        """How many instructions the current sequence has so far; -1 outside of one."""
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
        names = [token and token[0] for token in self._history] + [cmd and cmd.op for cmd in self._unlearned]
        return self._patterns | run_hashes(names)

    def feed(self, instructions: Sequence[LocalInstruction]) -> list[LocalInstruction]:
        """The instructions with markers among them; sets `marked` and `completed`."""
        if not self.enabled:
            return list(instructions)
        out: list[Any] = []
        self.marked, self.completed = [], []
        place = 0
        while place < len(instructions):
            current = self._current
            if current is None:
                taken = self._skip_new(instructions, place)
            else:
                taken = current.take(instructions, place)
            if taken:
                out += instructions[place : place + taken]
                place += taken
                if current is not None and not current.left:
                    self._complete(current, out)
            else:
                place = self._process_each(instructions, place, out)
        self._total += len(instructions)
        if self.marked or self._inside >= 0 or self._after:
            self._count_hot(out)
        return out

    def _count_hot(self, out: Sequence[Any]) -> None:
        """Count the instructions inside of complete sequences, and the frees right after them."""
        before = 0
        for place in [*self.marked, len(out)]:
            if self._after:
                end = before
                while end < place and type(out[end]) is int:
                    end += 1
                self._hot += end - before
                self._after = end == place == len(out)
            if self._inside >= 0:
                self._inside += place - before
            if place == len(out):
                return
            mark, before = out[place], place + 1
            if type(mark) is WorkerHotPathStart:
                self._inside, self._after = 0, False
            else:
                self._hot += self._inside if mark.complete else 0
                self._inside, self._after = -1, mark.complete

    def _skip_new(self, instructions: Sequence[LocalInstruction], place: int) -> int:
        """How many instructions from this index on cannot be part of a repetition, by op names.

        They become history later. 0 if one may begin a sequence, or if there are too few to be worth it.
        """
        rest: Sequence[Any] = instructions[place : place + _SCAN_INSTRUCTIONS]
        if next((one.op for one in rest if type(one) is Op), None) in self._starts:
            return 0
        if not IN_SEQUENCE.issuperset(map(type, rest)):
            rest = [*itertools.takewhile(lambda one: type(one) in IN_SEQUENCE, rest)]
        # After ops that were skipped, also a single one: adding it to the history adds all of them.
        if len(rest) < (1 if self._unlearned else MIN_BULK_INSTRUCTIONS) or self._skip or self._region >= 0:
            return 0
        ops = [one for one in rest if type(one) is Op]
        names = [op.op for op in ops]
        if not self._starts.keys().isdisjoint(names):
            return 0
        if not self._unlearned:
            self._ngram_filter.add([token and token[0] for token in self._history[self._ngram_filter.seen :]])
        if not self._ngram_filter.add(names, new=True):
            return 0
        self._unlearned += ops
        if len(self._history) + len(self._unlearned) > 8 * self._longest:
            self._start_over()
        return len(rest)

    def _catch_up(self) -> None:
        """Add the ops that were skipped to the history."""
        unlearned, self._unlearned = self._unlearned, []
        for cmd in unlearned:
            if cmd is None:
                self._push(None)
            else:
                self._learn(cmd)

    def _process_each(self, instructions: Sequence[LocalInstruction], place: int, out: list[Any]) -> int:
        """Handle instructions one by one until a sequence begins or ends; returns the next index."""
        append, mentioned = out.append, self._mentioned
        current = self._current
        cmd: Any
        for cmd in instructions[place:]:
            place += 1
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
                        self._learn(cmd)
                        continue
                append(cmd)
                current.add(cmd)
                if not current.left:
                    self._complete(current, out)
                    current = None
                elif begins:
                    return place
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
                    self._boundary(cmd.begins)
                return place
        return place

    def count(self, repeat: Repeat) -> None:
        """Count a repeat that the client issued as such, before it is fed."""
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
        """How many ops of the predicted sequence are to come, and the sequence; (0, None) if none is."""
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
        if self._skip:
            self._skip -= 1
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
        """Switch to another sequence with the same beginning that continues with this op, or give up."""
        current, place = prediction.sequence, len(prediction.ops)
        for other in self._starts[current.steps[0].op]:
            if len(other.steps) > place:
                step = other.steps[place]
                same = cmd.op == step.op and refs == step.inputs and alike(cmd.attrs, step.attrs)
                if same and prediction.could_be(other):
                    prediction.switch_to(other)
                    return prediction
        if self._end(out):
            return None
        last: Sequence[Any] = self._history[-_RESYNC_OPS:]
        recent: list[Any] = [*itertools.takewhile(lambda token: token is not None, reversed(last))][::-1]
        self._skip = ops_until_start(current, [*recent, (cmd.op, refs, cmd.attrs)])
        return None

    def _end(self, out: list[Any]) -> bool:
        """End a wrong prediction. Returns True if the ops so far are a shorter known sequence."""
        prediction = self._current
        assert prediction is not None
        for other in self._starts[prediction.sequence.steps[0].op]:
            if len(other) == len(prediction.ops) and prediction.could_be(other):
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
            self._learn(cmd)

    def _begin_cycle_here(self, prediction: Prediction) -> None:
        """Move the beginning of a loop's sequence to where the loop was interrupted, such as by a read."""
        tokens = self._cycles.pop(prediction.sequence.id, None)
        if tokens is not None:
            place = len(prediction.ops)
            self._add_sequence(steps_of(tokens[place:] + tokens[:place]))

    def _break(self) -> None:
        """Add a break: no sequence extends beyond this point."""
        self._skip = 0
        if self._unlearned:
            if self._unlearned[-1] is not None:
                self._unlearned.append(None)
                self._ngram_filter.add([None])
        elif self._history and self._history[-1] is not None:
            self._push(None)

    def _boundary(self, begins: bool) -> None:
        """Handle a Boundary: the ops between two of them are a sequence from the first occurrence on."""
        self._catch_up()
        if begins:
            self._region = len(self._history)
            return
        region, self._region = self._region, -1
        tokens = self._history[region:-1] if self._history and self._history[-1] is None else []
        if region >= 0 and tokens and None not in tokens and len(tokens) <= self._longest:
            self._add_sequence(steps_of(tokens), explicit=True)

    def _learn(self, cmd: Op) -> None:
        """Add an op to the history, as a token."""
        if self._unlearned:
            self._catch_up()
        mentioned = self._mentioned
        now = here = len(self._history) * POSITIONS
        distances: list[int] = []
        for tensor in cmd.inputs:
            distances.append(now - mentioned.get(tensor, now))
            here += 1
            mentioned[tensor] = here
        mentioned[cmd.result] = now
        self._push((cmd.op, tuple(distances), cmd.attrs))

    def _push(self, token: Token | None) -> None:
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
                self._commit(period * -(-enough // period))
        else:
            before = self._last_index.get(key, -1)
            self._period = now - before if before >= 0 and now - before <= self._longest else 0
            self._run = 1 if self._period else 0
        self._last_index[key] = now
        if now > 8 * self._longest:
            self._start_over()

    def _start_over(self) -> None:
        """Clear the history, which has grown to its limit. Known sequences stay."""
        if len(self._patterns) < _MAX_PATTERNS:
            self._patterns = self.patterns()
        self._history.clear()
        self._unlearned.clear()
        self._ngram_filter = NGramFilter(MIN_UNROLLED_OPS)
        self._mentioned.clear()
        self._last_index.clear()
        self._period = self._run = 0
        self._region = -1

    def _commit(self, period: int) -> None:
        """Add the sequences in the last period of the history, which equals the period before it."""
        cycle = self._history[-period:]
        for start, end in cut_cycle(cycle):
            tokens = shortest_period([cycle[n % period] for n in range(start, end)])
            if len(tokens) < self._shortest or self._known_in_parts(tokens):
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

    def _known_in_parts(self, tokens: Sequence[Token | None]) -> bool:
        """Whether these tokens are a concatenation of two or more known sequences."""
        place = parts = 0
        while place < len(tokens):
            token = tokens[place]
            lengths = {len(one) for one in self._starts.get(token[0], ())} if token is not None else set()
            for length in lengths:
                if HotSequence(steps_of(tokens[place : place + length])).id in self.sequences:
                    place, parts = place + length, parts + 1
                    break
            else:
                return False
        return parts > 1
