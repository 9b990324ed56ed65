"""Repeats that a worker executes step by step, compared with their ops executed one by one."""

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gt.stream.instructions import Site, Upload
from gt.stream.repeats import Repeat, Template
from gt.stream.sequences import HotSequence, Step
from gt.worker.worker import Outcome, Worker

RESULTS = 100
"""The number of the first step's result."""


class Watch:
    """Records, before a worker executes an op, which tensors are in memory."""

    def __init__(self, worker: Worker) -> None:
        self.seen: list[tuple[str, list[bool]]] = []
        """For each op: its name, and of each tensor so far whether it is there."""
        self._refs: list[Callable[[], Any]] = []
        engine = worker.engine
        run, functions = engine.run, engine.functions

        def looking(op: str, compute: Callable[[], Any]) -> Any:
            self.seen.append((op, [ref() is not None for ref in self._refs]))
            return self.note(compute())

        class Looking(dict[str, Any]):
            def __missing__(self, op: str) -> Callable[..., Any]:
                function = functions[op]

                @functools.wraps(function)
                def watched(*inputs: Any) -> Any:
                    return looking(op, lambda: function(*inputs))

                return watched

        engine.run = lambda op, inputs, attrs: looking(op, lambda: run(op, inputs, attrs))
        if engine.name == "pytorch":  # the others' functions are `run`
            engine.functions = Looking()

    def note(self, tensor: Any) -> Any:
        """This is a tensor as well."""
        self._refs.append(weakref.ref(tensor))
        return tensor


def outcome_of(worker: Worker, *instructions: Any) -> Outcome:
    """The outcome of executing instructions, repeats among them."""
    return worker.execute("c", instructions)


class Pair:
    """A worker that gets repeats, and one that gets the ops that they stand for."""

    def __init__(self, engine: str, hot: bool = True, **options: Any) -> None:
        self.ours = Worker("w", engine, **options)
        self.theirs = Worker("w", engine, **options)
        self.ours.compiles, self.theirs.compiles = hot and self.ours.compiles, False
        self.watches = [Watch(self.ours), Watch(self.theirs)]
        self.do(Site(7, "here.py:7"))

    def do(self, *instructions: Any) -> None:
        for worker in (self.ours, self.theirs):
            own = [Upload(i.result, i.array.copy()) if isinstance(i, Upload) else i for i in instructions]
            worker.execute("c", own)

    def put(self, number: int, array: Any) -> None:
        self.do(Upload(number, np.asarray(array)))
        for worker, watch in zip((self.ours, self.theirs), self.watches, strict=True):
            if number in worker.clients["c"].values:
                watch.note(worker.clients["c"].values[number])

    def repeat(self, repeat: Repeat) -> Outcome:
        """Carry it out in both ways; all must be the same afterwards."""
        ours = outcome_of(self.ours, repeat)
        theirs = self.theirs.execute("c", repeat.expanded())
        assert ours.failed == theirs.failed
        self.agree()
        if not ours.failed:  # what fails is tried again
            assert self.watches[0].seen == self.watches[1].seen
        return ours

    def agree(self) -> None:
        mine, others = self.ours.clients["c"], self.theirs.clients["c"]
        assert mine.failures == others.failures
        assert mine.values.keys() == others.values.keys()
        get = self.ours.engine.get
        for number, value in mine.values.items():
            a, b = get(value), get(others.values[number])
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)

    @property
    def there(self) -> dict[int, Any]:
        return self.ours.clients["c"].values

    @property
    def failures(self) -> dict[int, str]:
        return self.ours.clients["c"].failures


class Line(NamedTuple):
    """An op: its inputs are numbers of tensors from outside, or those of earlier results."""

    op: str
    inputs: tuple[int, ...] = ()
    attrs: dict[str, Any] | None = None


def repeat_of(
    lines: Sequence[Line],
    kept: Sequence[int] = (),
    freed: Sequence[int] = (),
    changed: dict[int, dict[str, Any]] | None = None,
    sequence: HotSequence | None = None,
) -> Repeat:
    """A repeat of these ops. Results are numbered from RESULTS on."""
    names: dict[int, int] = {}
    inputs: list[int] = []
    steps = []
    for n, line in enumerate(lines):
        for tensor in line.inputs:
            if tensor not in names:
                inputs.append(tensor)
                names[tensor] = -len(inputs)
        steps.append(Step(line.op, tuple(names[tensor] for tensor in line.inputs), line.attrs))
        names[RESULTS + n] = n
    template = Template(sequence or HotSequence(steps), (7,) * len(lines))
    results = range(RESULTS, RESULTS + len(lines))
    return Repeat(template, inputs, list(results), list(kept), list(freed), changed or {})
