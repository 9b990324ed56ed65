"""Planning: of all ways to compute an op on inputs with given layouts, the one that moves fewest bytes."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import TABLE, Spec
from gt.ops.aten import results_of
from gt.ops.dtypes import SIZES
from gt.ops.run_time import is_run_time
from gt.ops.sharding.aten import RULES
from gt.ops.sharding.split import Shard, Split
from gt.stream.layouts import Partial, Placement, Replicated, Sharded, bytes_moved

LATENCY = 1 << 14
"""The least cost of an exchange, in bytes: smaller ones take as long."""

Sizes = Callable[[int, tuple[str, ...]], tuple[int, ...]]
"""The default sizes of an axis's parts, from its size and the workers."""


class Plan(NamedTuple):
    """How an op is computed."""

    specs: tuple[Spec, ...]
    """The specs of its results; none if they are not known."""
    wanted: tuple[Placement, ...]
    """The placement that each input must have."""
    results: tuple[Placement, ...]
    """The placement of each result."""
    split: Split | None
    """None: on whole inputs."""
    workers: tuple[str, ...]
    """The workers that compute."""
    shards: tuple[Shard, ...]
    """The part of each worker."""
    gathers: bool
    """Whether sharded inputs have to be gathered for it."""


class _Choice(NamedTuple):
    wanted: tuple[Placement, ...]
    results: tuple[Placement, ...]
    split: Split | None
    workers: tuple[str, ...]
    shards: tuple[Shard, ...] = ()


def nbytes(spec: Spec) -> int:
    """The size of a tensor in bytes."""
    return math.prod(spec.shape) * SIZES[spec.dtype]


def cost(handle: TensorHandle, wanted: Placement) -> int:
    """The least number of bytes to send so that a tensor has a placement."""
    if handle.find(wanted) is not None or handle.origin is not None:
        return 0
    shape, dtype = tuple(handle.spec.shape), handle.spec.dtype
    if isinstance(wanted.layout, Partial):
        wanted = Placement(Replicated(), wanted.workers[:1])  # the others have zeros
        if handle.find(wanted) is not None:
            return 0
    moved = min(bytes_moved(shape, dtype, have, wanted) for have in handle.versions)
    return max(moved, LATENCY) if moved else 0


def plan(
    op: str,
    attrs: Mapping[str, Any],
    inputs: Sequence[TensorHandle],
    sizes: Sizes,
    home: str,
    signal: Placement | None = None,
) -> Plan:
    """The cheapest way to compute an op; with a signal, such that its result has the signal's placement."""
    specs = specs_of(op, inputs)
    outs = infer(op, specs, attrs)
    splits = _splits(op, specs, dict(attrs), outs)
    meshes = dict.fromkeys(have.workers for handle in inputs for have in handle.versions)
    if signal is not None:
        meshes = {signal.workers: None}
    alone = [(home if home in mesh else mesh[0],) for mesh in meshes if len(mesh) > 1]
    alone += [(worker,) for handle in inputs for worker in _holders(handle)]
    wholes = [_whole(len(inputs), len(outs), mesh) for mesh in dict.fromkeys([*meshes, *alone])]
    if not outs:
        # The results may differ from worker to worker (an op that draws), and their shapes are not known.
        wholes = [choice for choice in wholes if len(choice.workers) == 1]
    cuts = [
        choice
        for mesh in meshes
        if len(mesh) > 1
        for split in splits
        for choice in _cuts(split, len(outs), inputs, mesh, sizes)
    ]
    choices = cuts + [choice for choice in wholes if not cuts or _may_be_whole(choice, inputs)]
    order = {id(choice): place for place, choice in enumerate(choices)}
    best = min(choices, key=lambda choice: (*_rank(choice, inputs, outs, signal), order[id(choice)]))
    gathers = best.split is None and any(
        isinstance(handle.placement.layout, Sharded) and cost(handle, wanted)
        for handle, wanted in zip(inputs, best.wanted, strict=True)
    )
    return Plan(outs, best.wanted, best.results, best.split, best.workers, best.shards, gathers)


def specs_of(op: str, inputs: Sequence[TensorHandle]) -> tuple[Spec, ...]:
    """The specs of an op's inputs. Raises ValueError if one is not a tensor."""
    if any(handle.results is not None for handle in inputs):
        raise ValueError(f"{op} of a value that is several tensors, or of unknown shape")
    return tuple([handle.spec for handle in inputs])


def infer(op: str, inputs: tuple[Spec, ...], attrs: Mapping[str, Any]) -> tuple[Spec, ...]:
    """The specs of an op's results; none if they are not known."""
    row = TABLE.get(op)
    return results_of(op, inputs, attrs) if row is None else (row.infer(inputs, dict(attrs)),)


def _splits(op: str, inputs: tuple[Spec, ...], attrs: dict[str, Any], outs: tuple[Spec, ...]) -> list[Split]:
    """The ways to compute an op in parts."""
    row = TABLE.get(op)
    if row is not None:
        assert row.sharding is not None
        return row.sharding(inputs, attrs, outs[0])
    rule = RULES.get(op)
    return [] if rule is None or not outs else rule(inputs, attrs, outs)


def _holders(handle: TensorHandle) -> Iterator[str]:
    """The worker with a much larger part of a tensor than others, if any: fewer bytes would move there."""
    layout, workers = handle.placement.layout, handle.placement.workers
    if isinstance(layout, Sharded) and max(layout.sizes) * len(workers) > 1.5 * sum(layout.sizes):
        yield workers[layout.sizes.index(max(layout.sizes))]


