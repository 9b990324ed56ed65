"""Converts pointers over lanes to elements of tensors: the columns of an access."""

import functools
import itertools
from functools import cached_property

import numpy as np

from triton_viz.core.records.columns import AccessedElements, Box, Numbers
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.executor.affine import Affine, spread
from triton_viz.executor.affine import Box as LaneBox
from triton_viz.executor.memory import Mask
from triton_viz.executor.value import Value

_FAR = 2**61
"""Larger than any address. The sum of two such numbers fits into 64 bits."""


class Tensors:
    """The tensors of a launch, sorted by address, to find the tensor of an address."""

    def __init__(self, tensors: list[TensorInfo]):
        self.tensors = sorted(tensors, key=lambda tensor: tensor.address)
        self.names = tuple(tensor.name for tensor in self.tensors)
        storages = sorted({tensor.storage for tensor in tensors})
        self.apart = len(storages) == len(tensors) and all(
            end <= start for (_, end), (start, _) in itertools.pairwise(storages)
        )
        """Whether no two tensors share memory."""

    @cached_property
    def _reaches(self) -> list[tuple[int, int, int]]:
        """In order of preference: from a tensor's first to its last element, then its storage."""
        positions = list(enumerate(self.tensors))[::-1]
        return [(i, *elements_of(t)) for i, t in positions] + [(i, *t.storage) for i, t in positions]

    def owner(self, low: int, high: int) -> int:
        """The index of the tensor that contains all addresses from low up to high; -1 if there is none.

        Of several views of one storage, it is the last one that starts at or before `low`. An address in a
        storage but outside of its views belongs to one of the views: a kernel may access it.
        """
        return next((i for i, begin, end in self._reaches if begin <= low and high <= end), -1)

    def owners(self, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
        """`owner` for arrays of addresses."""
        found = np.full(lows.shape, -1, np.int16)
        for i, begin, end in self._reaches:
            found[(found < 0) & (begin <= lows) & (highs <= end)] = i
        return found


def elements_of(tensor: TensorInfo) -> tuple[int, int]:
    """The address of a tensor's first element, and the end of its last."""
    if 0 in tensor.shape:
        return tensor.address, tensor.address
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True))
    return tensor.address, tensor.address + (last + 1) * tensor.itemsize


