"""The worker: numbers to values, and one instruction after the other."""

import functools
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gt import config
from gt.errors import WorkerError
from gt.transport import modifiers as streams
from gt.transport.describe import debug
from gt.transport.protocol import (
    Exchange,
    Failed,
    Fetched,
    GetData,
    LocalInstruction,
    Lost,
    Mark,
    Op,
    ShardOp,
    Site,
    Upload,
    WorkerHotPathEnd,
    WorkerHotPathStart,
)
from gt.transport.repeats import Repeat, flat, weight
from gt.worker.background import Background, library_in
from gt.worker.compiling import cache_folder
from gt.worker.condenser import Condenser
from gt.worker.eager_repeat import EagerRepeats
from gt.worker.engine.base import Engine, attributes, load_engine
from gt.worker.exchange import exchange, poison
from gt.worker.guard import Guard
from gt.worker.hotpaths import Call, HotPaths
from gt.worker.memory import Checked, Limit, Values, dtype_name, explain, is_out_of_memory
from gt.worker.space import Space

if TYPE_CHECKING:
    from gt.transport.peers import Peers


LONG = {True: 1e-4, False: 1e-3}
"""Seconds that a call takes at least to be worth a thread: embedded, and in a process of its own, where less
is to be done meanwhile."""


_WAITS_FOR_NOTHING = {Upload, Site, int, Repeat}
"""Instructions that others need not have ended for; what is freed may be freed later."""


class Outcome(NamedTuple):
    """What came of a batch of instructions."""

    failed: list[Failed]
    data: list[Fetched]
    seconds: float
    marks: Sequence[Mark] = ()
    """The hot paths that began and ended in it."""


