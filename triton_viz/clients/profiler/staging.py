"""Data that is collected while a chunk runs, and its conversion to batches of accesses afterwards.

Collecting has to be fast, because it happens at every op. The costs are computed after the chunk has run,
when all iterations of a loop can be examined together.
"""

import math
from typing import Any

import msgspec
import numpy as np

from triton_viz.clients.profiler.blocks import Batch
from triton_viz.clients.utils import Instruction
from triton_viz.core.data import Site
from triton_viz.core.records.columns import Programs
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.base import Accessed
from triton_viz.executor.affine import Box

Path = tuple[Site, ...]
AccessKey = tuple[Path, str]
"""A site: the call path, and load, store or atomic."""


class PerLane:
    """A number for each lane, stored once while all lanes agree."""

    __slots__ = ("all", "some")

    def __init__(self) -> None:
        self.all = 0
        self.some: np.ndarray | None = None

    def add(self, amount: int, active: np.ndarray | None, lanes: int) -> None:
        """Add a number to the active lanes."""
        if active is None:
            self.all += amount
            return
        if self.some is None:
            self.some = np.zeros(lanes, np.int64)
        self.some[active] += amount

    def numbers(self, lanes: int) -> np.ndarray:
        """The number of each lane, as an array."""
        return np.full(lanes, self.all, np.int64) + (0 if self.some is None else self.some)


class LoopTrips:
    """How often the programs of a chunk entered a loop, and how many iterations they ran."""

    __slots__ = ("counted", "entries", "trips")

    def __init__(self, counted: bool):
        self.counted = counted
        """Whether its length was known when it began: a `for`, not a `while`."""
        self.entries, self.trips = PerLane(), PerLane()


class Chunk:
    """The accesses, operations and loops of a chunk so far."""

    def __init__(self, programs: Programs):
        self.programs = programs
        self.lanes = programs.lanes
        self.accesses: dict[tuple[AccessKey, Instruction], list[tuple[Accessed, np.ndarray | None]]] = {}
        self.bytes_staged = 0
        self.work: dict[tuple[Path, str, str], PerLane] = {}
        """Operations by site, unit (`dot` or `vector`) and precision."""
        self.integers = PerLane()
        self.loops: dict[tuple[str, int], LoopTrips] = {}
        self.inside: list[LoopTrips] = []
        self.combining: dict[str, int] | None = None
        """While a combining function runs: the operations of its calls, by precision."""
        self.complete = True
        """Whether none of its accesses were committed yet, so that all accesses of a program can be
        compared."""


class Part(msgspec.Struct, eq=False):
    """A batch and its tensor; no tensor if no element was accessed."""

    tensor: TensorInfo | None
    batch: Batch
    possible: int
    """The elements of all blocks together, including those masked off."""


def parts_of(staged: list[tuple[Accessed, np.ndarray | None]], lanes: int) -> list[Part]:
    """The accesses of one site in a chunk, as one batch for each form of access."""
    groups: dict[Any, list[Part]] = {}
    for accessed, active in staged:
        for part in _split(accessed, active, lanes):
            b = part.batch
            name = None if part.tensor is None else part.tensor.name
            key = (name, b.shape, b.steps, b.width, b.offsets is None, b.keep is None)
            groups.setdefault(key, []).append(part)
    return [_stacked(group) for group in groups.values()]


