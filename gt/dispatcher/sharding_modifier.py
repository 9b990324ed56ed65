"""The sharding modifier: a client's stream in, a stream for many workers out.

Every instruction that comes out says which workers it is for. Where a tensor does not lie as an op needs it,
an explicit instruction goes before: ShardOp, AllGather, ReduceScatter, AllReduce, AllToAll, Move or Reduce.
Like every stream modifier it is pure: it holds no instruction back, and never sees data other than uploads.
"""

import contextlib
import itertools
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gt import config
from gt.dispatcher.lowering import lower
from gt.dispatcher.notes import Creation, Notes, Rule
from gt.dispatcher.planning import Plan, kind_of, nbytes, plan
from gt.dispatcher.policy import SHARD_THRESHOLD, Cluster, Policy, ShardingPolicy
from gt.dispatcher.tally import Tally
from gt.dispatcher.tensor_handle import TensorHandle
from gt.dispatcher.uploads import upload_parts, zeros
from gt.ops import TABLE, Spec
from gt.ops.split import Shard, Split
from gt.transport.describe import Laid, LaidAgain
from gt.transport.layouts import Partial, Placement, Replicated, Sharded, bytes_moved, even
from gt.transport.modifiers import fresh_id
from gt.transport.protocol import (
    Boundary,
    CreateTensor,
    Exchange,
    Fetched,
    GetData,
    Lost,
    Op,
    Part,
    Placed,
    ReduceOp,
    ShardOp,
    Signal,
    Upload,
)

Stream = Iterator[Any]
READ_IN_PARTS = 1 << 16
"""From how many bytes on terms are added up in parts before they are read."""

MOST_LAID = 10_000
"""Of how many tensors the layouts are kept for the tape, while nobody asks."""
MADE_AGAIN = 1 << 16
"""Up to so many bytes it is cheaper to make random numbers again than to send them."""

next_exchange = itertools.count().__next__
"""A number for an exchange: no two have the same."""