def _may_be_whole(choice: _Choice, inputs: Sequence[TensorHandle]) -> bool:
    """Whether an op that can be computed in parts may be computed on whole inputs: not if that gathers them.

    Exceptions are partial inputs, whose terms have to be reduced anyway, and small ones.
    """
    costs = [cost(handle, wanted) for handle, wanted in zip(inputs, choice.wanted, strict=True)]
    if not any(costs):
        return True
    return len(choice.workers) > 1 and all(
        not price or isinstance(handle.placement.layout, Partial) or nbytes(handle.spec) <= LATENCY
        for handle, price in zip(inputs, costs, strict=True)
    )


def _moved(choice: _Choice, inputs: Sequence[TensorHandle]) -> int:
    return sum(cost(handle, wanted) for handle, wanted in zip(inputs, choice.wanted, strict=True))


def _rank(
    choice: _Choice, inputs: Sequence[TensorHandle], outs: tuple[Spec, ...], signal: Placement | None
) -> tuple[int, int, int, bool]:
    """Bytes that move; then how many inputs need another placement; then the number of workers, negated.

    A small result is better whole than in parts, where that costs no more.
    """
    moved = _moved(choice, inputs)
    more = len(choice.workers) - 1
    before = moved
    for out, result in zip(outs, choice.results, strict=True):
        if signal is not None:
            moved += bytes_moved(tuple(out.shape), out.dtype, result, signal)
        elif before and isinstance(result.layout, Partial):
            moved += more * nbytes(out)  # the reduced result will be needed
        elif before and isinstance(result.layout, Sharded) and _updates(choice, inputs, out):
            moved += more * nbytes(out)  # a replicated tensor that is updated will be needed everywhere again
    elsewhere = sum(
        handle.placement != wanted and not (handle.origin is not None and handle.placement.whole)
        for handle, wanted in zip(inputs, choice.wanted, strict=True)
    )
    small = sum(map(nbytes, outs)) <= LATENCY and not all(result.whole for result in choice.results)
    return moved, elsewhere, -len(choice.workers), small


def _updates(choice: _Choice, inputs: Sequence[TensorHandle], out: Spec) -> bool:
    """Whether a result has the shape of an input that is replicated over the workers that compute it."""
    return any(
        handle.placement.whole
        and handle.placement.workers == choice.workers
        and handle.spec.shape == out.shape
        for handle in inputs
    )


def _whole(inputs: int, outs: int, mesh: tuple[str, ...]) -> _Choice:
    everywhere = Placement(Replicated(), mesh)
    return _Choice((everywhere,) * inputs, (everywhere,) * outs, None, mesh)


def _cuts(
    split: Split, outs: int, inputs: Sequence[TensorHandle], mesh: tuple[str, ...], sizes: Sizes
) -> Iterator[_Choice]:
    """The choices for a split on a mesh: one for each set of sizes that inputs have, and for the default."""
    whole, term = Placement(Replicated(), mesh), Placement(Partial("sum"), mesh)
    if split.linear:
        wanted = tuple(term if want == "sum" else whole for want in split.inputs)
        if all(term in handle.versions for handle, w in zip(inputs, wanted, strict=True) if w is term):
            yield _Choice(wanted, (term,) * outs, split, mesh)
        return
    for parts in _sizes(split, inputs, mesh, sizes):
        wanted = tuple(
            whole
            if want is None
            else term
            if want == "once"
            else Placement(Sharded(int(want), _scaled(parts, split.unit(index))), mesh)
            for index, want in enumerate(split.inputs)
        )
        results = split.sizes(parts) if split.sizes else parts
        shards = tuple(
            Shard(index, sum(parts[:index]), parts[index], sum(results[:index]), results[index])
            for index in range(len(parts))
        )
        if split.output == "owner":
            owner = next(
                shard for shard in shards if shard.start <= split.position < shard.start + shard.size
            )
            worker = (mesh[owner.number],)
            yield _Choice(wanted, (Placement(Replicated(), worker),), split, worker, (owner,))
            continue
        outputs = split.output if isinstance(split.output, tuple) else (split.output,)
        layouts = [
            Replicated()
            if to is None
            else Sharded(to, _scaled(results, split.unit(index)))
            if isinstance(to, int)
            else Partial(to)
            for index, to in enumerate(outputs, len(inputs))
        ]
        yield _Choice(wanted, tuple([Placement(one, mesh) for one in layouts]), split, mesh, shards)


def _sizes(
    split: Split, inputs: Sequence[TensorHandle], mesh: tuple[str, ...], sizes: Sizes
) -> list[tuple[int, ...]]:
    found: dict[tuple[int, ...], None] = {}
    for index, (handle, axis) in enumerate(zip(inputs, split.inputs, strict=True)):
        unit = split.unit(index)
        for have in handle.versions:
            layout = have.layout
            if not isinstance(layout, Sharded) or layout.axis != axis or have.workers != mesh:
                continue
            if not any(n % unit for n in layout.sizes):
                found[tuple(n // unit for n in layout.sizes)] = None
    default = sizes(split.length // split.granularity, mesh)
    found[tuple(n * split.granularity for n in default)] = None
    return [
        parts
        for parts in found
        if not any(n % split.granularity for n in parts) and not (split.nonempty and 0 in parts)
    ]


def _scaled(parts: tuple[int, ...], unit: int) -> tuple[int, ...]:
    return parts if unit == 1 else tuple(n * unit for n in parts)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def kind_of(attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    """The key of an op's attributes that a plan can depend on: for floats, only whether they are 0 or
    infinite."""
    if not attrs:
        return ()
    return tuple((name, type(value), _known(name, value)) for name, value in attrs.items())


def _known(name: str, value: Any) -> Any:
    if not is_run_time(name, value):
        return _frozen(value)
    return value if type(value) is float and (not value or not math.isfinite(value)) else None
