"""Finds the instructions that a stream repeats, and marks them: what is between the marks can be compiled.

Two stretches of a stream are the same if their ops, their structural attributes and their data flow are:
which tensors they are about, which fractions and seeds they use, and when tensors are freed may differ.
So every op becomes a *token* that says how long ago each of its inputs was last mentioned, and a stretch that
is repeated is one whose tokens are. A training loop's are from its second step on.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from gt.transport.protocol import (
    Boundary,
    CreateTensor,
    LocalInstruction,
    Op,
    Signal,
    Site,
    Upload,
    WorkerHotPathEnd,
    WorkerHotPathStart,
)
from gt.transport.sequences import LITTLE, LONGEST, HotSequence, Step, alike, is_little
from gt.worker.glance import Glance
from gt.worker.prediction import FEW, Prediction

SHORTEST = 4
"""How many ops a sequence has at least: fewer are not worth it."""
LONG_ENOUGH = 16
"""What is repeated and shorter than this becomes one sequence several times over."""
MANY = 128
"""What is less than `LITTLE`, such as an op by itself again and again, becomes a sequence of so many ops:
every repeat has its price."""

Refs = tuple[int, ...]
Token = tuple[str, Refs, dict[str, Any] | None]
"""An op's name, how long ago each of its inputs was last mentioned, and its attributes.