class ShardingStreamModifier:
    """Spreads one client's stream over workers."""

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
        self.enabled = enable_sharding
        self.policy: Policy = policy or ShardingPolicy(shard_threshold)
        self.workers = workers
        self.memory: Mapping[str, int] = memory if memory is not None else {}
        self.capacity: Mapping[str, int] = capacity if capacity is not None else self.memory
        self.loads: Counter[str] = loads if loads is not None else Counter()
        """How many bytes of unsplit tensors each worker has; of all clients."""
        self.home = home
        self.epoch = 0
        """Which workers are there: a change of them is a new epoch."""
        self.tensor_sharded: dict[int, TensorHandle] = {}
        """How each tensor lies."""
        self.lost: dict[int, str] = {}
        """Tensors that are gone, and why."""
        self._laid: deque[tuple[int, TensorHandle] | LaidAgain] = deque(maxlen=MOST_LAID)
        self.signals: dict[int, Signal] = {}
        """How tensors shall lie that are not there yet."""
        self._plans: dict[Any, Plan] = {}
        self._keys: dict[Any, int] = {}
        self.tally = Tally()
        self._notes: Notes | None = None
        """What is written down of how instructions are placed, while somebody wants that."""

    # --- the interface of a stream modifier ---

    def process(self, cmd: Any) -> Stream:
        """What takes an instruction's place: instructions for certain workers, and others as they are."""
        if not self.enabled or not self.workers:
            yield cmd
            return
        kind = type(cmd)
        if kind is Op:
            yield from self._op(cmd)
        elif kind is int:
            yield from self._free(cmd)
        elif kind is GetData:
            yield from self._read(cmd)
        elif kind is CreateTensor or kind is Upload:
            yield from self._upload(cmd)
        elif kind is Signal:
            self.signals[cmd.tensor] = cmd
        elif kind is Lost:
            self.lost.update(dict.fromkeys(cmd.tensors, cmd.error))
        elif kind is Boundary:
            yield Placed(self.workers, (cmd,) * len(self.workers))
        else:
            yield cmd

    def get_stats(self) -> dict[str, Any]:
        """What it has done: see Tally; and how many tensors there are."""
        return self.tally.in_words() | {"tensors": len(self.tensor_sharded)}

    # --- workers come and go ---

    def add_worker(self, name: str) -> None:
        """There is another worker: tensors made from now on are spread over it too."""
        self.workers = (*self.workers, name)

    def remove_worker(self, name: str, why: str) -> Stream:
        """A worker is gone: what it alone had is lost. Others may drop what they had of that."""
        self.workers = tuple(worker for worker in self.workers if worker != name)
        self.home = "" if self.home == name else self.home
        for tensor, handle in list(self.tensor_sharded.items()):
            if not any(name in placement.workers for placement in handle.versions):
                continue
            kept: dict[Placement, int] = {}
            for placement, number in handle.versions.items():
                rest = tuple(worker for worker in placement.workers if worker != name)
                if len(rest) == len(placement.workers):
                    kept[placement] = number
                elif placement.whole and rest:
                    kept[Placement(Replicated(), rest)] = number
                elif rest:
                    yield Placed(rest, (number,) * len(rest))
            if kept:
                handle.versions, handle.key = kept, -1
                handle.home = next(iter(kept))
            else:
                del self.tensor_sharded[tensor]
                self.lost[tensor] = why

    def laid(self) -> list[Laid | LaidAgain]:
        """How the tensors lie that were made since the last time, for the tape."""
        found = [one if isinstance(one, LaidAgain) else Laid(one[0], *_lies(one[1])) for one in self._laid]
        self._laid.clear()
        return found

    def lay_again(self, laid: LaidAgain) -> None:
        """Tensors lie, from now on, as others did before."""
        self._laid.append(laid)

    @contextlib.contextmanager
    def noting(self) -> Iterator[Notes]:
        """Write down how instructions are placed meanwhile."""
        self._notes = notes = Notes()
        laid, self._laid = self._laid, deque()
        try:
            yield notes
        finally:
            notes.laid = [(one[0], *_lies(one[1])) for one in self._laid if not isinstance(one, LaidAgain)]
            laid.extend(self._laid)
            self._laid, self._notes = laid, None

    def forget(self) -> None:
        """The client is gone: what it had loads nobody any more."""
        for handle in self.tensor_sharded.values():
            self._unload(handle)
        self.tensor_sharded.clear()

    def abandon(self, instructions: Sequence[Any], why: str) -> None:
        """Nobody will carry these out: what they would make is lost."""
        for instruction in instructions:
            if isinstance(instruction, int):
                self.lost.pop(instruction, None)
                self.tensor_sharded.pop(instruction, None)
            elif isinstance(instruction, Op | CreateTensor | Upload):
                self.lost[instruction.result] = why

    def lose(self, tensor: int, why: str) -> None:
        """A tensor could not be made."""
        self.lost[tensor] = why

    def adopt(self, tensor: int, spec: Spec, worker: str) -> None:
        """A tensor that a worker has already."""
        self.tensor_sharded[tensor] = TensorHandle("", spec, Placement(Replicated(), (worker,)), tensor)

    # --- ops ---

    def _op(self, cmd: Op) -> Stream:
        self.tally.ops += 1
        signal = self._signal(cmd.result)
        for tensor in cmd.inputs:
            if tensor in self.lost:
                self.lost[cmd.result] = self.lost[tensor]
                return
        attrs = cmd.attrs or {}
        if not cmd.inputs:
            spec = TABLE[cmd.op].infer((), attrs)
            placement = self._resolve(signal, spec) if signal else self._place(spec)
            yield from self._make(cmd, spec, placement, cmd.result)
            handle = self._keep(cmd.result, spec, placement)
            if cmd.op == "full" or (placement.whole and nbytes(spec) <= MADE_AGAIN):
                handle.origin = cmd
            return
        lowered = lower(cmd, [self.tensor_sharded[tensor] for tensor in cmd.inputs])
        if lowered is not None:
            if signal is not None:
                self.signals[cmd.result] = signal
            for one in lowered:
                yield from self.process(one)
            return
        handles = [self.tensor_sharded[tensor] for tensor in cmd.inputs]
        chosen = self._planned(cmd, handles, signal)
        if chosen.gathers:
            self._say_gathers(cmd.op)
        inputs = []
        for handle, wanted in zip(handles, chosen.wanted, strict=True):
            inputs.append((yield from self._bring(handle, wanted)))
        yield from self._run(cmd, chosen, inputs)
        handle = self._keep(cmd.result, chosen.spec, chosen.result)
        if signal is not None:
            yield from self._lay_out(cmd.result, handle, self._resolve(signal, chosen.spec))

    def _planned(self, cmd: Op, handles: list[TensorHandle], signal: Signal | None) -> Plan:
        attrs = cmd.attrs or {}
        key = (cmd.op, kind_of(attrs), tuple([self.key_of(handle) for handle in handles]), self.home)
        found = self._plans.get(key) if signal is None else None
        if found is None:
            target = None
            if signal is not None:
                out = TABLE[cmd.op].infer(tuple(handle.spec for handle in handles), dict(attrs))
                target = self._resolve(signal, out)
            found = plan(cmd.op, attrs, handles, self._sizes, self.home, target)
            if signal is None:
                if len(self._plans) > 20_000:
                    self._plans.clear()
                self._plans[key] = found
        return found

    def key_of(self, handle: TensorHandle) -> int:
        """The same number for tensors that are alike and lie alike: all that a plan can depend on."""
        if handle.key < 0:
            alike = (
                handle.spec.shape,
                handle.spec.dtype,
                handle.home,
                tuple(handle.versions),
                handle.origin is None,
            )
            handle.key = self._keys.setdefault(alike, len(self._keys))
        return handle.key

    def _sizes(self, length: int, workers: tuple[str, ...]) -> tuple[int, ...]:
        return self.policy.sizes(length, workers, self.memory)

    def _run(self, cmd: Op, chosen: Plan, inputs: list[int]) -> Stream:
        """The op itself, on every worker that takes part."""
        split, workers = chosen.split, chosen.workers
        if len(workers) > 1 and split is not None:
            self.tally.sharded_ops += 1
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
        between = fresh_id()
        for worker, shard in zip(workers, shards, strict=True):
            steps = split.steps(cmd.op, cmd.attrs or {}, shard)
            given = tuple(inputs)
            for number, (op, attrs) in enumerate(steps):
                last = number == len(steps) - 1
                made = result if last else between
                given = () if op == "full" else given
                one = Op(made, op, given, attrs or None, cmd.site)
                if self._notes is not None:
                    self._notes.follows(one, Rule(cmd, split.steps, shard, number))
                yield Placed((worker,), (one,))
                given = (made,)
            if len(steps) > 1:
                yield Placed((worker,), (between,))

    def _say_gathers(self, op: str) -> None:
        if not self.tally.gathered[op]:
            config.verbose(f"{op} gathers: it has no rule for inputs that are split this way")
        self.tally.gathered[op] += 1

    # --- tensors out of nothing ---

    def _make(self, cmd: Op, spec: Spec, placement: Placement, result: int) -> Stream:
        """Make a tensor in place: an element depends on its index alone, so each part is made by itself."""
        layout, workers = placement.layout, placement.workers
        if isinstance(layout, Sharded):
            rule = TABLE[cmd.op].sharding
            assert rule is not None
            split = next(one for one in rule((), cmd.attrs or {}, spec) if one.output == layout.axis)
            yield from self._in_steps(cmd, split, workers, _shards(layout.sizes), [], result)
            return
        made = Op(result, cmd.op, (), cmd.attrs, cmd.site)
        if isinstance(layout, Partial):
            yield Placed(workers, (made, *[zeros(result, spec)] * (len(workers) - 1)))
        else:
            yield Placed(workers, (made,) * len(workers))

    def _upload(self, cmd: CreateTensor | Upload) -> Stream:
        array = cmd.array
        if isinstance(cmd, CreateTensor) and not cmd.array.sound:
            raise ValueError(f"an array of shape {list(array.shape[:8])} and dtype {array.dtype!r}")
        dtype = array.dtype.name if isinstance(array, np.ndarray) else array.dtype
        spec = Spec(tuple(array.shape), dtype)
        signal = self._signal(cmd.result)
        placement = self._resolve(signal, spec) if signal else self._place(spec)
        yield upload_parts(cmd, spec, placement)
        self._keep(cmd.result, spec, placement)

    def _place(self, spec: Spec) -> Placement:
        cluster = Cluster(self.workers, self.memory, self.loads, self.home, self.capacity)
        placement = self.policy.place(spec, cluster)
        if self._notes is not None:
            self._notes.creations.append(Creation(spec, placement, Counter(self.loads), self.home))
        if placement.whole and len(placement.workers) == 1:
            self.home = placement.workers[0]
        return placement

    def _keep(self, tensor: int, spec: Spec, placement: Placement) -> TensorHandle:
        handle = self.tensor_sharded[tensor] = TensorHandle("", spec, placement, tensor)
        self._laid.append((tensor, handle))
        if isinstance(placement.layout, Sharded):
            self.tally.sharded_tensors += 1
            self.tally.sharded_bytes += nbytes(spec)
        elif len(placement.workers) == 1:
            handle.loads = True
            self.loads[placement.workers[0]] += nbytes(spec)
        return handle

    # --- signals ---

    def _signal(self, tensor: int) -> Signal | None:
        return self.signals.pop(tensor, None) if self.signals else None

    def _resolve(self, signal: Signal, spec: Spec) -> Placement:
        """What a signal means for a tensor."""
        count = len(self.workers)
        for number in signal.workers:
            if not 0 <= number < count:
                raise ValueError(
                    f"the signal {signal.name!r} names worker {number}, and they go from 0 to {count - 1}"
                )
        workers = tuple(self.workers[number] for number in signal.workers) or self.workers
        layout, rank = signal.layout, len(spec.shape)
        if isinstance(layout, Sharded) and -rank <= layout.axis < rank and len(workers) > 1:
            axis = layout.axis % rank
            if spec.shape[axis] > 1:
                return Placement(Sharded(axis, self._sizes(spec.shape[axis], workers)), workers)
        return Placement(Replicated(), workers)

    def _lay_out(self, tensor: int, handle: TensorHandle, wanted: Placement) -> Stream:
        """Make this the way a tensor lies."""
        if handle.home == wanted:
            return
        before = handle.versions[handle.home]
        number = yield from self._bring(handle, wanted)
        if number == before:  # it is there already, on more workers than wanted
            return
        del handle.versions[handle.home]
        yield Placed(handle.home.workers, (before,) * len(handle.home.workers))
        handle.home, handle.key = wanted, -1

    # --- other layouts ---

    def _bring(self, handle: TensorHandle, wanted: Placement) -> Generator[Any, None, int]:
        """Have a tensor lie as wanted; the result is the number of it that does."""
        number = handle.find(wanted)
        if number is not None:
            return number
        shape, dtype = tuple(handle.spec.shape), handle.spec.dtype
        number = fresh_id()
        if isinstance(wanted.layout, Partial):
            yield from self._as_terms(handle, wanted, number)
        elif handle.origin is not None:
            yield from self._make(handle.origin, handle.spec, wanted, number)
            self.tally.commands["Create"] += 1
        else:
            have = min(handle.versions, key=lambda one: bytes_moved(shape, dtype, one, wanted))
            yield self._relaid(handle.versions[have], number, shape, dtype, have, wanted)
        handle.add(wanted, number)
        return number

    def _relaid(
        self, tensor: int, result: int, shape: tuple[int, ...], dtype: str, have: Placement, wanted: Placement
    ) -> Placed:
        moved = bytes_moved(shape, dtype, have, wanted)
        self.tally.bytes_moved += moved
        if have.whole and isinstance(wanted.layout, Sharded) and set(wanted.workers) <= set(have.workers):
            self.tally.commands["ShardOp"] += 1
            return _cut(tensor, result, shape, wanted)
        number, spec = next_exchange(), (shape, dtype)
        if isinstance(have.layout, Partial):
            exchange = ReduceOp(tensor, result, number, spec, have, wanted, self.epoch)
        else:
            exchange = Exchange(
                _kind_of(have, wanted), number, tensor, result, *spec, have, wanted, self.epoch
            )
        self.tally.commands[exchange.kind] += 1
        workers = tuple(dict.fromkeys((*have.workers, *wanted.workers)))
        return Placed(workers, (exchange,) * len(workers))

    def _as_terms(self, handle: TensorHandle, wanted: Placement, number: int) -> Stream:
        """All of a tensor for the first worker, and zeros for the others: a sum of which only one counts."""
        first, *others = wanted.workers
        own = yield from self._bring(handle, Placement(Replicated(), (first,)))
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
            parts = self._to_read(handle)
            yield from self._bring(handle, parts)
        yield _reads(cmd.request, handle.versions[parts], shape, parts)

    def _to_read(self, handle: TensorHandle) -> Placement:
        """How terms are added up to be read: large ones in parts, each by another worker."""
        workers, shape = handle.home.workers, handle.spec.shape
        axis = next((axis for axis, n in enumerate(shape) if n >= len(workers)), None)
        if axis is None or nbytes(handle.spec) < READ_IN_PARTS:
            return Placement(Replicated(), workers[:1])
        return Placement(Sharded(axis, even(shape[axis], len(workers))), workers)

    def _free(self, tensor: int) -> Stream:
        if self.lost.pop(tensor, None) is not None:
            return
        handle = self.tensor_sharded.pop(tensor)
        for placement, number in handle.versions.items():
            yield Placed(placement.workers, (number,) * len(placement.workers))
        self._unload(handle)
        for fact in handle.facts.values():
            if fact in self.tensor_sharded or fact in self.lost:
                yield from self._free(fact)

    def _unload(self, handle: TensorHandle) -> None:
        if len(handle.home.workers) == 1 and handle.loads:
            self.loads[handle.home.workers[0]] -= nbytes(handle.spec)


