"""The memory that a kernel may access. All accesses of kernels are executed here.

A kernel may access the storages of its arguments. A pointer that was computed from a loaded tensor address
(a grouped matmul reads pointers from a tensor) may access the storage of that tensor (`address_origin.py`).
Every access is checked before it is executed: an invalid pointer raises an error, and never accesses another
tensor or crashes the process.
"""

import gc
import threading
from collections.abc import Callable, Iterable

import numpy as np

from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.errors import AccessError
from triton_viz.executor import raw_memory
from triton_viz.executor.address_origin import LEAST_ADDRESS, Origin
from triton_viz.executor.affine import Affine, Box, apart, spread, wrapped
from triton_viz.executor.storages import LiveTensors, Storages, named_after_table
from triton_viz.executor.value import Value

_MOST_REGIONS = 16
"""With more different boxes than this among the lanes, elements are accessed one by one."""
_MOST_REMEMBERED = 1 << 20
"""The most loaded integers for which a cache holds whether they are addresses."""

Undo = Callable[[], None]
Mask = Box | np.ndarray | None
"""A mask: a box, booleans of shape (L, *shape), or None for all elements."""


class Memory:
    """The storages of one launch: checked loads, stores and atomics over lanes."""

    def __init__(self, tensors: Iterable[TensorInfo]):
        self._storages = Storages(tuple(tensors), {})
        """Immutable: replaced under the lock, read without it."""
        self._lock = threading.RLock()
        self._live = LiveTensors()
        self._looked_for: set[int] = set()
        """A cache: loaded integers, and whether each is a tensor's address."""
        self._keep_alive: list[object] = []
        """The tensors that start at loaded addresses."""

    def release(self) -> None:
        """Drop references to tensors that are not arguments, after the last program."""
        self._keep_alive.clear()

    @property
    def adopted(self) -> list[TensorInfo]:
        """The tensors that are not arguments, and whose addresses the kernel loaded."""
        return self._storages.adopted

    # --- whole blocks ---

    def load(
        self, pointers: Value, mask: Mask, fill: np.ndarray | None, dtype: np.dtype, lanes: int
    ) -> np.ndarray:
        """The values at the pointers, of shape (L, *shape); where the mask is false, the fill value or 0.

        `lanes` is the length of the result's lane axis.
        """
        form, origin = pointers.affine if pointers.shape else None, pointers.origin
        if form is not None and mask is None:
            return self._load_block(form, dtype, origin)
        shape = pointers.shape
        if mask is None:
            addresses = pointers.data
            self._check(addresses, dtype.itemsize, None, origin)
            return raw_memory.take(addresses, dtype)
        result = np.empty((lanes, *shape), dtype)
        result[...] = 0 if fill is None else fill
        if isinstance(mask, Box):
            regions = _regions(mask, lanes) if _by_region(form, origin) else None
            if form is not None and regions is not None:
                try:
                    for which, start, end in regions:
                        region = _region(form, which, start, end)
                        part = self._load_block(region, dtype, _of_lanes(origin, which))
                        result[(which, *map(slice, start, end))] = part
                    return result
                except AccessError:  # of a region: the lanes are looked up below
                    pass
            mask = mask.data()
        keep = np.broadcast_to(mask, result.shape)
        addresses = np.broadcast_to(pointers.data, result.shape)[keep]
        if addresses.size:
            self.check(addresses, dtype.itemsize, keep, origin)
            result[keep] = raw_memory.take(addresses, dtype)
        return result

    def store(
        self, pointers: Value, mask: Mask, values: np.ndarray, lanes: int, log: list[Undo] | None
    ) -> None:
        """Write values of shape (L, *shape). Where lanes write to one address, the last lane wins."""
        form, origin = pointers.affine if pointers.shape else None, pointers.origin
        dtype, shape = values.dtype, pointers.shape
        if form is not None and mask is None:
            return self._store_block(form, values, origin, log)
        if isinstance(mask, Box):
            regions = _regions(mask, lanes) if _by_region(form, origin) else None
            if form is not None and regions is not None:
                try:
                    for which, start, end in regions:
                        part = values[which] if len(values) > 1 else values
                        inside = (slice(None), *map(slice, start, end))
                        region = _region(form, which, start, end)
                        self._store_block(region, part[inside], _of_lanes(origin, which), log)
                    return None
                except AccessError:
                    pass
            mask = mask.data()
        whole = (lanes, *shape)
        addresses, values = np.broadcast_to(pointers.data, whole), np.broadcast_to(values, whole)
        if mask is not None:
            keep = np.broadcast_to(mask, whole)
            addresses, values = addresses[keep], values[keep]
            self.check(addresses, dtype.itemsize, keep, origin)
        else:
            self._check(addresses, dtype.itemsize, None, origin)
        if addresses.size:
            self.scatter(addresses, values, log)
        return None

    def gather(self, addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """The values at checked addresses."""
        return raw_memory.take(addresses, dtype)

    def scatter(self, addresses: np.ndarray, values: np.ndarray, log: list[Undo] | None) -> None:
        """Write to checked addresses, in order."""
        if log is not None:
            before = raw_memory.take(addresses, values.dtype)
            log.append(lambda: raw_memory.put(addresses, before))
        raw_memory.put(addresses, values)

    def check(self, addresses: np.ndarray, width: int, keep: np.ndarray, origin: Origin | None) -> None:
        """Raise an error unless all of these addresses, those of a block where `keep`, may be accessed."""
        if addresses.size:
            self._check(addresses, width, keep, None if origin is None else origin.picked(keep))

    def _load_block(self, form: Affine, dtype: np.dtype, origin: Origin | None) -> np.ndarray:
        regular, together = self._check_block(form, dtype.itemsize, origin)
        return _read_block(form, dtype, regular, together)

    def _store_block(
        self, form: Affine, values: np.ndarray, origin: Origin | None, log: list[Undo] | None
    ) -> None:
        regular, together = self._check_block(form, values.dtype.itemsize, origin)
        if log is not None:
            before = _read_block(form, values.dtype, regular, together)
            log.append(lambda: _write_block(form, before, regular))
        _write_block(form, values, regular)

    # --- checks ---

    def _check_block(self, form: Affine, width: int, origin: Origin | None) -> tuple[bool, bool]:
        """Raise an error unless every element may be accessed.

        The first result is False if an address wrapped around: then the elements have to be accessed one by
        one. The second is whether all memory between the lowest and the highest address is one argument's.
        """
        below, above = spread(form.steps, form.shape)
        base = form.base
        if origin is None:
            low, high = (int(base[0]),) * 2 if len(base) == 1 else (int(base.min()), int(base.max()))
            if self._storages.holds(low + below, high + above + width):
                return True, True
        lows, highs = _clipped(base, below), _clipped(base, above + width)
        if origin is None or origin.per_lane:
            of_lanes = None if origin is None else origin.of_lanes()
            if not self.outside(lows, highs, of_lanes).any():
                return True, False
        self._check_each(form.data(), width, None, origin)
        return False, False

    def _check(
        self, addresses: np.ndarray, width: int, keep: np.ndarray | None, origin: Origin | None
    ) -> None:
        """Raise an error unless every address may be accessed. `keep` selects them from a block's."""
        if origin is None:
            low, high = int(addresses.min()), int(addresses.max()) + width
            if self._storages.holds(low, high):
                return
        self._check_each(addresses, width, keep, origin)

    def holds(self, low: int, high: int, origin: Origin | None = None) -> bool:
        """Whether pointers with this origin may access all bytes from low up to high."""
        if origin is None:
            return self._storages.holds(low, high)
        if any(root.size != len(root) for root in origin.roots):
            return False
        alike = Origin(tuple(root.reshape(len(root), 1) for root in origin.roots))
        return not self.outside(np.array([low]), np.array([high]), alike).any()

    def _check_each(
        self, addresses: np.ndarray, width: int, keep: np.ndarray | None, origin: Origin | None
    ) -> None:
        lows, highs = _clipped(addresses, 0), _clipped(addresses, width)
        bad = self.outside(lows, highs, origin)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            if keep is not None:  # from an index among the kept elements to one in the block
                first = int(np.flatnonzero(keep)[first])
            lane = first // ((addresses if keep is None else keep)[0].size)
            raise AccessError(self._explain(addresses[bad], width, origin), lane=lane)

    def outside(self, lows: np.ndarray, highs: np.ndarray, origin: Origin | None = None) -> np.ndarray:
        """Which spans of bytes pointers with this origin must not access.

        A pointer that was computed from a loaded tensor address may access that tensor's storage only, any
        other pointer the arguments' storages.
        """
        limits = None if origin is None else self._limits(origin)
        if not limits:
            return self._storages.outside(lows, highs)
        inside, loaded = np.zeros(lows.shape, bool), np.zeros(lows.shape, bool)
        for low, high in limits:
            inside = inside | ((low <= lows) & (highs <= high))
            loaded = loaded | (high > 0)
        if not loaded.all():
            inside = inside | (~loaded & ~self._storages.outside(lows, highs))
        return ~inside

    def _limits(self, origin: Origin) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each row of the origin's roots: the bounds of the memory each element may access, or zeros."""
        known = self.resolve(origin)
        storages = self._storages
        rows = () if known is None else (row for root in known.roots for row in root)
        return [found for row in rows if (found := storages.limits(row)) is not None]

    def resolve(self, origin: Origin) -> Origin | None:
        """The origin restricted to tensor addresses; None if there are none.

        From now on the kernel may access the tensors that start at these addresses.
        """
        numbers = np.unique(np.concatenate([np.unique(root) for root in origin.roots]))
        self._adopt(number for number in numbers.tolist() if number >= LEAST_ADDRESS)
        addresses = np.array(sorted(self._storages.loaded), np.int64)
        roots = []
        for root in origin.roots:
            known = np.isin(root, addresses)
            if not known.any():
                continue
            root = root if known.all() else np.where(known, root, 0)
            if len(root) > 1:  # each element's different addresses, largest first
                root = -np.sort(-root, axis=0)
                root[1:][root[1:] == root[:-1]] = 0
                root = -np.sort(-root, axis=0)
                root = root[: int((root != 0).reshape(len(root), -1).any(axis=1).sum())]
            roots.append(root)
        return Origin(tuple(roots)) if roots else None

    def _adopt(self, addresses: Iterable[int]) -> None:
        """Allow pointers that were loaded to access the live tensors that start at these addresses."""
        new = [address for address in addresses if address not in self._looked_for]
        if not new:
            return
        with self._lock:
            found = {}
            # Another thread may have found them in the meantime: a tensor keeps its name.
            new = [address for address in new if address not in self._looked_for]
            for address, info, tensor in self._live.at(new):
                own = next((own for own in self._storages.arguments if own.storage == info.storage), None)
                if own is None:
                    tables = (*self._storages.arguments, *self._storages.adopted, *found.values())
                    own = named_after_table(info, address, tables, len(self._storages.loaded) + len(found))
                found[address] = own
                self._keep_alive.append(tensor)
            if found:
                self._storages = self._storages.with_loaded(found)
            if len(self._looked_for) < _MOST_REMEMBERED:
                self._looked_for |= set(new)

    def loaded_for(self, origin: Origin | None) -> list[TensorInfo]:
        """The tensors whose addresses pointers of this origin were computed from."""
        known = None if origin is None else self.resolve(origin)
        if known is None:
            return []
        numbers = {number for root in known.roots for number in np.unique(root).tolist()}
        return [info for address, info in self._storages.loaded.items() if address in numbers]

    def not_given(self, addresses: np.ndarray) -> list[TensorInfo]:
        """The live tensors that hold one of these addresses and that the kernel may not access."""
        with self._lock:
            own = {info.storage for info in (*self._storages.arguments, *self._storages.adopted)}
            return [info for info in self._live.holding(addresses) if info.storage not in own]

    def _explain(self, addresses: np.ndarray, width: int, origin: Origin | None) -> str:
        low, high = int(addresses.min()), int(addresses.max()) + width
        first, last = (f"{address % 2**64:#x}" for address in (low, high))
        where = f"address {first} is" if high - low <= 16 else f"addresses {first} to {last} are"
        own, what = self.loaded_for(origin), "the tensor whose address was loaded"
        if not own:
            own, what = list(self._storages.arguments), "one of its tensors"
        known = "; ".join(f"{t.name} is at {t.storage[0]:#x} to {t.storage[1]:#x}" for t in own)
        text = f"{where} not in the memory of {what} ({known or 'it has none'})"
        given = [*self._storages.arguments, *self._storages.adopted]
        if names := [info.name for info in given if _any_in(addresses, info.storage)]:
            text += f", but in that of {', '.join(names)}"
        elif others := self.not_given(addresses):
            shapes = ", ".join(f"{list(info.shape)} of {info.dtype}" for info in others[:3])
            text += (
                f". Another live tensor is there ({shapes}), which is reached only if it is an argument, or "
                "if the kernel loads its data_ptr() from one"
            )
        else:
            text += ", nor in any other live tensor"
            if gc.get_freeze_count():
                text += " (those that gc.freeze() has hidden cannot be looked for: call gc.unfreeze() before)"
        return f"{text}. Is a mask missing?"


def _any_in(addresses: np.ndarray, storage: tuple[int, int]) -> bool:
    return bool(((addresses >= storage[0]) & (addresses < storage[1])).any())


def _clipped(addresses: np.ndarray, distance: int) -> np.ndarray:
    """Addresses plus a distance. A sum that would wrap around is clipped to an invalid address."""
    most = 2**61  # of two such numbers the sum does not wrap around; no address is as high
    return np.clip(addresses, -most, most) + max(-most, min(distance, most))


def effective(mask: Value | None, active: np.ndarray | None, shape: tuple[int, ...]) -> Mask:
    """A mask restricted to the active lanes, in its simplest form."""
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


def _read_block(form: Affine, dtype: np.dtype, regular: bool, together: bool) -> np.ndarray:
    step = form.lane_step
    if regular and step is not None:
        window = raw_memory.window(form, 1 if step == 0 else len(form.base), step, dtype)
        # Between lanes in two tensors is other memory, and the copy may be there. NumPy looks at the lowest
        # and the highest address only: it would copy what seems to overlap first, again and again, until the
        # stack is full. An index copies each lane by itself.
        return window.copy() if together or len(window) == 1 else window[np.arange(len(window))]
    window, index = raw_memory.windows(form, dtype) if regular else (None, form.base)
    return window[index] if window is not None else raw_memory.take(form.data(), dtype)


def _write_block(form: Affine, values: np.ndarray, regular: bool) -> None:
    step, dtype = form.lane_step, values.dtype
    if regular and step == 0:
        raw_memory.window(form, 1, 0, dtype)[...] = values[-1:]
    elif regular and step is not None and apart((step, *form.steps), (len(form.base), *form.shape)):
        raw_memory.window(form, len(form.base), step, dtype)[...] = values
    else:
        window, index = raw_memory.windows(form, dtype) if regular else (None, form.base)
        if window is not None:
            window[index] = values
        else:
            addresses = form.data()
            raw_memory.put(addresses, np.broadcast_to(values, addresses.shape))


def _by_region(form: Affine | None, origin: Origin | None) -> bool:
    """Whether to access the parts of blocks inside of a box as blocks."""
    return form is not None and (origin is None or origin.per_lane)


def _of_lanes(origin: Origin | None, which: slice | np.ndarray) -> Origin | None:
    """The origin of these lanes."""
    if origin is None:
        return None
    return Origin(tuple(root if root.shape[1] == 1 else root[:, which] for root in origin.roots))


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
    changes = (np.flatnonzero(code[1:] != code[:-1]) + 1).tolist()
    groups: list[slice | np.ndarray]
    if len(changes) < _MOST_REGIONS:  # neighbours with equal boxes, in the order of lanes
        groups = [slice(first, end) for first, end in zip([0, *changes], [*changes, lanes], strict=True)]
    elif len(codes := np.unique(code)) <= _MOST_REGIONS:
        groups = [np.flatnonzero(code == one) for one in codes]
    else:
        return None
    regions = []
    for which in groups:
        lane = which.start if isinstance(which, slice) else which[0]
        first, last = tuple(start[lane].tolist()), tuple(end[lane].tolist())
        if all(e > s for s, e in zip(first, last, strict=True)):
            regions.append((which, first, last))
    return regions


def _region(form: Affine, which: slice | np.ndarray, start: tuple[int, ...], end: tuple[int, ...]) -> Affine:
    """A part of each of these lanes' blocks."""
    base = form.base if len(form.base) == 1 else form.base[which]
    shift = wrapped(sum(s * step for s, step in zip(start, form.steps, strict=True)))
    shape = tuple(e - s for s, e in zip(start, end, strict=True))
    return Affine(base + shift if shift else base, form.steps, shape, 0, 0)
