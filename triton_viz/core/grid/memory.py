"""The memory a kernel may touch, and the only place where it is touched.

That is its arguments' storages, and any live torch storage that its pointers lead into (a grouped matmul
reads pointers from a tensor). Every access is checked against them before it happens: a wild pointer is an
error, never a crash.
"""

import contextlib
import ctypes
import gc
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from triton_viz.core.data import TensorInfo
from triton_viz.core.grid.affine import Affine, Box, apart, spread
from triton_viz.core.grid.value import Value
from triton_viz.errors import AccessError

_FLOOR = 4096
_WORLD: Any = (ctypes.c_char * (2**47)).from_address(_FLOOR)
"""All addresses that user memory can have (nothing is ever at the lowest). Only checked ones are touched."""

_MOST_REGIONS = 16
"""With more different boxes than this among lanes, elements are picked one by one."""

Undo = Callable[[], None]
Mask = Box | np.ndarray | None
"""Which elements an access touches: a box, booleans of shape (L, *shape), or all."""


class Memory:
    """The storages of one launch: checked loads, stores and atomics over lanes."""

    def __init__(self, tensors: Iterable[TensorInfo]):
        self.tensors: list[TensorInfo] = []
        self._lock = threading.RLock()
        self._keep_alive: list[object] = []
        self.adopted: list[TensorInfo] = []
        """Tensors that are no arguments: pointers in memory led to them."""
        self._set_tensors(list(tensors))

    def _set_tensors(self, tensors: list[TensorInfo]) -> None:
        self.tensors = sorted(tensors, key=lambda tensor: (tensor.address, -tensor.storage[1]))
        spans: list[list[int]] = []
        for start, end in sorted({tensor.storage for tensor in tensors if tensor.storage[1]}):
            if spans and start <= spans[-1][1] and start < spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], end)
            else:
                spans.append([start, end])
        self._spans = spans
        self._starts = np.array([s for s, _ in spans], np.int64)
        self._ends = np.array([e for _, e in spans], np.int64)

    # --- whole blocks ---

    def load(
        self, pointers: Value, mask: Mask, fill: np.ndarray | None, dtype: np.dtype, lanes: int
    ) -> np.ndarray:
        """What is at the pointers, of shape (L, *shape); where the mask is false, the fill or 0.

        `lanes` is how many lanes the result tells apart.
        """
        form = pointers.affine if pointers.shape else None
        if form is not None and mask is None:
            return self._load_block(form, dtype)
        shape = pointers.shape
        if mask is None:
            addresses = pointers.data
            self._check(addresses, dtype.itemsize)
            return _take(addresses, dtype)
        if isinstance(mask, Box):
            regions = _regions(mask, lanes) if form is not None else None
            if form is not None and regions is not None:
                result = np.empty((lanes, *shape), dtype)
                result[...] = 0 if fill is None else fill
                try:
                    for which, start, end in regions:
                        part = self._load_block(_region(form, which, start, end), dtype)
                        result[(which, *map(slice, start, end))] = part
                    return result
                except AccessError:  # of a region: below it is found out whose of all lanes it is
                    pass
            mask = mask.data()
        result = np.empty((lanes, *shape), dtype)
        result[...] = 0 if fill is None else fill
        keep = np.broadcast_to(mask, result.shape)
        addresses = np.broadcast_to(pointers.data, result.shape)[keep]
        if addresses.size:
            self._check(addresses, dtype.itemsize, keep)
            result[keep] = _take(addresses, dtype)
        return result

    def store(
        self, pointers: Value, mask: Mask, values: np.ndarray, lanes: int, log: list[Undo] | None
    ) -> None:
        """Write values of shape (L, *shape). Where lanes write to one place, the last one's stays."""
        form = pointers.affine if pointers.shape else None
        dtype, shape = values.dtype, pointers.shape
        if form is not None and not (mask is not None and isinstance(mask, np.ndarray)):
            if mask is None:
                return self._store_block(form, values, lanes, log)
            regions = _regions(mask, lanes)
            if regions is not None:
                try:
                    for which, start, end in regions:
                        part = values[which] if len(values) > 1 else values
                        inside = (slice(None), *map(slice, start, end))
                        count = lanes if isinstance(which, slice) else len(which)
                        self._store_block(_region(form, which, start, end), part[inside], count, log)
                    return None
                except AccessError:
                    pass
            mask = mask.data()
        elif isinstance(mask, Box):
            mask = mask.data()
        whole = (lanes, *shape)
        addresses, values = np.broadcast_to(pointers.data, whole), np.broadcast_to(values, whole)
        if mask is not None:
            keep = np.broadcast_to(mask, whole)
            addresses, values = addresses[keep], values[keep]
            if addresses.size:
                self._check(addresses, dtype.itemsize, keep)
        else:
            self._check(addresses, dtype.itemsize)
        if addresses.size:
            if log is not None:
                before = _take(addresses, dtype)
                log.append(lambda: _put(addresses, before))
            _put(addresses, values)
        return None

    def gather(self, addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """What is at checked addresses."""
        return _take(addresses, dtype)

    def scatter(self, addresses: np.ndarray, values: np.ndarray, log: list[Undo] | None) -> None:
        """Write to checked addresses, in order."""
        if log is not None:
            before = _take(addresses, values.dtype)
            log.append(lambda: _put(addresses, before))
        _put(addresses, values)

    def check(self, addresses: np.ndarray, width: int, keep: np.ndarray | None = None) -> None:
        """Raise an error unless every one of these addresses may be touched."""
        if addresses.size:
            self._check(addresses, width, keep)

    def _load_block(self, form: Affine, dtype: np.dtype) -> np.ndarray:
        self._check_block(form, dtype.itemsize)
        step = form.lane_step
        if step is not None:
            lanes = 1 if step == 0 else len(form.base)
            return _window(form, lanes, step, dtype).copy()
        window, index = _windows(form, dtype)
        return window[index] if window is not None else _take(form.data(), dtype)

    def _store_block(self, form: Affine, values: np.ndarray, lanes: int, log: list[Undo] | None) -> None:
        self._check_block(form, values.dtype.itemsize)
        if log is not None:
            before = self._load_block(form, values.dtype)
            log.append(lambda: self._store_block(form, before, len(before), None))
        step = form.lane_step
        if step == 0:
            _window(form, 1, 0, values.dtype)[...] = values[-1:]
        elif step is not None and apart((step, *form.steps), (len(form.base), *form.shape)):
            _window(form, len(form.base), step, values.dtype)[...] = values
        else:
            window, index = _windows(form, values.dtype)
            if window is not None:
                window[index] = values
            else:
                addresses = form.data()
                _put(addresses, np.broadcast_to(values, addresses.shape))

    # --- checks ---

    def _check_block(self, form: Affine, width: int) -> None:
        below, above = spread(form.steps, form.shape)
        base = form.base
        low, high = (int(base[0]),) * 2 if len(base) == 1 else (int(base.min()), int(base.max()))
        if self.holds(low + below, high + above + width):
            return
        if self.outside(_clipped(base, below), _clipped(base, above + width)).any():
            self._check_each(form.data(), width)

    def _check(self, addresses: np.ndarray, width: int, keep: np.ndarray | None = None) -> None:
        low, high = int(addresses.min()), int(addresses.max()) + width
        if not self.holds(low, high):
            self._check_each(addresses, width, keep)

    def holds(self, low: int, high: int) -> bool:
        """Whether all bytes from low up to high lie in one known tensor's memory."""
        return any(start <= low and high <= end for start, end in self._spans)

    def _check_each(self, addresses: np.ndarray, width: int, keep: np.ndarray | None = None) -> None:
        """The same, looking at every address. With `keep`, they are a selection of a block's."""
        lows, highs = _clipped(addresses, 0), _clipped(addresses, width)
        bad = self.outside(lows, highs)
        if bad.any() and self.adopt(lows[bad]):
            bad = self.outside(lows, highs)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            if keep is not None:  # count where its elements came from
                first = int(np.flatnonzero(keep)[first])
            lane = first // ((addresses if keep is None else keep)[0].size)
            raise AccessError(self._explain(addresses[bad], width), lane=lane)

    def outside(self, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
        """Which spans of bytes do not lie in the memory of a known tensor."""
        if not self._spans:
            return np.ones(lows.shape, bool)
        place = np.searchsorted(self._starts, lows, side="right") - 1
        return (place < 0) | (highs > self._ends[place])

    def adopt(self, addresses: np.ndarray) -> bool:
        """Take in the live torch tensors that hold any of these addresses; whether there were some."""
        known = {tensor.storage for tensor in self.tensors}
        found: dict[tuple[int, int], TensorInfo] = {}
        for info, reference in self._live:
            start, end = info.storage
            thing = reference()
            if thing is None or start == 0 or info.storage in known or info.storage in found:
                continue
            if ((addresses >= start) & (addresses < end)).any():
                found[info.storage] = msgspec.structs.replace(info, name=self._name_of(info))
                self._keep_alive.append(thing)
        if found:
            with self._lock:
                self.adopted += found.values()
                self._set_tensors([*self.tensors, *found.values()])
        return bool(found)

    @cached_property
    def _live(self) -> list[tuple[TensorInfo, "weakref.ref[Any]"]]:
        """Every tensor there is, and where. It is looked for once: that takes as long as a small launch."""
        found = []
        for thing in _live_tensors():
            with contextlib.suppress(RuntimeError):  # it stands for others, and has no memory of its own
                found.append((TensorInfo.of("", thing), weakref.ref(thing)))
        return found

    def _name_of(self, found: TensorInfo) -> str:
        """`*table[3]` for what the fourth pointer in the argument `table` leads to."""
        start, end = found.storage
        for table in self.tensors:
            if table.dtype in ("int64", "uint64") and table.storage[1] > table.storage[0]:
                pointers = np.ndarray(
                    table.shape,
                    np.int64,
                    buffer=_WORLD,
                    offset=table.address - _FLOOR,
                    strides=tuple(stride * 8 for stride in table.strides),
                )
                places = np.argwhere((pointers >= start) & (pointers < end))
                if len(places):
                    return f"*{table.name}[{', '.join(str(i) for i in places[0])}]"
        return f"unnamed{len(self._keep_alive)}"

    def _explain(self, addresses: np.ndarray, width: int) -> str:
        low, high = int(addresses.min()), int(addresses.max()) + width
        known = "; ".join(f"{t.name} is at {t.storage[0]:#x} to {t.storage[1]:#x}" for t in self.tensors)
        first, last = (f"{address % 2**64:#x}" for address in (low, high))
        where = f"address {first} does" if high - low <= 16 else f"addresses {first} to {last} do"
        return (
            f"{where} not lie in the memory of one of its tensors ({known or 'it has none'}), nor in any "
            "other live tensor. Is a mask missing?"
        )


def _live_tensors() -> Iterator[Any]:
    """Every tensor in this process whose memory a kernel may be given."""
    import torch

    kinds: dict[type, bool] = {}
    for thing in gc.get_objects():
        kind = type(thing)  # not isinstance: that asks the object, and a proxy answers for another
        if kind not in kinds:
            fake = torch._subclasses.FakeTensor
            kinds[kind] = issubclass(kind, torch.Tensor) and not issubclass(kind, fake)
        if kinds[kind] and thing.layout is torch.strided and thing.device.type == "cpu":
            yield thing


def _clipped(addresses: np.ndarray, distance: int) -> np.ndarray:
    """Addresses so far on. Where they would wrap around, something that is no address either."""
    most = 2**62
    return np.clip(addresses, -most, most) + max(-most, min(distance, most))


def effective(mask: Value | None, active: np.ndarray | None, shape: tuple[int, ...]) -> Mask:
    """A mask, in its simplest form, of the lanes that are active."""
    if mask is None or (mask.box is not None and mask.box.full):
        if active is None:
            return None
        return Box((None,) * len(shape), shape).of_lanes(active) if shape else active
    if mask.box is not None:
        return mask.box if active is None else mask.box.of_lanes(active)
    data = mask.data
    if data.dtype != bool:
        data = data.astype(bool)
    if active is not None:
        data = data & active.reshape(-1, *(1,) * len(shape))
    return None if data.all() else data


def _window(form: Affine, lanes: int, step: int, dtype: np.dtype) -> np.ndarray:
    """The memory of blocks whose lanes are evenly apart, as one array."""
    return np.ndarray(
        (lanes, *form.shape),
        dtype,
        buffer=_WORLD,
        offset=int(form.base[0]) - _FLOOR,
        strides=(step, *form.steps),
    )


def _windows(form: Affine, dtype: np.dtype) -> tuple[np.ndarray | None, np.ndarray]:
    """All blocks that start between the first and the last one's start, and which of these are the lanes'."""
    first = int(form.base.min())
    distance = form.base - first
    index, rest = np.divmod(distance, dtype.itemsize)
    if rest.any():
        return None, index
    count = int(index.max()) + 1
    strides = (dtype.itemsize, *form.steps)
    return np.ndarray(
        (count, *form.shape), dtype, buffer=_WORLD, offset=first - _FLOOR, strides=strides
    ), index


def _regions(
    box: Box, lanes: int
) -> list[tuple[slice | np.ndarray, tuple[int, ...], tuple[int, ...]]] | None:
    """The lanes of each different box that is not empty, and its limits; None if there are too many."""
    if box.lanes == 1:
        start, end = (tuple(limit[0].tolist()) for limit in box.limits(1))
        empty = any(e <= s for s, e in zip(start, end, strict=True))
        return [] if empty else [(slice(None), start, end)]
    start, end = box.limits(lanes)
    code = np.zeros(lanes, np.int64)
    for axis, size in enumerate(box.shape):
        code = (code * (size + 1) + start[:, axis]) * (size + 1) + end[:, axis]
    codes = np.unique(code)
    if len(codes) > _MOST_REGIONS:
        return None
    regions = []
    for one in codes:
        which = np.flatnonzero(code == one)
        first, last = tuple(start[which[0]].tolist()), tuple(end[which[0]].tolist())
        if all(e > s for s, e in zip(first, last, strict=True)):
            whole = len(which) == which[-1] - which[0] + 1
            regions.append((slice(which[0], which[-1] + 1) if whole else which, first, last))
    return regions


def _region(form: Affine, which: slice | np.ndarray, start: tuple[int, ...], end: tuple[int, ...]) -> Affine:
    """A part of each of these lanes' blocks."""
    base = form.base if len(form.base) == 1 else form.base[which]
    shift = sum(s * step for s, step in zip(start, form.steps, strict=True))
    shape = tuple(e - s for s, e in zip(start, end, strict=True))
    return Affine(base + shift if shift else base, form.steps, shape, 0, 0)


def _take(addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
    flat, index = _flat(addresses, dtype)
    if flat is not None:
        return flat[index]
    flat, index = _flat(addresses[..., None] + np.arange(dtype.itemsize), np.dtype(np.uint8))
    return flat[index].view(dtype)[..., 0]  # type: ignore[index] - bytes always fit


def _put(addresses: np.ndarray, values: np.ndarray) -> None:
    flat, index = _flat(addresses, values.dtype)
    if flat is None:
        parts = np.arange(values.dtype.itemsize)
        flat, index = _flat(addresses[..., None] + parts, np.dtype(np.uint8))
        values = np.ascontiguousarray(values)[..., None].view(np.uint8)
    flat[index] = values  # type: ignore[index] - bytes always fit


def _flat(addresses: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray | None, np.ndarray]:
    """All memory as one array of this type, and where in it the addresses are; None if they do not fit."""
    size = dtype.itemsize
    rest = int(addresses.flat[0]) % size
    distance = addresses - (_FLOOR + rest)
    if size > 1:
        if (distance & (size - 1)).any():
            return None, addresses
        distance >>= size.bit_length() - 1
    return np.ndarray((2**47 // size - 1,), dtype, buffer=_WORLD, offset=rest), distance
