"""Repeats: occurrences of a known sequence, sent as references to it.

A *sequence* is a run of ops that occurred more than once. Its tensors, its floats and seeds, and when tensors
are freed may differ between occurrences. A *repeat* is one occurrence, and holds only the differences. Within
a process, `flat` expands repeats to their ops. Between processes, a `RepeatEncoder` sends the definition of a
sequence once and its number from then on, and a `RepeatDecoder` restores the repeat. So a training step of a
thousand ops is one small message.
"""

import itertools
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from gt.errors import ProtocolError
from gt.stream.instruction_table import ANY_SENDER, row
from gt.stream.instructions import Define, LocalInstruction, Op, Replay, Signal
from gt.stream.sequences import MAX_SEQUENCE_OPS, HotSequence, Step, alike, differ

MAX_TEMPLATES = 512
"""The largest number of templates that an encoder and its decoder keep; the oldest are dropped first."""
MAX_TEMPLATE_OPS = 64 * MAX_SEQUENCE_OPS
"""The largest number of ops in all of these templates."""
MAX_ID = (1 << 63) - 1
"""The largest id of a tensor."""
MAX_RESULT_IDS = 16 * MAX_SEQUENCE_OPS
"""The largest range of ids that `Template.result_indices` may refer to."""


class Template(NamedTuple):
    """A sequence, the sites of its ops, and the signals in it."""

    sequence: HotSequence
    sites: tuple[int, ...]
    signals: tuple[tuple[int, Signal], ...] = ()
    """Steps with a signal for their result. The tensor id in the Signal is ignored."""
    result_indices: tuple[int, ...] = ()
    """For each step: the index of its result's id among the ids of a repeat; empty if they are in order. A
    worker's part of a repeat skips ids: with these indices, it can still list its ids as ranges."""


def _kept(repeat: "Repeat") -> Sequence[int]:
    return [repeat.results[step] for step in repeat.kept]


