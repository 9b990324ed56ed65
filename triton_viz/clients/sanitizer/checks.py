"""Exact checks of an access, for all programs at once: which of its elements violate a rule."""

import dataclasses
from functools import cached_property

import numpy as np

from triton_viz.core.records.accesses import are_elements, elements_of, is_dense, reach
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.base import Accessed
from triton_viz.executor.affine import Box
from triton_viz.executor.memory import Mask, Memory
from triton_viz.executor.value import Value

_NULL = 4096
"""No memory is mapped below this address."""
_FAR = 2**62
_NEAR = 1 << 10
"""A pointer of an unknown tensor is attributed to the nearest tensor, up to this distance in bytes."""


@dataclasses.dataclass(frozen=True)
class Violation:
    """The elements of one access that violate one rule, described by the first of them."""

    kind: str
    """out of bounds, null pointer, misaligned, foreign tensor, broadcast store, uninitialized."""
    lane: int
    address: int
    tensor: TensorInfo | None
    elements: int
    lanes: np.ndarray | None
    """The lanes with the violation; None if one lane stands for all active programs."""


def is_broadcast(tensor: TensorInfo) -> bool:
    """Whether several of a tensor's elements share one address."""
    return any(s == 0 and n > 1 for s, n in zip(tensor.strides, tensor.shape, strict=True))


class Block:
    """An access element by element: addresses of shape (L, *block), and the mask."""

    def __init__(self, pointers: Value, mask: Mask, width: int):
        mask = mask.data() if isinstance(mask, Box) else mask
        addresses = np.clip(pointers.data, -_FAR, _FAR)
        lanes = max(len(addresses), 1 if mask is None else len(mask))
        whole = (lanes, *pointers.shape)
        self.addresses = np.broadcast_to(addresses, whole)
        self.keep = np.broadcast_to(True if mask is None else mask, whole)
        self.width = width
        self.origin = pointers.origin

    def violation(self, kind: str, bad: np.ndarray, tensor: TensorInfo | None) -> Violation:
        """The violation of these elements, at least one."""
        lanes = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
        lane = int(lanes[0])
        return Violation(
            kind=kind,
            lane=lane,
            address=int(self.addresses[lane][bad[lane]].flat[0]),
            tensor=tensor,
            elements=int(bad.sum()),
            lanes=lanes if len(bad) > 1 else None,
        )


@dataclasses.dataclass(frozen=True)
class Given:
    """The tensors of a launch, for pointers whose tensor is not known."""

    tensors: list[TensorInfo]
    """Its arguments."""

    @cached_property
    def closed(self) -> bool:
        """Whether no argument can hold addresses, so that all pointers are derived from arguments."""
        return not any(tensor.dtype in ("int64", "uint64") for tensor in self.tensors)


def is_surely_in_bounds(accessed: Accessed, tensors: list[TensorInfo], given: Given) -> bool:
    """Whether the lowest and highest address of each lane prove the block in bounds. False means unknown."""
    form, width = accessed.pointers.numbers, accessed.width
    if form is None:
        return False
    lows, highs, used = reach(form, accessed.mask, width)
    if not used.any():
        return True
    if any(step % width for step in form.steps):
        return False
    low, high = int(lows[used].min()), int(highs[used].max())
    if not tensors and not (given.closed and accessed.pointers.origin is None):
        holds = _memory(accessed).holds(low, high, accessed.pointers.origin)
        return holds and not (lows[used] % width).any()
    for tensor in tensors or given.tensors:
        first, last = elements_of(tensor)
        if first <= low and high <= last and is_dense(tensor):
            return not ((lows[used] - first) % width).any()
    return False


def check(accessed: Accessed, tensors: list[TensorInfo], given: Given) -> tuple[Mask, list[Violation]]:
    """The mask without the elements that must not be accessed, and the violations.

    `tensors` are the tensors that the pointers may be derived from. If they are unknown, the pointers may
    access all arguments or, if they were computed from a loaded tensor address, that tensor.
    """
    if is_surely_in_bounds(accessed, tensors, given):
        return accessed.mask, []
    block = Block(accessed.pointers, accessed.mask, accessed.width)
    found: list[Violation] = []
    if tensors:
        bad = ~_inside(block, tensors) & block.keep
        if bad.any():
            found.append(of_nearest(block.violation("out of bounds", bad, None), tensors))
    else:
        allowed = ~_memory(accessed).outside(block.addresses, block.addresses + block.width, block.origin)
        closed = given.closed and block.origin is None
        bad = ~(allowed & _inside(block, given.tensors) if closed else allowed) & block.keep
        if bad.any():
            found += _kinds(block, bad, accessed, _FAR if closed else _NEAR)
    start = tensors[0].address if len(tensors) == 1 else 0
    misaligned = block.keep & ~bad & ((block.addresses - start) % block.width != 0)
    if misaligned.any():
        found.append(of_nearest(block.violation("misaligned", misaligned, None), tensors or accessed.tensors))
        bad |= misaligned
    return (block.keep & ~bad if bad.any() else accessed.mask), found