class Worker:
    """Carries out instructions on one engine.

    A failing instruction never stops the worker: its result becomes a failure, which spreads to whatever
    is computed from it and is reported when somebody asks for the data.
    """

    def __init__(
        self,
        name: str = "worker_0",
        engine: str = "pytorch",
        backend: str | None = None,
        modifiers: Sequence[streams.StreamModifier] = (),
        memory_limit: int = 0,
        embedded: bool = False,
    ) -> None:
        self.name = name
        self.memory_limit = memory_limit
        """How many bytes tensors may take; 0 for no limit but the machine's."""
        self._limit = Limit(memory_limit) if memory_limit else None
        self.guard: Guard | None = None
        """What keeps it within its machine's memory, if it has a process of its own."""
        self.engine_name = backend or engine
        self.modifiers = list(modifiers)
        self.spaces: dict[str, Space] = {}
        self.condensed: set[str] = set()
        """Clients whose streams need not be looked through for repeats."""
        self.total_instructions = 0
        self._hot = self.engine_name == "pytorch" and config.auto_compile()
        """Whether what clients repeat is compiled."""
        self.long = LONG[embedded]
        """From how many seconds on a call runs in the background."""
        self._shares_process = embedded
        """Whether the program that it works for is in the same process, and could go on meanwhile."""
        self._running: deque[tuple[Space, Call]] = deque()
        """What runs in the background, and what follows it: all else waits until that has ended."""
        self._waited = self._expected = 0.0
        """Of the instructions at hand: seconds spent waiting for that, and those it will take."""
        self._repeated: dict[str, int] = {}
        """By sequence, how many ops of repeats there were."""
        self.peers: Peers | None = None
        """The way to other workers, if there are any."""
        self._exchanged: set[int] = set()
        """Exchanges of the instructions at hand that this worker has taken part in."""

    @functools.cached_property
    def engine(self) -> Engine:
        """The engine, loaded on first use: importing torch takes a second that not every program needs."""
        config.debug("worker", f"{self.name}: loading the {self.engine_name} engine")
        return load_engine(self.engine_name)

    @functools.cached_property
    def hot_paths(self) -> HotPaths:
        """What is known of how to run what clients repeat."""
        return HotPaths(self.engine)

    @functools.cached_property
    def _eager_repeats(self) -> EagerRepeats:
        """Runs what clients repeat as long as it is not compiled."""
        return EagerRepeats(self.engine)

    @functools.cached_property
    def _background(self) -> Background | None:
        """Runs what takes long while the program goes on. Compiled like all that it runs."""
        try:
            return Background(library_in(cache_folder()), self.engine.threads)
        except OSError:
            return None

    @property
    def loaded(self) -> bool:
        """Whether the engine has been loaded."""
        return "engine" in self.__dict__

    def execute(self, client: str, instructions: Sequence[LocalInstruction]) -> Outcome:
        """Carry out a client's instructions."""
        start = time.perf_counter()
        space = self._space(client)
        debug("worker", instructions, prefix=f"{self.name}: {client}: ")
        failed: list[Failed] = []
        data: list[Fetched] = []
        if not self.loaded:
            try:
                _ = self.engine
            except Exception as error:  # noqa: BLE001 - an engine that is not installed fails every op
                why = self._message("loading the engine", error)
                for order in instructions:
                    if isinstance(order, Exchange) and self.peers is not None:
                        poison(order, why, self.peers)
                return Outcome(
                    [], [Fetched(i.request, None, why, i.part) for i in instructions if type(i) is GetData], 0
                )
        if self.modifiers:
            instructions = streams.through(self.modifiers, flat(instructions))
        count = weight(instructions)
        self.total_instructions += count
        marks: list[Mark] = []
        if self._hot and count > len(instructions):
            marks = [*_marks(instructions)]
        if space.condenser is not None:
            instructions = space.condenser.condense(instructions)
            marks += space.condenser.marks
        self._waited = self._expected = 0.0
        if self._running and self._running[-1][0] is not space:
            self.finish()
        self._carry_out(space, instructions, failed, data)
        self._exchanged.clear()
        # Who asked for what runs in the background is charged for it, and not who has to wait.
        seconds = time.perf_counter() - start - self._waited + self._expected
        return Outcome(failed, data, seconds, marks)

    def _start(self, space: Space, call: Call) -> None:
        """Run a call in the background, after what runs there."""
        assert self._background is not None
        call.start(self._background, self._running[-1][1] if self._running else None)
        self._running.append((space, call))
        self._expected += call.expected

    def _count(self, repeat: Repeat) -> None:
        sequence = repeat.sequence
        self._repeated[sequence.id] = self._repeated.get(sequence.id, 0) + len(sequence)

    def _replay(
        self, space: Space, repeat: Repeat, failed: list[Failed], data: list[Fetched], limited: bool
    ) -> None:
        """Carry out a sequence that came whole: compiled, if it is."""
        self._count(repeat)
        call = self._following(space, repeat) if self._running and not limited else None
        if call is None:
            self.finish()
            call = self.hot_paths.ready(repeat, space.values, self._limit) if self._hot else None
        if call is None:
            self._eagerly(space, repeat, failed, data)
        elif not limited and call.compiled.best > self.long and self._background is not None:
            self._start(space, call)
        else:
            call.run(alone=not self._shares_process)
            self._complete(space, call, failed, data)

    def _following(self, space: Space, repeat: Repeat) -> Call | None:
        """What runs a sequence right after what runs in the background, if that can be."""
        while len(self._running) > 1:
            self._finish_first()
        if not self._running:
            return None
        call = self.hot_paths.follow(repeat, space.values, self._running[-1][1])
        return call if call is not None and call.compiled.best > self.long else None

    def _eagerly(self, space: Space, repeat: Repeat, failed: list[Failed], data: list[Fetched]) -> None:
        start = time.perf_counter()
        checked = self._limit_now() is not None
        left = repeat.expanded() if checked else self._eager_repeats.run(repeat, space.values)
        if left:
            self._carry_out(space, left, failed, data)
        elif space.failures:
            for tensor in repeat.freed:
                space.failures.pop(tensor, None)
        if self._hot:
            self.hot_paths.ran(time.perf_counter() - start)

    def _complete(self, space: Space, call: Call, failed: list[Failed], data: list[Fetched]) -> None:
        values, failures = space.values, space.failures
        if not self.hot_paths.complete(call, values):
            self._eagerly(space, call.repeat, failed, data)
        for tensor in call.freed:
            values.pop(tensor, None)
            if failures:
                failures.pop(tensor, None)

    def finish(self) -> None:
        """Wait for what runs in the background, if anything does."""
        while self._running:
            self._finish_first()

    def _finish_first(self) -> None:
        """Wait for the first; if it failed, for those after it as well, which were not begun."""
        start = time.perf_counter()
        assert self._background is not None
        ended = []
        while self._running and (not ended or ended[0][1].error is not None):
            ended.append(self._running.popleft())
            ended[-1][1].wait(self._background)
        self._waited += time.perf_counter() - start
        for space, call in ended:
            self._complete(space, call, [], [])

    def settle(self) -> None:
        """Carry out what is held: whoever sent it may have nothing more to say for a while."""
        self.finish()
        for space in self.spaces.values():
            if space.condenser is not None and space.condenser.held:
                self._carry_out(space, space.condenser.release(), [], [])

    def _carry_out(
        self,
        space: Space,
        instructions: Sequence[LocalInstruction],
        failed: list[Failed],
        data: list[Fetched],
    ) -> None:
        """One instruction after the other."""
        values, failures, engine = space.values, space.failures, self.engine
        value, run, functions = values.__getitem__, engine.run, engine.functions
        limit = self._limit_now()
        if limit is not None:
            run = limit.checked(run)
            functions = Checked(run)
        running = self._running
        instruction: Any
        for instruction in instructions:
            kind = type(instruction)
            if running and kind not in _WAITS_FOR_NOTHING:
                self.finish()
            if kind is Op:
                try:
                    inputs, attrs = map(value, instruction.inputs), instruction.attrs
                    if attrs is None:
                        values[instruction.result] = functions[instruction.op](*inputs)
                    else:
                        if not attrs.keys() <= attributes(instruction.op):
                            raise _unknown_attribute(instruction.op, attrs)
                        values[instruction.result] = run(instruction.op, [*inputs], attrs)
                except Exception as error:  # noqa: BLE001 - whatever the engine raises reaches the user, as data
                    failed.append(self._op_failed(space, instruction, error))
            elif kind is int:
                if running:  # which may need it
                    running[-1][1].freed.append(instruction)
                    continue
                values.pop(instruction, None)
                if failures:
                    failures.pop(instruction, None)
            elif kind is GetData:
                data.append(self._get(space, instruction))
            elif kind is Upload:
                try:
                    if limit is not None:
                        limit.check(instruction.array.nbytes)
                    values[instruction.result] = self.engine.put(instruction.array)
                except Exception as error:  # noqa: BLE001 - as above
                    array = instruction.array
                    what = f"taking in <{array.dtype} {list(array.shape)}, {array.nbytes} bytes>"
                    failed.append(self._failed(space, instruction.result, what, error))
            elif kind is Site:
                space.sites[instruction.number] = instruction.where
            elif kind is Repeat:
                self._replay(space, instruction, failed, data, limit is not None)
            elif kind is Exchange:
                self._exchange(space, instruction, failed)
            elif kind is ShardOp:
                self._shard(space, instruction, failed)
            elif kind is Lost:
                space.failures.update(dict.fromkeys(instruction.tensors, instruction.error))

    def _limit_now(self) -> Limit | None:
        """What every op is to be checked against, if that is needed."""
        return self._limit or (self.guard and self.guard.near())

    def _space(self, client: str) -> Space:
        space = self.spaces.get(client)
        if space is None:
            looks = self._hot and client not in self.condensed
            space = self.spaces[client] = Space(Condenser() if looks else None)
            if self._limit is not None:
                space.values = Values(self._limit, lambda value: self.engine.nbytes(value))
        return space

    def abort(self, client: str, instructions: Sequence[LocalInstruction], why: str) -> Outcome:
        """Settle instructions whose execution was broken off: what was not made has failed."""
        self.finish()
        space = self._space(client)
        if space.condenser is not None:
            held = space.condenser.release()
            instructions = [*held, *(one for one in instructions if one not in held)]
        failed: list[Failed] = []
        data: list[Fetched] = []
        for instruction in flat(instructions):
            if isinstance(instruction, int):
                space.values.pop(instruction, None)
                space.failures.pop(instruction, None)
            elif isinstance(instruction, Op | Upload) and instruction.result not in space.values:
                space.failures.setdefault(instruction.result, why)
                failed.append(Failed(instruction.result, why))
            elif isinstance(instruction, Exchange):
                if instruction.number not in self._exchanged and self.peers is not None:
                    poison(instruction, why, self.peers)
                if instruction.result not in space.values:
                    space.failures.setdefault(instruction.result, why)
            elif isinstance(instruction, GetData):
                data.append(Fetched(instruction.request, None, why, instruction.part))
        self._exchanged.clear()
        return Outcome(failed, data, 0.0)

    def _exchange(self, space: Space, order: Exchange, failed: list[Failed]) -> None:
        """Take part in an exchange, also if there is nothing to give: others wait."""
        self._exchanged.add(order.number)
        peers = self.peers
        try:
            if peers is None:
                raise RuntimeError("this worker knows no others")
            gives = peers.name in order.source.workers
            own, error = self._own(space, order) if gives else (None, None)
            result = exchange(order, own, error, peers)
            if result is not None:
                if self._limit is not None:
                    self._limit.check(result.nbytes)
                space.values[order.result] = self.engine.put(result)
        except WorkerError as cause:
            space.failures[order.result] = str(cause)
            failed.append(Failed(order.result, str(cause)))
        except Exception as error:  # noqa: BLE001 - as above
            failed.append(self._failed(space, order.result, order.kind, error))

    def _own(self, space: Space, order: Exchange) -> tuple[np.ndarray | None, str | None]:
        """What this worker has to give, or why it has nothing."""
        if order.tensor not in space.values:
            missing = f"Tensor not found: there is no tensor {order.tensor}"
            return None, space.failures.get(order.tensor, missing)
        try:
            array = self.engine.get(space.values[order.tensor])
            index = order.source.workers.index(self.name)
            wanted = order.source.local_shape(index, order.shape)
            if array.shape == wanted and array.dtype.name == order.dtype:
                return array, None
            return (
                None,
                f"{order.kind} on {self.name}: {array.dtype}{list(array.shape)} is not {list(wanted)}",
            )
        except Exception as error:  # noqa: BLE001 - as above; and the others must learn of it
            return None, self._message(order.kind, error)

    def _shard(self, space: Space, order: ShardOp, failed: list[Failed]) -> None:
        """Keep a part of what is here in whole."""
        index: list[Any] = [*[[0, 1 << 62, 1]] * order.axis, [order.start, order.stop, 1]]
        op = Op(order.result, "getitem", (order.tensor,), {"index": index}, -1)
        try:
            space.values[order.result] = self.engine.run("getitem", [space.values[order.tensor]], op.attrs)
        except Exception as error:  # noqa: BLE001 - as above
            failed.append(self._op_failed(space, op, error))

    def _get(self, space: Space, instruction: GetData) -> Fetched:
        try:
            array = self.engine.get(space.values[instruction.tensor])
            return Fetched(instruction.request, array, None, instruction.part)
        except Exception as error:  # noqa: BLE001 - as above
            cause = space.failures.get(instruction.tensor) or self._message("giving out data", error)
            return Fetched(instruction.request, None, cause, instruction.part)

    def _op_failed(self, space: Space, instruction: Op, error: Exception) -> Failed:
        """Put a failure in place of an op's result: an input's, if one had failed already."""
        for tensor in instruction.inputs:
            if tensor not in space.values:
                known = space.failures.get(tensor, f"Tensor not found: there is no tensor {tensor}")
                space.failures[instruction.result] = known
                return Failed(instruction.result, known)
        inputs = [space.values[tensor] for tensor in instruction.inputs]
        shapes = ", ".join(str(list(value.shape)) for value in inputs)
        where = space.sites.get(instruction.site, "an unknown line")
        return self._failed(
            space, instruction.result, f"{instruction.op}({shapes}), asked for at {where},", error
        )

    def _failed(self, space: Space, tensor: int, what: str, error: Exception) -> Failed:
        space.values.pop(tensor, None)
        message = space.failures[tensor] = self._message(what, error)
        return Failed(tensor, message)

    def _message(self, what: str, error: Exception) -> str:
        cause = explain(error) if is_out_of_memory(error) else f"{type(error).__name__}: {error}"
        return f"{what} failed on {self.name} ({self.engine_name}): {cause}"

    def specs(self, client: str) -> tuple[dict[int, tuple[tuple[int, ...], str]], dict[int, str]]:
        """The shape and dtype of each of a client's tensors, and what failed and why."""
        self.settle()
        space = self.spaces.get(client)
        if space is None:
            return {}, {}
        known = {number: (tuple(value.shape), dtype_name(value)) for number, value in space.values.items()}
        return known, dict(space.failures)

    def forget(self, client: str) -> None:
        """Drop everything of a client."""
        self.finish()
        self.condensed.discard(client)
        space = self.spaces.pop(client, None)
        if space is not None and self._limit is not None:
            for number in list(space.values):
                space.values.pop(number, None)

    def get_stats(self) -> dict[str, Any]:
        """What this worker has done and what it holds."""
        self.settle()
        spaces = list(self.spaces.values())
        stats: dict[str, Any] = {
            "engine": self.engine_name,
            "pid": os.getpid(),
            "total_instructions": self.total_instructions,
            "tensors": sum(len(space.values) + len(space.failures) for space in spaces),
            "clients": len(spaces),
        }
        if self.peers is not None:
            stats["peer_bytes_sent"] = self.peers.bytes_sent
        if self.loaded:
            nbytes = self.engine.nbytes
            stats["bytes"] = sum(nbytes(value) for space in spaces for value in space.values.values())
        if self._hot:
            stats |= self._hot_stats()
        if self.modifiers:
            stats["modifiers"] = streams.stats(self.modifiers)
        return stats

    def _hot_stats(self) -> dict[str, Any]:
        """What was found to be repeated, and what came of it."""
        found = [space.condenser.detector for space in self.spaces.values() if space.condenser is not None]
        known = {id for detector in found for id in detector.sequences} | self._repeated.keys()
        return {
            "hot_instructions": sum(self._repeated.values()),
            "unique_sequences": len(known),
            "hot_sequences": len(self._repeated),
            **(self.hot_paths.get_stats(self.total_instructions) if self.loaded else {}),
        }


def _marks(instructions: Sequence[Any]) -> Iterator[Mark]:
    """Where the repeats are that came as such."""
    for one in instructions:
        if type(one) is Repeat:
            yield WorkerHotPathStart(one.sequence.id)
            yield WorkerHotPathEnd(one.sequence.id, True)


def _unknown_attribute(op: str, attrs: dict[str, Any]) -> TypeError:
    known = ", ".join(sorted(attributes(op))) or "none"
    return TypeError(
        f"{op} has no attribute {', '.join(sorted(attrs.keys() - attributes(op)))}; it has {known}"
    )