# The tape shows the instructions of a repeat one by one.
@row(*ANY_SENDER, reads=attrgetter("inputs"), makes=_kept, frees=attrgetter("freed"), overlaps=True)
class Repeat:
    """One occurrence of a sequence, with its tensors."""

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
        """The tensors from outside of the sequence."""
        self.results = results
        """The result of each step."""
        self.kept = kept
        """The steps whose results exist afterwards; the others' are freed."""
        self.freed = freed
        """The tensors from outside that are freed."""
        self.changed = changed
        """By step: its attributes, where they differ from the sequence's."""
        self.runs = runs
        """The ids of the results as ranges (see `runs_of`), if already computed."""

    @property
    def sequence(self) -> HotSequence:
        """The sequence that this is an occurrence of."""
        return self.template.sequence

    def attrs(self, step: int) -> dict[str, Any] | None:
        """A step's attributes in this occurrence."""
        return self.changed.get(step) or self.sequence.steps[step].attrs

    @property
    def size(self) -> int:
        """The number of instructions that it stands for."""
        signals = len(self.template.signals)
        return 2 * len(self.results) - len(self.kept) + len(self.freed) + signals

    def expanded(self) -> list[LocalInstruction]:
        """The instructions that it stands for. Tensors are freed right after their last use."""
        (sequence, sites, signals, _), inputs, results = self.template, self.inputs, self.results
        kept, gone = set(self.kept), dict.fromkeys(self.freed)
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
                    if ref not in kept:
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
    """The instructions of a complete sequence as a Repeat, and those that must be executed before it.

    Those that must be executed before it are uploads and sites, which have no inputs. `ops` are the ops among
    the instructions; `templates` are the known templates, to which a new one is added.
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
    signal_key = tuple([(n, s.name, repr(s.layout), s.workers) for n, s in signals])
    template = templates.get((sequence, sites, signal_key))
    if template is None:
        if len(templates) > 4 * MAX_TEMPLATES:
            templates.clear()
        template = templates[sequence, sites, signal_key] = Template(sequence, sites, tuple(signals))
    changed: dict[int, dict[str, Any]] = {}
    for n, names in sequence.changing:
        attrs, before_now = ops[n].attrs, sequence.steps[n].attrs
        if attrs is not None and before_now is not None and differ(attrs, before_now, names):
            changed[n] = attrs
    if freed:
        kept = [n for n, result in enumerate(results) if result not in freed]
        gone = [tensor for tensor in inputs if tensor in freed]
        if len(gone) + len(results) - len(kept) < len(freed):  # also tensors that are no inputs of it
            made = set(results)
            gone = [tensor for tensor in freed if tensor not in made]
    else:
        kept, gone = list(range(len(results))), []
    return before, Repeat(template, inputs, results, kept, gone, changed)


COMPOUND: set[type] = {Repeat}
"""Types that stand for several instructions: `size` is their number, and `expanded()` returns them."""


def flat(instructions: Sequence[Any]) -> Sequence[Any]:
    """The instructions with all compound ones expanded."""
    if COMPOUND.isdisjoint(map(type, instructions)):
        return instructions
    out: list[Any] = []
    for instruction in instructions:
        if type(instruction) in COMPOUND:
            out += instruction.expanded()
        else:
            out.append(instruction)
    return out


def weight(instructions: Sequence[Any]) -> int:
    """How many instructions these are when compound ones are expanded."""
    if COMPOUND.isdisjoint(map(type, instructions)):
        return len(instructions)
    return len(instructions) + sum([one.size - 1 for one in instructions if type(one) in COMPOUND])


def cut_after(instructions: Sequence[Any], start: int, count: int) -> int:
    """The index at which a piece of `count` instructions ends; a compound instruction is never cut."""
    end = min(start + count, len(instructions))
    if COMPOUND.isdisjoint(map(type, instructions[start:end])):
        return end
    total = 0
    for n in range(start, end):
        total += instructions[n].size if type(instructions[n]) in COMPOUND else 1
        if total >= count:
            return n + 1
    return end


# --- on the wire ---


class RepeatEncoder:
    """Encodes repeats for the wire: a Define for each new template, and a Replay for each repeat."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, Template]] = {}
        """By the template's `id()`; the template is kept alive so that the `id()` stays unique."""
        self._ops = 0
        """How many ops these templates have in total."""
        self._next = itertools.count()

    def encode(self, instructions: Sequence[Any]) -> Sequence[Any]:
        """The instructions with repeats encoded."""
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
        while len(self._numbers) > MAX_TEMPLATES or self._ops > MAX_TEMPLATE_OPS:
            _, oldest = self._numbers.pop(next(iter(self._numbers)))
            self._ops -= len(oldest.sequence)
        steps = [(step.op, step.inputs, step.attrs) for step in template.sequence.steps]
        sites, signals, indices = list(template.sites), list(template.signals), list(template.result_indices)
        out.append(Define(number, steps, sites, signals, template.sequence.explicit, indices))
        return number

    def forget(self) -> None:
        """Forget all templates. Called when the decoder has forgotten them."""
        self._numbers.clear()
        self._ops = 0


