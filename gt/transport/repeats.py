"""What a stream repeats, said in short.

A *sequence* is a stretch of ops that came more than once: which tensors it is about, which fractions and
seeds it uses, and when tensors are freed may differ from time to time. A *repeat* is one more time, and says
only what is different. Inside a process it stands for its ops, and `flat` gives them; between processes a
`Teller` sends the sequence once, and from then on a number, and a `Listener` at the other end turns it
back. So a training step that has a thousand ops travels as one small message.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from gt.errors import ProtocolError
from gt.transport.protocol import Define, LocalInstruction, Op, Replay, Signal
from gt.transport.sequences import LONGEST, HotSequence, Step, alike, differ

KNOWN = 512
"""How many sequences both ends keep in mind; of more, the oldest are forgotten."""
KNOWN_OPS = 64 * LONGEST
"""How many ops these have at most, all together."""
MOST_NUMBERS = 16 * LONGEST
"""Out of how many numbers those of a sequence's results may be picked."""


class Template(NamedTuple):
    """A sequence as a program says it: with the lines it comes from, and the signals given in it."""

    sequence: HotSequence
    sites: tuple[int, ...]
    signals: tuple[tuple[int, Signal], ...] = ()
    """For a step's result: how it is to lie. The tensor in it is not meant."""
    places: tuple[int, ...] = ()
    """Which of the numbers that a repeat says is which step's result; if empty, they are said in order. A
    worker's part of a program skips numbers: so they need not be said one by one."""


class Repeat:
    """A sequence once more, on these tensors."""

    __slots__ = ("changed", "freed", "inputs", "kept", "results", "runs", "template")

    def __init__(
        self,
        template: Template,
        inputs: Sequence[int],
        results: Sequence[int],
        kept: Sequence[int],
        freed: Sequence[int],
        changed: dict[int, dict[str, Any]],
        runs: Sequence[int] = (),
    ) -> None:
        self.template = template
        self.inputs = inputs
        """The tensors from outside."""
        self.results = results
        """What each step makes."""
        self.kept = kept
        """The steps whose results are there afterwards; others are gone again."""
        self.freed = freed
        """The tensors from outside that are gone afterwards."""
        self.changed = changed
        """The attributes of steps that are different this time."""
        self.runs = runs
        """The results' numbers as they travel, if that is known already: see `runs_of`."""

    @property
    def sequence(self) -> HotSequence:
        """What is repeated."""
        return self.template.sequence

    def attrs(self, step: int) -> dict[str, Any] | None:
        """A step's attributes, this time."""
        return self.changed.get(step) or self.sequence.steps[step].attrs

    @property
    def size(self) -> int:
        """How many instructions it stands for."""
        signals = len(self.template.signals)
        return 2 * len(self.results) - len(self.kept) + len(self.freed) + signals

    def expanded(self) -> list[LocalInstruction]:
        """The instructions it stands for. What is gone afterwards is freed as soon as nothing needs it."""
        (sequence, sites, signals, _), inputs, results = self.template, self.inputs, self.results
        there, gone = set(self.kept), dict.fromkeys(self.freed)
        signal_of = dict(signals)
        changed = self.changed
        out: list[LocalInstruction] = []
        for n, (step, dying) in enumerate(zip(sequence.steps, sequence.last_uses, strict=True)):
            if n in signal_of:
                _, name, layout, workers = _fields(signal_of[n])
                out.append(Signal(results[n], name, layout, workers))
            given = tuple([results[ref] if ref >= 0 else inputs[-1 - ref] for ref in step.inputs])
            out.append(Op(results[n], step.op, given, changed.get(n, step.attrs), sites[n]))
            for ref in dying:
                if ref >= 0:
                    if ref not in there:
                        out.append(results[ref])
                elif inputs[-1 - ref] in gone:
                    del gone[inputs[-1 - ref]]
                    out.append(inputs[-1 - ref])
        out += gone
        return out


def _fields(signal: Signal) -> tuple[int, str, Any, tuple[int, ...]]:
    return signal.tensor, signal.name, signal.layout, signal.workers