def _reads(request: int, number: int, shape: tuple[int, ...], have: Placement) -> Placed:
    layout = have.layout
    if not isinstance(layout, Sharded) or not shape[layout.axis]:
        return Placed(have.workers[:1], (GetData(request, number),))
    used = [index for index, n in enumerate(layout.sizes) if n]
    boxes = [have.box(index, shape) for index in used]
    each = tuple(GetData(request, number, Part(box.start, box.shape, shape, len(used))) for box in boxes)
    return Placed(tuple(have.workers[index] for index in used), each)


def _cut(tensor: int, result: int, shape: tuple[int, ...], wanted: Placement) -> Placed:
    layout, workers = wanted.layout, wanted.workers
    assert isinstance(layout, Sharded)
    each = tuple(
        ShardOp(tensor, len(workers), layout.axis, shard.start, shard.start + shard.size, result)
        for shard in _shards(layout.sizes)
    )
    return Placed(workers, each)


def _kind_of(have: Placement, wanted: Placement) -> str:
    if have.workers != wanted.workers or have.whole:
        return "Move"
    return "AllGather" if wanted.whole else "AllToAll"


def _shards(sizes: tuple[int, ...]) -> tuple[Shard, ...]:
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return tuple(
        Shard(index, start, size, start, size)
        for index, (start, size) in enumerate(zip(starts, sizes, strict=True))
    )


def _lies(handle: TensorHandle) -> tuple[tuple[int, ...], str, Placement]:
    return tuple(handle.spec.shape), handle.spec.dtype, handle.home