def _inside(block: Block, tensors: list[TensorInfo]) -> np.ndarray:
    """Which accessed elements are elements of one of these tensors."""
    found = np.zeros(block.addresses.shape, bool)
    for tensor in tensors:
        first, last = elements_of(tensor)
        distance = block.addresses - first
        inside = (distance >= 0) & (distance + block.width <= last - first)
        if not is_dense(tensor):
            for byte in {*range(0, block.width, tensor.itemsize), block.width - 1}:
                inside[inside] = are_elements(tensor, (distance[inside] + byte) // tensor.itemsize)
        found |= inside
    return found


def _memory(accessed: Accessed) -> Memory:
    """The `Memory` of the builder; None if the language checks accesses itself."""
    assert isinstance(accessed.memory, Memory)
    return accessed.memory


def _kinds(block: Block, bad: np.ndarray, accessed: Accessed, near: int) -> list[Violation]:
    """The kind of violation of each pointer: to no tensor, or to one that is not an argument."""
    found: list[Violation] = []
    null = bad & (block.addresses >= 0) & (block.addresses < _NULL)
    if null.any():
        found.append(block.violation("null pointer", null, None))
    left, memory = bad & ~null, _memory(accessed)
    for tensor in memory.not_given(block.addresses[left]) if left.any() else ():
        there = left & (block.addresses >= tensor.storage[0]) & (block.addresses < tensor.storage[1])
        if there.any():
            found.append(block.violation("foreign tensor", there, tensor))
            left &= ~there
    if left.any():
        violation, own = block.violation("out of bounds", left, None), memory.loaded_for(block.origin)
        found.append(of_nearest(violation, own) if own else of_nearest(violation, accessed.tensors, near))
    return found


def of_nearest(violation: Violation, tensors: list[TensorInfo], near: int = _FAR) -> Violation:
    """The violation, attributed to the nearest tensor if one is near enough."""
    ends = [elements_of(tensor) for tensor in tensors]
    distances = [max(first - violation.address, violation.address - last, 0) for first, last in ends]
    nearest = min(range(len(tensors)), key=lambda n: distances[n], default=None)
    if nearest is None or distances[nearest] >= near:
        return violation
    return dataclasses.replace(violation, tensor=tensors[nearest])


class BroadcastStores:
    """For views in which several elements share an address: the program that stored to each address."""

    def __init__(self) -> None:
        self._stored: dict[object, np.ndarray] = {}

    def check(
        self, spot: object, block: Block, tensor: TensorInfo, program_ids: np.ndarray
    ) -> Violation | None:
        """Which elements were stored to before, by another program or element at this spot.

        `program_ids` are the programs of the lanes or, if one lane stands for all, all of its programs.
        """
        first, last = elements_of(tensor)
        keep = block.keep & (block.addresses >= first) & (block.addresses < last)
        lanes = np.broadcast_to(np.arange(len(keep)).reshape(-1, *(1,) * (keep.ndim - 1)), keep.shape)[keep]
        offsets = (block.addresses[keep] - first) // tensor.itemsize
        stored = self._stored.setdefault(spot, np.full((last - first) // tensor.itemsize + 1, -1, np.int64))
        order = np.argsort(offsets, kind="stable")
        again = np.zeros(len(offsets), bool)
        again[order[1:]] = offsets[order[1:]] == offsets[order[:-1]]
        programs = program_ids[lanes] if len(keep) > 1 else np.broadcast_to(program_ids[-1], len(lanes))
        again |= (stored[offsets] >= 0) & (stored[offsets] != programs)
        again |= len(keep) == 1 and len(program_ids) > 1
        stored[offsets] = programs
        if not again.any():
            return None
        bad = np.zeros(keep.shape, bool)
        bad[keep] = again
        return block.violation("broadcast store", bad, tensor)