class RepeatDecoder:
    """Decodes repeats. Its input is untrusted: anything inconsistent raises a ProtocolError."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        """How many results the repeats of one message may have; None for any number. A small message can
        stand for billions."""
        self._known: dict[int, Template] = {}
        self._ops = 0
        """How many ops these templates have in total."""

    def decode(self, instructions: Sequence[Any]) -> Sequence[Any]:
        """The instructions with Define and Replay replaced by repeats."""
        kinds = set(map(type, instructions))
        if Replay not in kinds and Define not in kinds:
            return instructions
        out: list[Any] = []
        left = self._most
        for one in instructions:
            if type(one) is Define:
                self._define(one)
            elif type(one) is Replay:
                if left is not None:
                    left -= sum(one.results[1::2])
                    if left < 0:
                        raise ProtocolError(f"a message whose repeats have more than {self._most} results")
                out.append(self._repeat(one))
            else:
                out.append(one)
        return out

    def _define(self, definition: Define) -> None:
        template = _template(definition)
        before = self._known.pop(definition.sequence, None)
        self._known[definition.sequence] = template
        self._ops += len(template.sequence) - (0 if before is None else len(before.sequence))
        while len(self._known) > MAX_TEMPLATES or self._ops > MAX_TEMPLATE_OPS:
            self._ops -= len(self._known.pop(next(iter(self._known))).sequence)

    def _repeat(self, replay: Replay) -> Repeat:
        template = self._known.get(replay.sequence)
        if template is None:
            raise ProtocolError(f"a repeat of the sequence {replay.sequence}, which was not defined")
        sequence = template.sequence
        steps = sequence.steps
        runs, indices = replay.results, template.result_indices
        count = max(indices) + 1 if indices else len(steps)
        if len(runs) % 2 or sum(runs[1::2]) != count or min(runs[1::2], default=1) < 1:
            raise ProtocolError(f"a repeat of {len(steps)} ops with a wrong number of results: {runs[:8]}")
        if max(runs[::2], default=0) > MAX_ID - count:  # an id beyond 64 bits could not be sent any more
            raise ProtocolError(f"a repeat with results beyond {MAX_ID}: {runs[:8]}")
        numbers: list[int] = []
        for start, length in zip(runs[::2], runs[1::2], strict=True):
            numbers += range(start, start + length)
        results = [numbers[index] for index in indices] if indices else numbers
        kept = replay.kept
        rising = all(map(int.__lt__, kept, kept[1:]))
        if not rising or (kept and not 0 <= kept[0] <= kept[-1] < len(steps)):
            raise ProtocolError(f"a repeat of {len(steps)} ops that keeps the results of steps {kept[:8]}")
        if len(replay.inputs) != sequence.outside:
            raise ProtocolError(
                f"a repeat with {len(replay.inputs)} inputs of a sequence that takes {sequence.outside}"
            )
        for n, attrs in replay.changed.items():
            if not 0 <= n < len(steps) or not alike(steps[n].attrs, attrs):
                raise ProtocolError(f"a repeat with invalid attributes for step {n}: {attrs}")
        return Repeat(template, replay.inputs, results, kept, replay.freed, replay.changed, runs)


def _template(definition: Define) -> Template:
    count = len(definition.steps)
    if not 0 < count <= MAX_SEQUENCE_OPS or len(definition.sites) != count:
        raise ProtocolError(f"a sequence of {count} ops with {len(definition.sites)} sites")
    next_outside = -1
    for n, (_, inputs, _) in enumerate(definition.steps):
        for ref in inputs:
            if ref >= n or ref < next_outside:
                raise ProtocolError(f"a sequence whose step {n} has an invalid input {ref}")
            if ref == next_outside:
                next_outside -= 1
    if not all(0 <= n < count for n, _ in definition.signals):
        raise ProtocolError("a sequence with a signal for an invalid step")
    indices = tuple(definition.result_indices)
    if indices and (len(set(indices)) != count or not 0 <= min(indices) <= max(indices) < MAX_RESULT_IDS):
        raise ProtocolError(
            f"a sequence of {count} ops with invalid result indices: {definition.result_indices[:8]}"
        )
    sequence = HotSequence([Step(op, inputs, attrs) for op, inputs, attrs in definition.steps])
    sequence.explicit = definition.explicit
    return Template(sequence, tuple(definition.sites), tuple(definition.signals), indices)


def runs_of(numbers: Sequence[int]) -> list[int]:
    """Integers as ranges of consecutive ones: `[start, count, start, count, ...]`."""
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
    """The ranges of the integers at the indices from `start` up to `stop`."""
    out: list[int] = []
    for first, count in zip(runs[::2], runs[1::2], strict=True):
        if stop <= 0:
            break
        if start < count:
            out += (first + start, min(stop, count) - start)
            start = count
        start, stop = start - count, stop - count
    return out