def repeat_of(
    sequence: HotSequence,
    ops: Sequence[Op],
    instructions: Sequence[Any],
    templates: dict[Any, Template],
) -> tuple[list[Any], Repeat]:
    """From the instructions of a sequence that came whole: what is to be done before it, and the rest.

    Before it come uploads and lines of code, which wait for nothing. `ops` are those among the instructions,
    and `templates` is what is known already.
    """
    freed = dict.fromkeys([one for one in instructions if type(one) is int])
    results = [op.result for op in ops]
    before: list[Any] = []
    signals: list[tuple[int, Signal]] = []
    if len(ops) + len(freed) < len(instructions):
        place = {result: n for n, result in enumerate(results)}
        for one in instructions:
            kind = type(one)
            if kind is Signal and one.tensor in place:
                signals.append((place[one.tensor], one))
            elif kind is not Op and kind is not int:
                before.append(one)
    inputs = [ops[n].inputs[position] for n, position in sequence.columns.sources]
    sites = tuple([op.site for op in ops])
    said = tuple([(n, s.name, repr(s.layout), s.workers) for n, s in signals])
    template = templates.get((sequence, sites, said))
    if template is None:
        if len(templates) > 4 * KNOWN:
            templates.clear()
        template = templates[sequence, sites, said] = Template(sequence, sites, tuple(signals))
    changed: dict[int, dict[str, Any]] = {}
    for n, names in sequence.changing:
        attrs, before_now = ops[n].attrs, sequence.steps[n].attrs
        if attrs is not None and before_now is not None and differ(attrs, before_now, names):
            changed[n] = attrs
    if freed:
        kept = [n for n, result in enumerate(results) if result not in freed]
        gone = [tensor for tensor in inputs if tensor in freed]
        if len(gone) + len(results) - len(kept) < len(freed):  # others too, which it does not need
            made = set(results)
            gone = [tensor for tensor in freed if tensor not in made]
    else:
        kept, gone = list(range(len(results))), []
    return before, Repeat(template, inputs, results, kept, gone, changed)


SEVERAL: set[type] = {Repeat}
"""What stands for several instructions: `size` says how many, and `expanded` gives them."""


def flat(instructions: Sequence[Any]) -> Sequence[Any]:
    """The same instructions, each by itself."""
    if SEVERAL.isdisjoint(map(type, instructions)):
        return instructions
    out: list[Any] = []
    for instruction in instructions:
        if type(instruction) in SEVERAL:
            out += instruction.expanded()
        else:
            out.append(instruction)
    return out


def weight(instructions: Sequence[Any]) -> int:
    """How many instructions these stand for."""
    if SEVERAL.isdisjoint(map(type, instructions)):
        return len(instructions)
    return len(instructions) + sum([one.size - 1 for one in instructions if type(one) in SEVERAL])


def cut_after(instructions: Sequence[Any], start: int, count: int) -> int:
    """Where a piece of so many instructions ends; a repeat is never cut."""
    end = min(start + count, len(instructions))
    if SEVERAL.isdisjoint(map(type, instructions[start:end])):
        return end
    total = 0
    for n in range(start, end):
        total += instructions[n].size if type(instructions[n]) in SEVERAL else 1
        if total >= count:
            return n + 1
    return end


# --- on the wire ---


