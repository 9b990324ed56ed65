"""The tensors that a kernel may access, and the live tensors that it may not access."""

import contextlib
import gc
import itertools
import weakref
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.executor import raw_memory


class Storages:
    """The memory that a launch may access. Immutable, so that threads see a consistent state.

    `arguments` are what any pointer may touch; `loaded` are tensors whose address the kernel loaded, each of
    which only pointers that were computed from that address may touch.
    """

    def __init__(self, arguments: tuple[TensorInfo, ...], loaded: dict[int, TensorInfo]):
        self.arguments = arguments
        self.loaded = loaded
        """By the address that was loaded. An argument may be among them."""
        self.adopted = [info for info in loaded.values() if info not in arguments]
        """The loaded ones that are no arguments."""
        spans: list[list[int]] = []
        for start, end in sorted({info.storage for info in arguments if info.storage[0] < info.storage[1]}):
            if spans and start < spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], end)
            else:
                spans.append([start, end])
        self.spans = [(start, end) for start, end in spans]
        self._starts, self._ends = _columns(self.spans)
        roots = sorted(loaded)
        self._roots = np.array(roots, np.int64)
        self._lows, self._highs = _columns([loaded[root].storage for root in roots])

    def holds(self, low: int, high: int) -> bool:
        """Whether all bytes from low up to high are in one argument's storage."""
        return any(start <= low and high <= end for start, end in self.spans)

    def outside(self, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
        """Which spans of bytes are not in an argument's storage."""
        if not self.spans:
            return np.ones(lows.shape, bool)
        position = np.searchsorted(self._starts, lows, side="right") - 1
        return (position < 0) | (highs > self._ends[position])

    def limits(self, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The start and end of the storage of the tensor that starts at each root; 0 and 0 if none does.

        None if no root is a loaded tensor's address.
        """
        if not len(self._roots):
            return None
        position = np.minimum(np.searchsorted(self._roots, roots), len(self._roots) - 1)
        known = self._roots[position] == roots
        if not known.any():
            return None
        return np.where(known, self._lows[position], 0), np.where(known, self._highs[position], 0)

    def with_loaded(self, found: dict[int, TensorInfo]) -> "Storages":
        """The same, and some more tensors whose addresses were loaded."""
        return Storages(self.arguments, {**self.loaded, **found})


def _columns(spans: Iterable[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(list(spans), np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


class LiveTensors:
    """Every torch tensor of this process that is alive, and where it is.

    They are looked for once, when first asked for: that takes as long as a small launch. A tensor that no
    address leads to is asked for its address only, which changes nothing about it: other threads may be using
    it.
    """

    @cached_property
    def _found(self) -> list[tuple[int, int, "weakref.ref[Any]"]]:
        """Where each tensor's storage begins, where the tensor begins, and a reference to it."""
        import torch

        found = []
        with torch._C.DisableTorchFunctionSubclass():  # a subclass may override it
            for tensor in _live_tensors():
                # A subclass may have no device or no memory of its own, and says so with an error.
                with contextlib.suppress(RuntimeError):
                    if tensor.layout is torch.strided and tensor.device.type == "cpu":
                        # data_ptr() would copy a tensor that is to be copied when it is first written
                        address = tensor.const_data_ptr()
                        start = address - tensor.storage_offset() * tensor.element_size()
                        if address:
                            found.append((start, address, weakref.ref(tensor)))
        return found

    @cached_property
    def _by_start(self) -> dict[int, list["weakref.ref[Any]"]]:
        """By the addresses of their first elements, and of their storages' first bytes."""
        starts: dict[int, list[weakref.ref[Any]]] = {}
        for start, address, reference in self._found:
            for first in {start, address}:
                starts.setdefault(first, []).append(reference)
        return starts

    def at(self, addresses: Iterable[int]) -> Iterator[tuple[int, TensorInfo, Any]]:
        """The tensors that start at one of these addresses: address, description, and the tensor itself."""
        for address in addresses:
            for reference in self._by_start.get(address, ()):
                tensor = reference()
                info = None if tensor is None else _described(tensor)
                if info is not None and address in (info.storage[0], info.address):
                    yield address, info, tensor
                    break

    def holding(self, addresses: np.ndarray) -> list[TensorInfo]:
        """Those whose storage holds one of these addresses, one for each storage."""
        found, highest = {}, int(addresses.max())
        for start, _, reference in self._found:
            if start <= highest and start not in found and (tensor := reference()) is not None:
                info = _described(tensor)
                if info is not None:
                    start, end = info.storage
                    if ((addresses >= start) & (addresses < end)).any():
                        found[start] = info
        return list(found.values())


def _described(tensor: Any) -> TensorInfo | None:
    """The description of a tensor; None if it has no memory (any more)."""
    import torch

    with torch._C.DisableTorchFunctionSubclass(), contextlib.suppress(RuntimeError):
        info = TensorInfo.of("another tensor", tensor)
        return info if info.storage[0] < info.storage[1] else None
    return None


def _live_tensors() -> list[Any]:
    """All tensors of this process.

    The objects that Python knows are gone through inside of one call of a C function. Between two steps of
    ours other threads go on, and a tuple that one of them builds is an error there (a SystemError) while we
    hold it, too.
    """
    import torch

    # By their types, not isinstance: that asks the object, and a proxy answers for another.
    kinds = {id(kind) for kind in _with_subclasses(torch.Tensor)}
    kinds -= {id(kind) for kind in _with_subclasses(torch._subclasses.FakeTensor)}
    collecting = gc.isenabled()
    gc.disable()  # a collection runs finalizers, and other threads meanwhile
    try:
        return list(_objects_of(kinds))
    finally:
        if collecting:
            gc.enable()


def _objects_of(kinds: set[int]) -> Iterator[Any]:
    """The objects of these types, which are given by id.

    They are listed twice, once for their types: without a collection in between, what is new comes last.
    """
    wanted = map(kinds.__contains__, map(id, map(type, _all_objects())))
    found = itertools.compress(_all_objects(), wanted)
    # The rest is gone through as well: a list that is left would hold itself.
    return itertools.chain(found, itertools.compress(wanted, itertools.repeat(False)))


def _all_objects() -> Iterator[Any]:
    """The objects that Python's garbage collector knows, the oldest generation first."""
    return itertools.chain.from_iterable(map(gc.get_objects, (2, 1, 0)))


def _with_subclasses(kind: type) -> Iterator[type]:
    yield kind
    for inner in type.__subclasses__(kind):
        yield from _with_subclasses(inner)


def named_after_table(
    found: TensorInfo, address: int, tables: Iterable[TensorInfo], number: int
) -> TensorInfo:
    """A loaded tensor under the name `*table[3]`, if the fourth number in the tensor `table` is its address.

    If the address is nowhere, the name is `unnamed` and a number.
    """
    for table in tables:
        if table.dtype in ("int64", "uint64") and table.storage[0] < table.storage[1]:
            strides = tuple(stride * 8 for stride in table.strides)
            pointers = raw_memory.array_at(table.address, table.shape, np.dtype(np.int64), strides)
            positions = np.argwhere(pointers == address)
            if len(positions):
                name = f"*{table.name}[{', '.join(str(i) for i in positions[0])}]"
                return msgspec.structs.replace(found, name=name)
    return msgspec.structs.replace(found, name=f"unnamed{number}")
