"""The worker: executes instructions, one after the other, on one engine."""

import functools
import itertools
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gt import config, logs
from gt.interrupts import interruptible
from gt.stream import modifiers as streams
from gt.stream.describe import debug, injected
from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instruction_table import OVERLAPPING, made_by
from gt.stream.instructions import LocalInstruction, Mark, Op
from gt.stream.repeat_builder import RepeatBuilder
from gt.stream.repeats import flat, weight
from gt.stream.tape_entries import Injected
from gt.stream.tensor_ids import Source, worker_ids
from gt.transport.protocol import Failed, Fetched
from gt.worker.client_state import ClientState
from gt.worker.compile.hotpaths import HotPaths
from gt.worker.compile.statistics import HotStatistics
from gt.worker.engine.base import Engine, attributes, load_engine
from gt.worker.executors import EXECUTORS, Execution
from gt.worker.limits.guard import Guard
from gt.worker.limits.memory import Checked, Limit, Values, dtype_name, explain, is_out_of_memory
from gt.worker.repeat_runner import RepeatRunner

if TYPE_CHECKING:
    from gt.transport.peers import Peers


_next_number = itertools.count().__next__

DONATION_SECONDS = 20e-6
"""If instructions take longer than this on average, some have large results: see `Engine.in_place`."""


class Outcome(NamedTuple):
    """The outcome of a batch of instructions."""

    failed: list[Failed]
    data: list[Fetched]
    seconds: float
    """How long it took, without loading an engine or waiting for other clients' background calls."""
    marks: Sequence[tuple[int, Mark]] = ()
    """The hot paths that were detected in it: each marker with the index of the instruction it precedes."""
    injected: Sequence[Injected] = ()
    """The instructions that modifiers added."""