class Teller:
    """Turns repeats into messages."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, Template]] = {}
        """By identity; the template is kept, so that it stays the only one with that."""
        self._ops = 0
        """How many ops these have."""
        self._next = itertools.count()

    def tell(self, instructions: Sequence[Any]) -> Sequence[Any]:
        """The same as it travels."""
        if Repeat not in map(type, instructions):
            return instructions
        out: list[Any] = []
        for one in instructions:
            if type(one) is Repeat:
                number = self._number(one.template, out)
                runs, kept = list(one.runs or runs_of(one.results)), list(one.kept)
                out.append(Replay(number, list(one.inputs), runs, kept, list(one.freed), one.changed))
            else:
                out.append(one)
        return out

    def _number(self, template: Template, out: list[Any]) -> int:
        known = self._numbers.get(id(template))
        if known is not None:
            return known[0]
        number = next(self._next)
        self._numbers[id(template)] = number, template
        self._ops += len(template.sequence)
        while len(self._numbers) > KNOWN or self._ops > KNOWN_OPS:
            _, oldest = self._numbers.pop(next(iter(self._numbers)))
            self._ops -= len(oldest.sequence)
        steps = [(step.op, step.inputs, step.attrs) for step in template.sequence.steps]
        sites, signals, places = list(template.sites), list(template.signals), list(template.places)
        out.append(Define(number, steps, sites, signals, template.sequence.explicit, places))
        return number

    def forget(self) -> None:
        """The other end knows nothing any more."""
        self._numbers.clear()
        self._ops = 0


class Listener:
    """Turns messages into repeats. What it hears may be anybody's: nonsense is a ProtocolError."""

    def __init__(self) -> None:
        self._known: dict[int, Template] = {}
        self._ops = 0
        """How many ops these have."""

    def hear(self, instructions: Sequence[Any]) -> Sequence[Any]:
        """The same as it is inside a process."""
        kinds = set(map(type, instructions))
        if Replay not in kinds and Define not in kinds:
            return instructions
        out: list[Any] = []
        for one in instructions:
            if type(one) is Define:
                self._define(one)
            elif type(one) is Replay:
                out.append(self._repeat(one))
            else:
                out.append(one)
        return out

    def _define(self, said: Define) -> None:
        template = _template(said)
        before = self._known.pop(said.sequence, None)
        self._known[said.sequence] = template
        self._ops += len(template.sequence) - (0 if before is None else len(before.sequence))
        while len(self._known) > KNOWN or self._ops > KNOWN_OPS:
            self._ops -= len(self._known.pop(next(iter(self._known))).sequence)

    def _repeat(self, said: Replay) -> Repeat:
        template = self._known.get(said.sequence)
        if template is None:
            raise ProtocolError(f"a repeat of the sequence {said.sequence}, which nobody has defined")
        sequence = template.sequence
        steps = sequence.steps
        runs, places = said.results, template.places
        count = max(places) + 1 if places else len(steps)
        if len(runs) % 2 or sum(runs[1::2]) != count or min(runs[1::2], default=1) < 1:
            raise ProtocolError(f"a repeat of {len(steps)} ops with other results: {runs[:8]}")
        numbers: list[int] = []
        for start, length in zip(runs[::2], runs[1::2], strict=True):
            numbers += range(start, start + length)
        results = [numbers[place] for place in places] if places else numbers
        kept = said.kept
        rising = all(map(int.__lt__, kept, kept[1:]))
        if not rising or (kept and not 0 <= kept[0] <= kept[-1] < len(steps)):
            raise ProtocolError(f"a repeat of {len(steps)} ops that keeps the results of {kept[:8]}")
        if len(said.inputs) != sequence.outside:
            raise ProtocolError(
                f"a repeat of a sequence on {sequence.outside} tensors with {len(said.inputs)}"
            )
        for n, attrs in said.changed.items():
            if not 0 <= n < len(steps) or not alike(steps[n].attrs, attrs):
                raise ProtocolError(f"a repeat whose step {n} is another: {attrs}")
        return Repeat(template, said.inputs, results, kept, said.freed, said.changed, runs)


def _template(said: Define) -> Template:
    count = len(said.steps)
    if not 0 < count <= LONGEST or len(said.sites) != count:
        raise ProtocolError(f"a sequence of {count} ops, from {len(said.sites)} lines")
    next_outside = -1
    for n, (_, inputs, _) in enumerate(said.steps):
        for ref in inputs:
            if ref >= n or ref < next_outside:
                raise ProtocolError(f"a sequence whose step {n} needs the tensor {ref}, which is none of it")
            if ref == next_outside:
                next_outside -= 1
    if not all(0 <= n < count for n, _ in said.signals):
        raise ProtocolError("a sequence with a signal for a step that it has not")
    places = tuple(said.places)
    if places and (len(set(places)) != count or not 0 <= min(places) <= max(places) < MOST_NUMBERS):
        raise ProtocolError(f"a sequence of {count} ops with results in the places {said.places[:8]}")
    sequence = HotSequence([Step(op, inputs, attrs) for op, inputs, attrs in said.steps])
    sequence.explicit = said.explicit
    return Template(sequence, tuple(said.sites), tuple(said.signals), places)


def runs_of(numbers: Sequence[int]) -> list[int]:
    """Numbers as starts and counts of those that follow each other."""
    first = numbers[0]
    if numbers[-1] - first == len(numbers) - 1 and list(numbers) == list(range(first, first + len(numbers))):
        return [first, len(numbers)]
    runs = [first, 1]
    for number in numbers[1:]:
        if number == runs[-2] + runs[-1]:
            runs[-1] += 1
        else:
            runs += (number, 1)
    return runs


def cut_runs(runs: Sequence[int], start: int, stop: int) -> list[int]:
    """The same of the numbers from one place up to another."""
    out: list[int] = []
    for first, count in zip(runs[::2], runs[1::2], strict=True):
        if stop <= 0:
            break
        if start < count:
            out += (first + start, min(stop, count) - start)
            start = count
        start, stop = start - count, stop - count
    return out