def _split(accessed: Accessed, active: np.ndarray | None, lanes: int) -> list[Part]:
    """One access, as a part for each tensor that it accesses."""
    positions, shape = accessed.elements, accessed.pointers.shape
    ran = np.ones(lanes, bool) if active is None else active
    size = math.prod(shape)
    bounds, keep, takes = _mask(accessed, lanes, ran)
    tensors, zeros = accessed.tensors_by_name, np.zeros((1, lanes), np.int64)
    if not positions.tensors:
        nothing = Batch(
            accessed.width,
            1,
            shape,
            (0,) * len(shape),
            zeros,
            (None,) * len(shape),
            np.zeros((1, lanes), bool),
        )
        return [Part(None, nothing, size * int(ran.sum()))]
    first, offsets = zeros, None
    if positions.first is not None:
        first = np.broadcast_to(positions.first.all(), (lanes,))[None]
    else:
        assert positions.offsets is not None
        offsets = np.broadcast_to(positions.offsets, (lanes, *shape)).reshape(1, lanes, size)
    if positions.which is None:
        found = tensors[positions.tensors[0]]
        batch = Batch(
            accessed.width, found.itemsize, shape, positions.steps, first, bounds, takes, offsets, keep
        )
        return [Part(found, batch, size * int(ran.sum()))]
    result = []
    which = np.broadcast_to(positions.which, (lanes, *positions.which.shape[1:]))
    for number in np.unique(which).tolist():
        found = None if number < 0 else tensors[positions.tensors[number]]
        here = which == number
        unit = 1 if found is None else found.itemsize
        if which.ndim == 1:
            own, kept, count = takes & here, keep, size * int((ran & here).sum())
        else:
            of_element = here.reshape(1, lanes, size)
            kept = of_element & (True if keep is None else keep)
            own, count = takes, int((of_element & ran[None, :, None]).sum())
        if found is None:  # no tensor is touched there
            own, kept = own & False, keep
        batch = Batch(accessed.width, unit, shape, positions.steps, first, bounds, own, offsets, kept)
        result.append(Part(found, batch, count))
    return result


def _mask(accessed: Accessed, lanes: int, ran: np.ndarray) -> tuple[Any, np.ndarray | None, np.ndarray]:
    """A mask as bounds or as booleans, and the lanes with any true element."""
    shape, mask = accessed.pointers.shape, accessed.mask
    none = (None,) * len(shape)
    if mask is None:
        return none, None, ran[None]
    if isinstance(mask, Box):
        limits = [
            None if pair is None else tuple(np.broadcast_to(end, (lanes,))[None] for end in pair)
            for pair in mask.bounds
        ]
        takes = ran[None]
        for pair in limits:
            if pair is not None:
                takes = takes & (pair[1] > pair[0])
        if takes.any():  # those of lanes that touch nothing say nothing
            limits = [
                None if pair is None or _whole(pair, n, takes) else pair
                for pair, n in zip(limits, shape, strict=True)
            ]
        return tuple(limits), None, takes
    if not shape:
        return none, None, ran[None] & np.broadcast_to(mask, (lanes,))
    keep = np.broadcast_to(mask, (lanes, *shape)).reshape(1, lanes, math.prod(shape))
    return none, keep, ran[None] & keep.any(axis=2)


def _whole(pair: tuple[np.ndarray, ...], size: int, takes: np.ndarray) -> bool:
    return bool(((pair[0] == 0) & (pair[1] == size))[takes].all())


def _stacked(parts: list[Part]) -> Part:
    """Parts of equal form stacked as iterations of one batch."""
    if len(parts) == 1:
        return parts[0]
    one = parts[0].batch
    batches = [part.batch for part in parts]

    def joined(name: str) -> Any:
        arrays = [getattr(batch, name) for batch in batches]
        return None if arrays[0] is None else np.concatenate(arrays)

    def limits(axis: int) -> tuple[np.ndarray, np.ndarray] | None:
        pairs = [batch.bounds[axis] for batch in batches]
        if all(pair is None for pair in pairs):
            return None
        whole = (np.zeros_like(one.first), np.full_like(one.first, one.shape[axis]))
        known = [whole if pair is None else pair for pair in pairs]
        return np.concatenate([pair[0] for pair in known]), np.concatenate([pair[1] for pair in known])

    batch = Batch(
        one.width,
        one.unit,
        one.shape,
        one.steps,
        joined("first"),
        tuple(limits(axis) for axis in range(len(one.shape))),
        joined("active"),
        joined("offsets"),
        joined("keep"),
    )
    return Part(parts[0].tensor, batch, sum(part.possible for part in parts))