def axes_of(tensor: TensorInfo) -> list[tuple[int, int]] | None:
    """The strides and sizes of a tensor without broadcast axes, largest stride first.

    Each stride is longer than the extent of all smaller ones, so that division by the strides in this order
    decides whether an offset belongs to an element. None if the strides do not have this property.
    """
    axes: list[tuple[int, int]] = []
    for stride, size in sorted(zip(tensor.strides, tensor.shape, strict=True)):
        if stride == 0 or size == 1:
            continue
        if axes and stride % axes[-1][0] == 0 and stride <= axes[-1][0] * axes[-1][1]:
            axes[-1] = axes[-1][0], axes[-1][1] + (size - 1) * (stride // axes[-1][0])
        else:
            axes.append((stride, size))
    reached = 0
    for stride, size in axes:
        if stride <= reached:
            return None
        reached += stride * (size - 1)
    return axes[::-1]


def is_dense(tensor: TensorInfo) -> bool:
    """Whether every offset from a tensor's first element to its last is one of its elements."""
    axes = axes_of(tensor)
    return axes is not None and (not axes or (len(axes) == 1 and axes[0][0] == 1))


def are_elements(tensor: TensorInfo, positions: np.ndarray) -> np.ndarray:
    """Whether there is an element at each of these distances (in elements, not negative) from the first."""
    axes = axes_of(tensor)
    if axes is None:
        return _elements(tensor.shape, tensor.strides)[positions]
    found = np.ones(positions.shape, bool)
    for stride, size in axes:
        index, positions = np.divmod(positions, stride)
        found &= index < size
    return found & (positions == 0)


@functools.lru_cache(4)
def _elements(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Whether there is an element at each offset from the first to the last, for strides that overlap."""
    reached = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + 1
    found = np.zeros(reached, bool)
    found[0] = True
    for stride, size in zip(strides, shape, strict=True):
        done = 1  # number of indices of this axis that are included; each iteration doubles it
        while done < size and stride:
            more = min(done, size - done)
            found[more * stride :] |= found[: reached - more * stride].copy()
            done += more
    return found


def find_accessed_elements(pointers: Value, mask: Mask, width: int, tensors: Tensors) -> AccessedElements:
    """The columns of an access: its tensors, elements and mask."""
    shape = pointers.shape
    box, bits = _mask_columns(mask, shape)
    form = pointers.numbers
    if form is not None:
        lows, highs, used = reach(form, mask, width)
        if not used.any():
            return AccessedElements(shape, (), first=Numbers(1), steps=(0,) * len(shape), box=box, bits=bits)
        owner, which = _owners(tensors, lows, highs, used)
        if owner is not None or (which is not None and (which[used] >= 0).all()):
            if owner is not None:
                tensor = tensors.tensors[owner]
                address, itemsize = tensor.address, tensor.itemsize
            else:
                addresses = np.array([t.address for t in tensors.tensors])
                sizes = np.array([t.itemsize for t in tensors.tensors])
                address, itemsize = addresses[which], sizes[which]
            if np.ndim(itemsize) == 0 and all(step % itemsize == 0 for step in form.steps):
                first = (form.base - address) // itemsize
                steps = tuple(step // int(itemsize) for step in form.steps)
                names = tensors.names if owner is None else (tensors.names[owner],)
                return AccessedElements(
                    shape, names, first=Numbers.of(first), steps=steps, which=which, box=box, bits=bits
                )
    return _listed(pointers, mask, width, tensors, box, bits)


def _listed(
    pointers: Value, mask: Mask, width: int, tensors: Tensors, box: Box | None, bits: np.ndarray | None
) -> AccessedElements:
    """The columns of an access whose elements are not evenly spaced: the offset of every element."""
    shape = pointers.shape
    addresses = pointers.data
    keep = _as_array(mask, shape)
    lanes = max(len(addresses), len(keep))
    addresses, keep = np.broadcast_to(addresses, (lanes, *shape)), np.broadcast_to(keep, (lanes, *shape))
    used = np.any(keep.reshape(lanes, -1), axis=1)
    if not used.any():
        return AccessedElements(shape, (), first=Numbers(1), steps=(0,) * len(shape), box=box, bits=bits)
    flat, kept = addresses.reshape(lanes, -1), keep.reshape(lanes, -1)
    lows = np.where(kept, flat, np.iinfo(np.int64).max).min(axis=1)
    highs = np.where(kept, flat, 0).max(axis=1) + width
    owner, which = _owners(tensors, lows, highs, used)
    if owner is None and (which is None or (which[used] < 0).any()):
        which = np.where(keep, tensors.owners(addresses, addresses + width), -1)
    if owner is not None:
        tensor = tensors.tensors[owner]
        offsets = (addresses - tensor.address) // tensor.itemsize
        names: tuple[str, ...] = (tensor.name,)
    else:
        assert which is not None
        starts = np.array([t.address for t in tensors.tensors])
        sizes = np.array([t.itemsize for t in tensors.tensors])
        per_element = which if which.ndim > 1 else which.reshape(-1, *(1,) * len(shape))
        offsets = (addresses - starts[per_element]) // sizes[per_element]
        names = tensors.names
    if offsets.min() >= -(2**31) and offsets.max() < 2**31:
        offsets = offsets.astype(np.int32)
    return AccessedElements(shape, names, offsets=offsets, which=which, box=box, bits=bits)


def _owners(
    tensors: Tensors, lows: np.ndarray, highs: np.ndarray, used: np.ndarray
) -> tuple[int | None, np.ndarray | None]:
    """The tensor of all lanes that access memory, or the tensor of each lane if they differ."""
    if tensors.apart or used.sum() == 1:
        owner = tensors.owner(int(lows[used].min()), int(highs[used].max()))
        if owner >= 0:
            return owner, None
    which = np.where(used, tensors.owners(lows, highs), -1).astype(np.int16)
    distinct = np.unique(which[used])
    if len(distinct) == 1 and distinct[0] >= 0:
        return int(distinct[0]), None
    return None, which


def reach(form: Affine, mask: Mask, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each lane: the lowest accessed address, the end of the highest, and whether it accesses any."""
    below, above = spread(form.steps, form.shape)
    base = np.minimum(np.maximum(form.base, -_FAR), _FAR)
    if below < -_FAR or above > _FAR:  # addresses may wrap around: compute those of all elements
        mask = _as_array(mask, form.shape)
    elif mask is None:
        return base + below, base + (above + width), np.ones(len(base), bool)
    elif isinstance(mask, LaneBox):
        low, high, used = base, base + width, np.ones(max(len(base), mask.lanes), bool)
        for step, size, bounds in zip(form.steps, form.shape, mask.bounds, strict=True):
            start, end = (0, size) if bounds is None else bounds
            used = used & (end > start)
            ends = start * step, (end - 1) * step
            low, high = low + ends[step < 0], high + ends[step >= 0]
        if low.shape != used.shape:
            low, high = np.broadcast_to(low, used.shape), np.broadcast_to(high, used.shape)
        return low, high, used
    elif not form.shape:
        base, used = np.broadcast_arrays(base, mask)
        return base, base + width, used
    kept = mask.reshape(len(mask), -1)
    lanes = max(len(base), len(mask))
    elements = np.clip(form.data(), -_FAR, _FAR).reshape(len(base), -1)
    data = np.broadcast_to(elements, (lanes, kept.shape[1]))
    lows = np.where(kept, data, np.iinfo(np.int64).max).min(axis=1)
    return lows, np.where(kept, data, 0).max(axis=1) + width, np.broadcast_to(kept.any(axis=1), (lanes,))


def _as_array(mask: Mask, shape: tuple[int, ...]) -> np.ndarray:
    if mask is None:
        return np.ones((1, *shape), bool)
    return mask.data() if isinstance(mask, LaneBox) else mask


def _mask_columns(mask: Mask, shape: tuple[int, ...]) -> tuple[Box | None, np.ndarray | None]:
    if mask is None:
        return None, None
    if isinstance(mask, LaneBox):
        bounds = tuple(b if b is None else (Numbers.of(b[0]), Numbers.of(b[1])) for b in mask.bounds)
        return Box(bounds), None
    return None, np.packbits(mask.reshape(len(mask), -1), axis=1)