How long ago is counted in ops, times `_WHICH`, less which of that op's tensors it was: 0 for its result, else
the number of its input. It is 0 for one that was never mentioned, and -1 for one that is the op's first input
already.
"""
_WHICH = 1 << 12

_AT_ONCE = 512
"""How many instructions are passed over at once."""

_LOOK_BACK = 32
"""How many ops are compared to find out where in a sequence they are."""

_PASSING = frozenset((CreateTensor, Upload, Site, Signal))
"""What may come in the middle of a sequence, because it needs nothing of it. All else, such as a question for
data or an exchange between workers, ends one."""
_INSIDE = frozenset((Op, int, *_PASSING))


class HotPathDetector:
    """Injects `WorkerHotPathStart` and `WorkerHotPathEnd` around what one client repeats.

    It never holds an instruction back. Start is a prediction: whoever executes the stream keeps what
    follows until End, which says whether all of it came.
    """

    def __init__(self, enabled: bool = True, shortest: int = SHORTEST, longest: int = LONGEST) -> None:
        self.enabled = enabled
        self.sequences: dict[str, HotSequence] = {}
        self._shortest, self._longest = shortest, longest
        self._starts: dict[str, list[HotSequence]] = {}
        """By the first op: the sequences that begin with it, the longest first."""
        self._cycles: dict[str, list[Token | None]] = {}
        """Sequences that were cut out of a loop somewhere, because nothing said where it begins."""
        # While nothing is predicted:
        self._history: list[Token | None] = []
        self._mentioned: dict[int, int] = {}
        """Where a tensor was last made or used."""
        self._at: dict[tuple[str, Refs], int] = {}
        """Where a token was last seen."""
        self._period = 0
        self._run = 0
        self._region = -1
        """Where in the history began what the user wants compiled; -1 if nothing did."""
        self._glance = Glance(LONG_ENOUGH)
        self._unlearnt: list[Op | None] = []
        """What came after the history, and cannot have repeated anything."""
        # While something is:
        self._current: Prediction | None = None
        self._skip = 0
        """How many ops to let pass before the next prediction."""
        self._total = self._hot = 0
        self.marked: list[int] = []
        """Where in what `feed` returned last the marks are."""
        self.came: list[tuple[HotSequence, list[Op]]] = []
        """The sequences that came whole in it, and their ops."""

    def process(self, cmd: LocalInstruction) -> Iterator[LocalInstruction]:
        """The instruction, with marks before or after it."""
        yield from self.feed((cmd,))

    def get_stats(self) -> dict[str, Any]:
        """What was seen and found."""
        self._catch_up()
        return {
            "total_instructions": self._total,
            "hot_instructions": self._hot,
            "unique_sequences": len(self._at),
            "hot_sequences": len(self.sequences),
        }

    def feed(self, instructions: Sequence[LocalInstruction]) -> list[LocalInstruction]:
        """What becomes of many instructions."""
        if not self.enabled:
            return list(instructions)
        out: list[Any] = []
        self.marked, self.came = [], []
        place = 0
        while place < len(instructions):
            current = self._current
            if current is None:
                taken = self._pass_over(instructions, place)
            else:
                taken = current.take(instructions, place, _INSIDE)
            if taken:
                out += instructions[place : place + taken]
                place += taken
                if current is not None and not current.left:
                    self._complete(current, out)
            else:
                place = self._each(instructions, place, out)
        self._total += len(instructions)
        return out

    def _pass_over(self, instructions: Sequence[LocalInstruction], place: int) -> int:
        """How many instructions from this one on begin no sequence and repeat nothing; they are learnt later.

        It looks at many at once. It is 0 if they might, or if there are few: then look at each by itself.
        """
        rest: Sequence[Any] = instructions[place : place + _AT_ONCE]
        if next((one.op for one in rest if type(one) is Op), None) in self._starts:
            return 0
        if not _INSIDE.issuperset(map(type, rest)):
            rest = [*itertools.takewhile(lambda one: type(one) in _INSIDE, rest)]
        # If all before them was passed over, it is worth it for one: to learn it is to learn all.
        if len(rest) < (1 if self._unlearnt else FEW) or self._skip or self._region >= 0:
            return 0
        ops = [one for one in rest if type(one) is Op]
        names = [op.op for op in ops]
        if not self._starts.keys().isdisjoint(names):
            return 0
        if not self._unlearnt:
            self._glance.add([token and token[0] for token in self._history[self._glance.seen :]])
        if not self._glance.add(names, new=True):
            return 0
        self._unlearnt += ops
        if len(self._history) + len(self._unlearnt) > 8 * self._longest:
            self._start_over()
        return len(rest)

    def _catch_up(self) -> None:
        """Learn what was passed over."""
        unlearnt, self._unlearnt = self._unlearnt, []
        for cmd in unlearnt:
            if cmd is None:
                self._push(None)
            else:
                self._learn(cmd)

    def _each(self, instructions: Sequence[LocalInstruction], place: int, out: list[Any]) -> int:
        """Look at instructions one by one until a sequence begins; the result is which comes next."""
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
            elif kind in _PASSING:
                append(cmd)
            else:
                if current is not None:
                    if not self._end(out):
                        self._turn(current)
                    current = None
                append(cmd)
                self._break()
                if kind is Boundary:
                    self._bound(cmd.begins)
                return place
        return place

    def _complete(self, prediction: Prediction, out: list[Any]) -> None:
        """All of a sequence has come."""
        self.marked.append(len(out))
        out.append(WorkerHotPathEnd(prediction.sequence.id, True))
        prediction.sequence.hits += 1
        self.came.append((prediction.sequence, prediction.ops))
        self._hot += len(prediction.ops)
        self._current = None
        self._break()  # it is not learnt again, so what comes next does not follow what was learnt last

    @property
    def expected(self) -> tuple[int, HotSequence | None]:
        """How many ops of what is predicted are still to come, and what it is; 0 if nothing is."""
        return (0, None) if self._current is None else (self._current.left, self._current.sequence)

    def give_up(self) -> None:
        """What was predicted will not be waited for."""
        if self._current is not None:
            self._give_up(self._current, [])

    # --- prediction ---

    def _begin(self, cmd: Op, out: list[Any]) -> Prediction | None:
        """Predict a sequence that begins with this op, if one does."""
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

    def _missed(self, prediction: Prediction, cmd: Op, refs: Refs, out: list[Any]) -> Prediction | None:
        """Another sequence that began alike, and goes on with this op; if there is none, the end."""
        current, place = prediction.sequence, len(prediction.ops)
        for other in self._starts[current.steps[0].op]:
            if len(other.steps) > place:
                step = other.steps[place]
                if (
                    cmd.op == step.op
                    and refs == step.inputs
                    and alike(cmd.attrs, step.attrs)
                    and prediction.could_be(other)
                ):
                    prediction.turn_to(other)
                    return prediction
        if self._end(out):
            return None
        recent = itertools.takewhile(lambda token: token is not None, reversed(self._history[-_LOOK_BACK:]))
        told: list[Any] = [*recent][::-1]
        self._skip = _until_start(current, [*told, (cmd.op, refs, cmd.attrs)])
        return None

    def _end(self, out: list[Any]) -> bool:
        """Something else came than was predicted. Whether what did is a sequence; if not, it is learnt."""
        prediction = self._current
        assert prediction is not None
        for other in self._starts[prediction.sequence.steps[0].op]:
            if len(other) == len(prediction.ops) and prediction.could_be(other):
                prediction.turn_to(other)
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

    def _turn(self, prediction: Prediction) -> None:
        """A loop was left, perhaps to read something: this is where it begins, and not where it was cut."""
        tokens = self._cycles.pop(prediction.sequence.id, None)
        if tokens is not None:
            place = len(prediction.ops)
            self._know(_steps(tokens[place:] + tokens[:place]))

    def _break(self) -> None:
        """No sequence goes on beyond this."""
        self._skip = 0
        if self._unlearnt:
            if self._unlearnt[-1] is not None:
                self._unlearnt.append(None)
                self._glance.add([None])
        elif self._history and self._history[-1] is not None:
            self._push(None)

    def _bound(self, begins: bool) -> None:
        """The user says that something begins or ends here: it is a sequence from the first time on."""
        self._catch_up()
        if begins:
            self._region = len(self._history)
            return
        region, self._region = self._region, -1
        tokens = self._history[region:-1] if self._history and self._history[-1] is None else []
        if region >= 0 and tokens and None not in tokens and len(tokens) <= self._longest:
            self._know(_steps(tokens), explicit=True)

    # --- learning ---

    def _learn(self, cmd: Op) -> None:
        if self._unlearnt:
            self._catch_up()
        mentioned = self._mentioned
        now = here = len(self._history) * _WHICH
        refs: list[int] = []
        for i in cmd.inputs:
            refs.append(now - mentioned.get(i, now))
            here += 1
            mentioned[i] = here
        mentioned[cmd.result] = now
        self._push((cmd.op, tuple(refs), cmd.attrs))

    def _push(self, token: Token | None) -> None:
        history = self._history
        now = len(history)
        history.append(token)
        key = ("", ()) if token is None else (token[0], token[1])
        period = self._period
        if period and _same(history[now - period], token):
            self._run += 1
            enough = MANY if period < LITTLE else LONG_ENOUGH
            if self._run >= period and self._run >= enough:
                self._commit(period * -(-enough // period))
        else:
            before = self._at.get(key, -1)
            self._period = now - before if before >= 0 and now - before <= self._longest else 0
            self._run = 1 if self._period else 0
        self._at[key] = now
        if now > 8 * self._longest:
            self._start_over()

    def _start_over(self) -> None:
        self._history.clear()
        self._unlearnt.clear()
        self._glance = Glance(LONG_ENOUGH)
        self._mentioned.clear()
        self._at.clear()
        self._period = self._run = 0
        self._region = -1

    def _commit(self, period: int) -> None:
        """The last tokens are the same as those before: one sequence or several, cut where it pays."""
        cycle = self._history[-period:]
        for start, end in _cuts(cycle):
            tokens = _shortest([cycle[n % period] for n in range(start, end)])
            if len(tokens) < self._shortest or self._known_in_parts(tokens):
                continue
            known = self._know(_steps(tokens))
            if None not in cycle and known.repeats == 1:
                self._cycles[known.id] = tokens
        self._period = self._run = 0

    def _know(self, steps: list[Step], explicit: bool = False) -> HotSequence:
        """From now on, expect this sequence."""
        sequence = HotSequence(steps)
        known = self.sequences.setdefault(sequence.id, sequence)
        known.explicit |= explicit
        known.repeats += 1
        starts = self._starts.setdefault(steps[0].op, [])
        if known in starts:
            starts.remove(known)
        starts.insert(0, known)
        starts.sort(key=len, reverse=True)
        return known

    def _known_in_parts(self, tokens: Sequence[Token | None]) -> bool:
        """Whether this is only what is known already, several times over."""
        place = parts = 0
        while place < len(tokens):
            token = tokens[place]
            lengths = {len(one) for one in self._starts.get(token[0], ())} if token is not None else set()
            for length in lengths:
                if HotSequence(_steps(tokens[place : place + length])).id in self.sequences:
                    place, parts = place + length, parts + 1
                    break
            else:
                return False
        return parts > 1


def _until_start(sequence: HotSequence, recent: Sequence[Token]) -> int:
    """How many ops, the last one among them, come before a sequence begins, if these are from its middle.

    Without this, a first op that comes again in the middle would be taken for a beginning every time round,
    and the beginning itself would pass unseen.
    """
    steps = sequence.steps

    def agreeing(place: int) -> int:
        """How many ops agree with the sequence, if the last one is its step at this place."""
        for back, (op, refs, attrs) in enumerate(reversed(recent)):
            step = steps[place - back % len(steps)]
            if step.op != op or len(step.inputs) != len(refs) or not alike(step.attrs, attrs):
                return back
        return len(recent)

    agree = [agreeing(place) for place in range(len(steps))]
    best = max(agree)
    places = [place for place, count in enumerate(agree) if count == best]
    # If there are several, another one next time.
    return len(steps) - places[sequence.misses % len(places)] if best else 0


def _cuts(cycle: Sequence[Token | None]) -> list[tuple[int, int]]:
    """Where the sequences of a cycle begin and end; numbers beyond its length mean the next time round."""
    period = len(cycle)
    breaks = [n for n, token in enumerate(cycle) if token is None]
    if breaks:
        ends = [*breaks, breaks[0] + period]
        return [(a + 1, b) for a, b in itertools.pairwise(ends) if b > a + 1]
    # Without a fetch: where the fewest tensors are needed from one side to the other.
    changes = [0] * (2 * period + 1)
    for n, token in enumerate(cycle):
        for ref in set(token[1]) if token is not None else ():
            if ref > 0:
                distance = min(-(-ref // _WHICH), period)
                changes[period + n - distance + 1] += 1
                changes[period + n + 1] -= 1
    crossing = list(itertools.accumulate(changes))

    def cost(n: int) -> tuple[int, int]:
        """Of equal ones, where the next op goes furthest back."""
        token = cycle[n]
        return crossing[n] + crossing[n + period], -min(token[1] if token else (), default=0)

    start = min(range(period), key=cost)
    return [(start, start + period)]


def _shortest(tokens: list[Token | None]) -> list[Token | None]:
    """What a stretch consists of, if it is the same several times over.

    A loop that reads a result at every fifth step repeats every five steps, and yet its sequence is one step.
    """
    names = [token and token[0] for token in tokens]
    for length in range(MANY if is_little(names) else LONG_ENOUGH, len(tokens) // 2 + 1):
        if len(tokens) % length or names[length:] != names[:-length]:
            continue
        pieces = [tokens[n : n + length] for n in range(0, len(tokens), length)]
        if len({HotSequence(_steps(piece)).id for piece in pieces}) == 1:
            return pieces[0]
    return tokens


def _steps(tokens: Sequence[Token | None]) -> list[Step]:
    """A stretch by itself: what was mentioned before its beginning is from outside."""
    steps: list[Step] = []
    mentions: list[tuple[int, ...]] = []
    """For each op: what its result is called, and what its inputs are."""
    slots = itertools.count(-1, -1)
    for n, token in enumerate(tokens):
        assert token is not None
        op, refs, attrs = token
        inputs: list[int] = []
        for ref in refs:
            place, which = divmod(n * _WHICH - ref, _WHICH)
            if ref < 0:
                inputs.append(inputs[-1 - ref])
            elif ref > 0 and place >= 0:
                inputs.append(mentions[place][which])
            else:
                inputs.append(next(slots))
        mentions.append((n, *inputs))
        steps.append(Step(op, tuple(inputs), attrs))
    return steps


def _same(a: Token | None, b: Token | None) -> bool:
    if a is None or b is None:
        return a is b
    return a[0] == b[0] and a[1] == b[1] and alike(a[2], b[2])