class Worker:
    """Executes the instructions of many clients on one engine.

    A failing instruction never stops the worker: its result becomes a failure, which propagates to everything
    computed from it and is reported when a client reads it.
    """

    def __init__(
        self,
        name: str = "worker_0",
        engine: str = "pytorch",
        backend: str | None = None,
        modifiers: Sequence[streams.ModifierLike] | streams.Installed = (),
        memory_limit: int = 0,
        embedded: bool = False,
    ) -> None:
        self.name = name
        self.memory_limit = memory_limit
        """How many bytes tensors may take; 0 for no limit other than the machine's."""
        self.limit = Limit(memory_limit) if memory_limit else None
        self.guard: Guard | None = None
        """Keeps the worker within its share of the machine's memory, if it has a process of its own."""
        self.engine_name = backend or engine
        self.modifiers = streams.Installed(modifiers)
        """Creates the modifiers of each client: see ClientState."""
        self.ids: Source = worker_ids(_next_number())
        """Ids for tensors that its modifiers make. In a process of its own, the server assigns the range."""
        self.clients: dict[str, ClientState] = {}
        self.sends_repeats: dict[str, HotPathDetector] = {}
        """By client: the detector that processes its stream before this worker, if there is one."""
        self.total_instructions = 0
        self.compiles = self.engine_name == "pytorch" and config.auto_compile()
        """Whether repeated sequences are compiled."""
        self.watches = True
        """Whether repeats are counted if nothing is compiled. Benchmarks set it to False."""
        self.repeats = RepeatRunner(self, embedded)
        self._statistics = HotStatistics()
        self.peers: Peers | None = None
        """The connections to other workers, if there are any."""
        self._donates = False
        """Whether results are computed in the memory of inputs that are freed directly afterwards. To find
        these inputs takes time for each op, so it depends on how long ops take in the batch before."""
        self.exchanged: set[int] = set()
        """The numbers of the exchanges in the current batch that this worker has taken part in."""

    @functools.cached_property
    def engine(self) -> Engine:
        """The engine, loaded on first use: importing torch takes a second that not every program needs."""
        logs.debug("worker", f"{self.name}: loading the {self.engine_name} engine")
        return load_engine(self.engine_name)

    @property
    def hot_paths(self) -> HotPaths:
        """The compiled code of repeated sequences."""
        return self.repeats.hot_paths

    @property
    def loaded(self) -> bool:
        """Whether the engine has been loaded."""
        return "engine" in self.__dict__

    def execute(self, client: str, instructions: Sequence[LocalInstruction]) -> Outcome:
        """Execute a batch of a client's instructions."""
        state = self._client_state(client)
        debug("worker", instructions, prefix=f"{self.name}: {client}: ")
        failed: list[Failed] = []
        data: list[Fetched] = []
        if not self.loaded:
            try:
                _ = self.engine
            except Exception as error:  # noqa: BLE001 - an engine that is not installed fails every op
                return self.abort(client, instructions, self.message("loading the engine", error))
        # Measured from here: the time to load an engine is not charged to this client's instructions.
        start = time.perf_counter()
        added: Sequence[Injected] = ()
        origins: Sequence[int] = ()
        if state.modifiers:
            state.client_marks |= weight(instructions) > len(instructions)
            received = flat(instructions)
            origins, instructions = state.modifiers.process_with_origins(received)
            added = injected(received, instructions, f"{client}_")
        count = weight(instructions)
        self.total_instructions += count
        if count > len(instructions) and client not in self.sends_repeats:
            self._statistics.count(instructions)
        marks: list[tuple[int, Mark]] = []
        if state.repeat_builder is not None:
            received = instructions
            instructions = state.repeat_builder.build(instructions)
            if state.repeat_builder.marks and not state.client_marks:
                marks = _placed(state.repeat_builder.marks, received, origins)
        elif state.watcher is not None:
            state.watcher.feed(instructions)
        repeats = self.repeats
        repeats.reset_times()
        if repeats.running and repeats.running[-1][0] is not state:
            repeats.finish()
        self.execute_each(state, instructions, failed, data)
        self.exchanged.clear()
        # A background call is charged to the client that started it, not to one that has to wait for it.
        seconds = time.perf_counter() - start - repeats.waited + repeats.expected
        self._donates = seconds > count * DONATION_SECONDS
        logs.debug("worker", f"{self.name}: {client}: {count} instructions in {seconds * 1000:.3f} ms")
        return Outcome(failed, data, seconds, marks, added)

    def execute_held(self) -> None:
        """Execute the instructions that repeat builders hold. Called when no more have arrived for a
        while."""
        self.finish()
        for state in self.clients.values():
            if state.repeat_builder is not None and state.repeat_builder.held:
                self.execute_each(state, state.repeat_builder.release(), [], [])

    def finish(self) -> None:
        """Wait for the background calls."""
        self.repeats.finish()

    @interruptible
    def execute_each(
        self,
        state: ClientState,
        instructions: Sequence[LocalInstruction],
        failed: list[Failed],
        data: list[Fetched],
    ) -> None:
        """Execute instructions one after the other."""
        values, failures, engine = state.values, state.failures, self.engine
        value, run, functions = values.__getitem__, engine.run, engine.functions
        limit = self.limit_now()
        if limit is not None:
            run = limit.checked(run)
            functions = Checked(run)
        repeats = self.repeats
        running = repeats.running
        execution = Execution(self, state, failed, data, limit)
        donates = self._donates and limit is None
        following = itertools.chain(instructions[1:], (None,)) if donates else itertools.repeat(None)
        instruction: Any
        for instruction, after in zip(instructions, following, strict=False):
            kind = type(instruction)
            if running and kind not in OVERLAPPING:
                repeats.finish()
            if kind is Op:
                try:
                    inputs, attrs = map(value, instruction.inputs), instruction.attrs
                    if type(after) is int and after in instruction.inputs[:1]:
                        made = self._in_donated_memory(instruction, [*inputs])
                        if made is not None:
                            values[instruction.result] = made
                            continue
                        inputs = map(value, instruction.inputs)
                    if attrs is None:
                        values[instruction.result] = functions[instruction.op](*inputs)
                    else:
                        if not attrs.keys() <= attributes(instruction.op):
                            raise _unknown_attribute(instruction.op, attrs)
                        values[instruction.result] = run(instruction.op, [*inputs], attrs)
                except Exception as error:  # noqa: BLE001 - any error of an engine is sent to the client, as a value
                    failed.append(self.op_failed(state, instruction, error))
            elif kind is int:
                if running:
                    repeats.free_after(instruction)
                    continue
                values.pop(instruction, None)
                if failures:
                    failures.pop(instruction, None)
            else:
                EXECUTORS[kind].execute(execution, instruction)

    def _in_donated_memory(self, instruction: Op, inputs: list[Any]) -> Any:
        """The result of an op in the memory of its first input; None if that is impossible."""
        attrs = instruction.attrs
        in_place = self.engine.in_place(instruction.op, attrs)
        if in_place is None or (attrs and not attrs.keys() <= attributes(instruction.op)):
            return None
        return in_place(inputs, 1)  # it is among the client's values, too

    def limit_now(self) -> Limit | None:
        """The limit that each op must be checked against now; None if there is none."""
        return self.limit or (self.guard and self.guard.near())

    def _client_state(self, client: str) -> ClientState:
        state = self.clients.get(client)
        if state is None:
            detects = client not in self.sends_repeats
            repeat_builder = RepeatBuilder() if detects and self.compiles else None
            watches = detects and not self.compiles and self.watches
            modifiers = self.modifiers.for_client("worker", self.ids)
            state = ClientState(modifiers, repeat_builder, HotPathDetector() if watches else None)
            self.clients[client] = state
            if self.limit is not None:
                state.values = Values(self.limit, lambda value: self.engine.nbytes(value))
        return state

    def abort(self, client: str, instructions: Sequence[LocalInstruction], why: str) -> Outcome:
        """Abort a batch: tensors that were not made become failures, and reads are answered with `why`."""
        self.finish()
        state = self._client_state(client)
        if state.repeat_builder is not None:
            held = state.repeat_builder.release()
            instructions = [*held, *(one for one in instructions if one not in held)]
        aborted = Execution(self, state, [], [])
        for instruction in flat(instructions):
            if type(instruction) is int:
                state.values.pop(instruction, None)
                state.failures.pop(instruction, None)
                continue
            for made in made_by(instruction):
                if made not in state.values:
                    state.failures.setdefault(made, why)
                    aborted.failed.append(Failed(made, why))
            executor = EXECUTORS.get(type(instruction))
            if executor is not None:
                executor.abort(aborted, instruction, why)
        self.exchanged.clear()
        return Outcome(aborted.failed, aborted.data, 0.0)

    def op_failed(self, state: ClientState, instruction: Op, error: Exception) -> Failed:
        """Store a failure for an op's result: that of an input if one has failed, else `error`."""
        for tensor in instruction.inputs:
            if tensor not in state.values:
                known = state.failures.get(tensor, f"Tensor not found: there is no tensor {tensor}")
                state.failures[instruction.result] = known
                return Failed(instruction.result, known)
        inputs = [state.values[tensor] for tensor in instruction.inputs]
        shapes = ", ".join(str(list(getattr(value, "shape", ["several"]))) for value in inputs)
        site = state.sites.get(instruction.site)
        where = "an unknown line" if site is None else site.text
        return self.fail(state, instruction.result, f"{instruction.op}({shapes}), issued at {where},", error)

    def fail(self, state: ClientState, tensor: int, what: str, error: Exception) -> Failed:
        """Store a failure in place of a tensor."""
        state.values.pop(tensor, None)
        message = state.failures[tensor] = self.message(what, error)
        return Failed(tensor, message)

    def message(self, what: str, error: Exception) -> str:
        """The text of an error, with the failed operation and the worker."""
        cause = explain(error) if is_out_of_memory(error) else f"{type(error).__name__}: {error}"
        return f"{what} failed on {self.name} ({self.engine_name}): {cause}"

    def specs(self, client: str) -> tuple[dict[int, tuple[tuple[int, ...], str]], dict[int, str]]:
        """The shape and dtype of each of a client's tensors, and the causes of its failures, by id."""
        self.execute_held()
        state = self.clients.get(client)
        if state is None:
            return {}, {}
        known = {number: _spec(value) for number, value in state.values.items()}
        return known, dict(state.failures)

    def forget(self, client: str) -> None:
        """Free all tensors of a client."""
        self.finish()
        state = self.clients.pop(client, None)
        detector = self.sends_repeats.pop(client, None) or (state and state.detector)
        if detector is not None:
            self._statistics.keep(detector)
        if state is not None and self.limit is not None:
            for number in list(state.values):
                state.values.pop(number, None)
        if not self.clients:
            self.repeats.end_compiler()

    def get_stats(self, client: str = "") -> dict[str, Any]:
        """Statistics of this worker; for modifiers, those of this client's instances."""
        self.execute_held()
        clients = list(self.clients.values())
        stats: dict[str, Any] = {
            "engine": self.engine_name,
            "pid": os.getpid(),
            "total_instructions": self.total_instructions,
            "tensors": sum(len(state.values) + len(state.failures) for state in clients),
            "clients": len(clients),
        }
        if self.peers is not None:
            stats["peer_bytes_sent"] = self.peers.bytes_sent
        if self.loaded:
            nbytes = self.engine.nbytes
            stats["bytes"] = sum(nbytes(value) for state in clients for value in state.values.values())
        detectors = [*self.sends_repeats.values(), *(state.detector for state in clients)]
        stats |= self._statistics.get_stats(one for one in detectors if one is not None)
        if self.compiles and self.loaded:
            stats |= self.hot_paths.get_stats(self.total_instructions)
        if self.modifiers and client in self.clients:
            stats["modifiers"] = self.clients[client].modifiers.get_stats()
        return stats


def _spec(value: Any) -> tuple[tuple[int, ...], str]:
    """A value's shape and dtype; both are empty if it is several tensors."""
    return ((), "") if isinstance(value, tuple) else (tuple(value.shape), dtype_name(value))


def _placed(
    marks: Sequence[tuple[int, Mark]], instructions: Sequence[Any], origins: Sequence[int]
) -> list[tuple[int, Mark]]:
    """Markers, with indices into the instructions that were sent to the worker (with repeats expanded).

    `origins` has, for each executed instruction, the index of the one that modifiers made it from.
    """
    if origins:
        return [(origins[place] if place < len(origins) else origins[-1] + 1, mark) for place, mark in marks]
    before = [0, *itertools.accumulate([weight((one,)) for one in instructions])]
    return [(before[place], mark) for place, mark in marks]


def _unknown_attribute(op: str, attrs: dict[str, Any]) -> TypeError:
    known = ", ".join(sorted(attributes(op))) or "none"
    return TypeError(
        f"{op} has no attribute {', '.join(sorted(attrs.keys() - attributes(op)))}; it has {known}"
    )
