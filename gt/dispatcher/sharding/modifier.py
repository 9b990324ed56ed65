"""The sharding modifier: rewrites a client's stream for several workers.

Every instruction that it yields names its workers (`Placed`). Where a tensor does not have the layout that an
op needs, an explicit instruction changes it first: ShardOp, AllGather, ReduceScatter, AllReduce, AllToAll,
Move or Reduce. Like every stream modifier it buffers no instruction, and it sees no data except uploads.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from gt import logs
from gt.dispatcher.sharding.aten_lowering import lower_several
from gt.dispatcher.sharding.lowering import lower
from gt.dispatcher.sharding.placement_log import Creation, Rule
from gt.dispatcher.sharding.plan_cache import PlanCache
from gt.dispatcher.sharding.planning import Plan, infer, nbytes, plan, specs_of
from gt.dispatcher.sharding.policy import SHARD_THRESHOLD, Cluster, Policy, ShardingPolicy
from gt.dispatcher.sharding.relayout import placement_to_read, reads, relayout, shards_of
from gt.dispatcher.sharding.tensor_placements import Stream, TensorPlacements
from gt.dispatcher.sharding.uploads import upload_parts, zeros
from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import TABLE as OPS
from gt.ops import Spec
from gt.ops.aten import is_several, results_of
from gt.ops.sharding.split import Shard, Split
from gt.stream.instruction_table import INSTRUCTION_TABLE
from gt.stream.instructions import (
    CreateTensor,
    GetData,
    LocalInstruction,
    Lost,
    Op,
    Placed,
    Signal,
    Site,
    Upload,
)
from gt.stream.layouts import Partial, Placement, Replicated, Sharded, bytes_moved
from gt.stream.tensor_ids import dispatcher_id
from gt.transport.protocol import Fetched

MAX_RECOMPUTED_BYTES = 1 << 16
"""Up to this size, the result of an op without inputs is computed again on another worker instead of sent."""


class ShardingStreamModifier(TensorPlacements):
    """Places one client's instructions on several workers."""

    def __init__(
        self,
        enable_sharding: bool = False,
        shard_threshold: int = SHARD_THRESHOLD,
        policy: Policy | None = None,
        workers: tuple[str, ...] = (),
        memory: Mapping[str, int] | None = None,
        capacity: Mapping[str, int] | None = None,
        loads: Counter[str] | None = None,
        home: str = "",
    ) -> None:
        super().__init__(workers, loads if loads is not None else Counter(), home)
        self.enabled = enable_sharding
        self.policy: Policy = policy or ShardingPolicy(shard_threshold)
        self.memory: Mapping[str, int] = memory if memory is not None else {}
        self.capacity: Mapping[str, int] = capacity if capacity is not None else self.memory
        self.epoch = 0
        """The number of changes of the workers so far."""
        self.signals: dict[int, Signal] = {}
        """Signals for tensors that the next instructions make."""
        self.plans = PlanCache()

    # --- the interface of a stream modifier ---

    def process(self, cmd: Any) -> Stream:
        """Yield the instructions that replace this one, each for certain workers.

        An instruction without a handler goes to all workers. Raises ValueError if it reads or makes tensors.
        """
        if not self.enabled or not self.workers:
            yield cmd
            return
        handler = _HANDLERS.get(type(cmd))
        if handler is not None:
            yield from handler(self, cmd)
            return
        row = INSTRUCTION_TABLE[type(cmd)]
        if row.reads(cmd) or row.makes(cmd):
            raise ValueError(f"{type(cmd).__name__} cannot be used with several workers")
        yield Placed(self.workers, (cmd,) * len(self.workers))

    def get_stats(self) -> dict[str, Any]:
        """Statistics: see ShardingStats; and the number of tensors."""
        return self.stats.as_dict() | {"tensors": len(self.tensor_sharded)}

    # --- ops ---

    def _op(self, cmd: Op) -> Stream:
        self.stats.ops += 1
        signal = self._signal(cmd.result)
        for tensor in cmd.inputs:
            if tensor in self.lost:
                self.lost[cmd.result] = self.lost[tensor]
                return
        if not cmd.inputs:
            yield from self._create(cmd, signal)
            return
        handles = [self.tensor_sharded[tensor] for tensor in cmd.inputs]
        own = _OWN.get(cmd.op)
        if own is not None:
            yield from own(self, cmd, handles[0], signal)
            return
        lowered = lower(cmd, handles)
        if lowered is not None:
            if signal is not None:
                self.signals[cmd.result] = signal
            for one in lowered:
                yield from self.process(one)
            return
        several = lower_several(cmd, handles)
        if several is not None:
            for one in several.ops:
                yield from self.process(one)
            self.tensor_sharded[cmd.result] = TensorHandle.of_tensors(cmd.result, several.results)
            return
        chosen = self._planned(cmd, handles, signal)
        if chosen.gathers:
            self._log_gather(cmd.op)
        inputs = []
        for handle, wanted in zip(handles, chosen.wanted, strict=True):
            inputs.append((yield from self._in_placement(handle, wanted)))
        yield from self._run(cmd, chosen, inputs)
        if cmd.op not in OPS and is_several(cmd.op, cmd.attrs or {}):
            made = tuple(zip(chosen.specs, chosen.results, strict=True))
            self.tensor_sharded[cmd.result] = TensorHandle.of_results(cmd.result, chosen.workers, made)
            return
        yield from self._made(cmd.result, chosen.specs[0], chosen.results[0], signal)

    def _made(self, result: int, spec: Spec, placement: Placement, signal: Signal | None) -> Stream:
        """Track an op's result, and give it the layout of a signal."""
        handle = self._track(result, spec, placement)
        if signal is not None:
            yield from self._change_home(result, handle, self._resolve(signal, spec))

    def _item(self, cmd: Op, handle: TensorHandle, signal: Signal | None) -> Stream:
        """Take one of several results, on the workers that have them."""
        attrs = cmd.attrs or {}
        index: Any = attrs.get("index")
        if handle.derived:
            if signal is not None:
                self.signals[cmd.result] = signal
            tensor = handle.derived[str(index)]
            shape = self.tensor_sharded[tensor].spec.shape if tensor in self.tensor_sharded else ()
            yield from self.process(Op(cmd.result, "reshape", (tensor,), {"shape": list(shape)}, cmd.site))
            return
        if handle.results:
            spec, placement = handle.results[index]
        elif handle.results is not None:  # the client knows the spec from the worker
            (spec,) = results_of(cmd.op, (), attrs)
            placement = Placement(Replicated(), handle.placement.workers)
        else:
            raise ValueError("item: the input is a single tensor")
        workers = handle.placement.workers
        yield Placed(workers, (cmd,) * len(workers))
        yield from self._made(cmd.result, spec, placement, signal)

    def _specs(self, cmd: Op, handle: TensorHandle, signal: Signal | None) -> Stream:
        """Read the specs of a value's tensors, on a worker that has all of it."""
        worker, number = handle.placement.workers[0], cmd.inputs[0]
        if handle.results is None:
            number = yield from self._in_placement(handle, Placement(Replicated(), (worker,)))
        yield Placed((worker,), (Op(cmd.result, cmd.op, (number,), None, cmd.site),))
        self.tensor_sharded[cmd.result] = TensorHandle.of_results(cmd.result, (worker,))

    def _planned(self, cmd: Op, handles: list[TensorHandle], signal: Signal | None) -> Plan:
        if signal is None:
            return self.plans.find(cmd, handles, self._sizes, self.home)
        attrs = cmd.attrs or {}
        outs = infer(cmd.op, specs_of(cmd.op, handles), attrs)
        if len(outs) != 1:
            return plan(cmd.op, attrs, handles, self._sizes, self.home)
        return plan(cmd.op, attrs, handles, self._sizes, self.home, self._resolve(signal, outs[0]))

    def _sizes(self, length: int, workers: tuple[str, ...]) -> tuple[int, ...]:
        return self.policy.sizes(length, workers, self.memory)

    def _run(self, cmd: Op, chosen: Plan, inputs: list[int]) -> Stream:
        """Yield the op itself, for every worker that takes part."""
        split, workers = chosen.split, chosen.workers
        if len(workers) > 1 and split is not None:
            self.stats.sharded_ops += 1
        if split is None or split.steps is None or not chosen.shards:
            yield Placed(
                workers, (Op(cmd.result, cmd.op, tuple(inputs), cmd.attrs, cmd.site),) * len(workers)
            )
            return
        yield from self._in_steps(cmd, split, workers, chosen.shards, inputs, cmd.result)

    def _in_steps(
        self,
        cmd: Op,
        split: Split,
        workers: tuple[str, ...],
        shards: tuple[Shard, ...],
        inputs: list[int],
        result: int,
    ) -> Stream:
        assert split.steps is not None
        between = dispatcher_id()
        for worker, shard in zip(workers, shards, strict=True):
            steps = split.steps(cmd.op, cmd.attrs or {}, shard)
            given = tuple(inputs)
            for number, (op, attrs) in enumerate(steps):
                last = number == len(steps) - 1
                made = result if last else between
                given = () if op == "full" else given
                one = Op(made, op, given, attrs or None, cmd.site)
                if self._placement_log is not None:
                    self._placement_log.add_rule(one, Rule(cmd, split.steps, shard, number))
                yield Placed((worker,), (one,))
                given = (made,)
            if len(steps) > 1:
                yield Placed((worker,), (between,))

    def _log_gather(self, op: str) -> None:
        if not self.stats.gathered[op]:
            logs.verbose(f"{op} gathers its inputs: it has no sharding rule for their layouts")
        self.stats.gathered[op] += 1

    # --- creation and uploads ---

    def _create(self, cmd: Op, signal: Signal | None) -> Stream:
        """Create a tensor, or several, without inputs."""
        outs = infer(cmd.op, (), cmd.attrs or {})
        if cmd.op not in OPS:
            # On one worker: it is small, or has random numbers that would differ between workers.
            placement = Placement(Replicated(), (self.home or self.workers[0],))
            yield Placed(placement.workers, (cmd,))
            if not is_several(cmd.op, cmd.attrs or {}):
                yield from self._made(cmd.result, outs[0], placement, signal)
            else:
                made = tuple([(spec, placement) for spec in outs])
                self.tensor_sharded[cmd.result] = TensorHandle.of_results(cmd.result, placement.workers, made)
            return
        (spec,) = outs
        placement = self._resolve(signal, spec) if signal else self._place(spec)
        yield from self._make(cmd, spec, placement, cmd.result)
        handle = self._track(cmd.result, spec, placement)
        if cmd.op == "full" or (placement.whole and nbytes(spec) <= MAX_RECOMPUTED_BYTES):
            handle.origin = cmd

    def _make(self, cmd: Op, spec: Spec, placement: Placement, result: int) -> Stream:
        """Create a tensor without inputs: each worker makes its own part, since an element depends on its
        index only."""
        layout, workers = placement.layout, placement.workers
        if isinstance(layout, Sharded):
            rule = OPS[cmd.op].sharding
            assert rule is not None
            split = next(one for one in rule((), cmd.attrs or {}, spec) if one.output == layout.axis)
            yield from self._in_steps(cmd, split, workers, shards_of(layout.sizes), [], result)
            return
        made = Op(result, cmd.op, (), cmd.attrs, cmd.site)
        if isinstance(layout, Partial):
            yield Placed(workers, (made, *[zeros(result, spec)] * (len(workers) - 1)))
        else:
            yield Placed(workers, (made,) * len(workers))

    def _upload(self, cmd: CreateTensor | Upload) -> Stream:
        array = cmd.array
        if isinstance(cmd, CreateTensor) and not cmd.array.is_valid:
            raise ValueError(f"an array of shape {list(array.shape[:8])} and dtype {array.dtype!r}")
        dtype = array.dtype.name if isinstance(array, np.ndarray) else array.dtype
        spec = Spec(tuple(array.shape), dtype)
        signal = self._signal(cmd.result)
        placement = self._resolve(signal, spec) if signal else self._place(spec)
        yield upload_parts(cmd, spec, placement)
        self._track(cmd.result, spec, placement)

    def _place(self, spec: Spec) -> Placement:
        cluster = Cluster(self.workers, self.memory, self.loads, self.home, self.capacity)
        placement = self.policy.place(spec, cluster)
        if self._placement_log is not None:
            self._placement_log.creations.append(Creation(spec, placement, Counter(self.loads), self.home))
        if placement.whole and len(placement.workers) == 1:
            self.home = placement.workers[0]
        return placement

    def _lose(self, cmd: Lost) -> Stream:
        self.lost.update(dict.fromkeys(cmd.tensors, cmd.error))
        return iter(())

    def _unchanged(self, cmd: LocalInstruction) -> Stream:
        yield cmd

    # --- signals ---

    def _keep_signal(self, cmd: Signal) -> Stream:
        self.signals[cmd.tensor] = cmd
        return iter(())

    def _signal(self, tensor: int) -> Signal | None:
        return self.signals.pop(tensor, None) if self.signals else None

    def _resolve(self, signal: Signal, spec: Spec) -> Placement:
        """The placement that a signal requires. Raises ValueError if it names a worker that does not
        exist."""
        count = len(self.workers)
        for number in signal.workers:
            if not 0 <= number < count:
                raise ValueError(
                    f"the signal {signal.name!r} names worker {number}, but the workers are 0 to {count - 1}"
                )
        workers = tuple(self.workers[number] for number in signal.workers) or self.workers
        layout, rank = signal.layout, len(spec.shape)
        if isinstance(layout, Sharded) and -rank <= layout.axis < rank and len(workers) > 1:
            axis = layout.axis % rank
            if spec.shape[axis] > 1:
                return Placement(Sharded(axis, self._sizes(spec.shape[axis], workers)), workers)
        return Placement(Replicated(), workers)

    def _change_home(self, tensor: int, handle: TensorHandle, wanted: Placement) -> Stream:
        """Change a tensor's own placement."""
        if handle.placement == wanted:
            return
        before = handle.versions[handle.placement]
        number = yield from self._in_placement(handle, wanted)
        if number == before:  # it has that layout already, on more workers
            return
        self._unload(handle)
        del handle.versions[handle.placement]
        yield Placed(handle.placement.workers, (before,) * len(handle.placement.workers))
        handle.placement, handle.key = wanted, -1

    # --- other layouts ---

    def _in_placement(self, handle: TensorHandle, wanted: Placement) -> Generator[Any, None, int]:
        """Yield the instructions that copy a tensor to this placement; returns the id of the copy."""
        number = handle.find(wanted)
        if number is not None:
            return number
        shape, dtype = tuple(handle.spec.shape), handle.spec.dtype
        number = dispatcher_id()
        if isinstance(wanted.layout, Partial):
            yield from self._as_terms(handle, wanted, number)
        elif handle.origin is not None:
            yield from self._make(handle.origin, handle.spec, wanted, number)
            self.stats.commands["Create"] += 1
        else:
            have = min(handle.versions, key=lambda one: bytes_moved(shape, dtype, one, wanted))
            self.stats.bytes_moved += bytes_moved(shape, dtype, have, wanted)
            command, placed = relayout(handle.versions[have], number, handle.spec, have, wanted, self.epoch)
            self.stats.commands[command] += 1
            yield placed
        handle.add(wanted, number)
        return number

    def _as_terms(self, handle: TensorHandle, wanted: Placement, number: int) -> Stream:
        """Make a partial tensor: the first worker's term is all of it, and the others' are zeros."""
        first, *others = wanted.workers
        own = yield from self._in_placement(handle, Placement(Replicated(), (first,)))
        same = Op(number, "reshape", (own,), {"shape": list(handle.spec.shape)}, 0)
        yield Placed(wanted.workers, (same, *[zeros(number, handle.spec)] * len(others)))

    # --- reading and freeing ---

    def _read(self, cmd: GetData) -> Stream:
        if cmd.tensor in self.lost:
            yield Fetched(cmd.request, None, self.lost[cmd.tensor])
            return
        handle = self.tensor_sharded[cmd.tensor]
        shape = tuple(handle.spec.shape)
        for have, number in handle.versions.items():
            if have.whole:
                yield Placed(have.workers[:1], (GetData(cmd.request, number),))
                return
        parts = next((have for have in handle.versions if isinstance(have.layout, Sharded)), None)
        if parts is None:
            parts = placement_to_read(handle)
            yield from self._in_placement(handle, parts)
        yield reads(cmd.request, handle.versions[parts], shape, parts)

    def _free(self, tensor: int) -> Stream:
        if self.lost.pop(tensor, None) is not None:
            return
        handle = self.tensor_sharded.pop(tensor)
        for placement, number in handle.versions.items():
            yield Placed(placement.workers, (number,) * len(placement.workers))
        self._unload(handle)
        for fact in handle.derived.values():
            if fact in self.tensor_sharded or fact in self.lost:
                yield from self._free(fact)


_OWN: dict[str, Callable[[ShardingStreamModifier, Op, TensorHandle, Signal | None], Stream]] = {
    "item": ShardingStreamModifier._item,
    "specs": ShardingStreamModifier._specs,
}
"""The ops whose input may be several tensors."""

_HANDLERS: dict[type, Callable[[ShardingStreamModifier, Any], Stream]] = {
    Op: ShardingStreamModifier._op,
    int: ShardingStreamModifier._free,
    GetData: ShardingStreamModifier._read,
    CreateTensor: ShardingStreamModifier._upload,
    Upload: ShardingStreamModifier._upload,
    Signal: ShardingStreamModifier._keep_signal,
    Lost: ShardingStreamModifier._lose,
    Site: ShardingStreamModifier._unchanged,
}
"""The types of instructions that are not simply sent to all workers. Sites are sent by the session."""
