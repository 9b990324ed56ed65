"""Uninitialized memory: results of `torch.empty`, except the elements that were written since.

While a sanitizer with `initcheck` exists, `torch.empty` and similar functions fill each result with its own
pattern. An element was never written if it still has the pattern, and no kernel has stored to it. A few bytes
may equal the pattern by chance, a longer run of bytes does not.
"""

import ctypes
import dataclasses
import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from triton_viz.core.attributes import set_attributes
from triton_viz.core.records.tensor_info import TensorInfo

_RUN = 8
"""A run of at least this number of bytes that still have the pattern was not written."""
_MULTIPLIER = 0x9E3779B97F4A7C15
"""An odd factor whose multiples have pseudo-random upper bits."""
_AT_ONCE = 1 << 18
_FACTORIES = [
    (torch, "empty"),
    (torch, "empty_like"),
    (torch, "empty_strided"),
    (torch, "empty_permuted"),
    (torch.Tensor, "new_empty"),
    (torch.Tensor, "new_empty_strided"),
]


def _pattern(first: int, size: int) -> np.ndarray:
    """Pseudo-random bytes, from position `first` of a fixed sequence."""
    found = np.empty(size, np.uint8)
    for at in range(0, size, _AT_ONCE):  # each position takes 8 bytes while its byte is computed
        part = found[at : at + _AT_ONCE]
        positions = np.arange(first + at, first + at + len(part), dtype=np.uint64)
        np.right_shift(positions * np.uint64(_MULTIPLIER), np.uint64(56), out=part, casting="unsafe")
    return found


@dataclasses.dataclass
class Fresh:
    """A storage that was created uninitialized."""

    start: int
    end: int
    pattern: int
    """The position in the sequence at which its pattern begins."""
    empty: np.ndarray
    """For each byte, whether it was never written."""
    data: np.ndarray
    """The current bytes, which may be read only while the storage exists."""
    storage: "weakref.ref[torch.UntypedStorage]"

    def update(self) -> None:
        """Find the bytes that PyTorch or other code wrote since the last update."""
        same = self.data == _pattern(self.pattern, len(self.data))
        # Stores of kernels are tracked exactly by `mark`: there may be unwritten elements between them.
        row = np.concatenate([[False], same | ~self.empty, [False]])
        begins, ends = np.flatnonzero(row[1:] != row[:-1]).reshape(-1, 2).T
        long = np.zeros(len(same) + 1, np.int8)
        enough = ends - begins >= min(_RUN, len(same))
        long[begins[enough]], long[ends[enough]] = 1, -1
        self.empty &= same & (np.cumsum(long[:-1], dtype=np.int8) == 1)

    def mark(self, addresses: np.ndarray, width: int) -> np.ndarray:
        """Mark bytes as written. Returns which of them were unwritten before, for `unmark`."""
        here = addresses[(addresses >= self.start) & (addresses + width <= self.end)] - self.start
        bytes_ = (here[:, None] + np.arange(width)).reshape(-1)
        fresh = bytes_[self.empty[bytes_]]
        self.empty[fresh] = False
        return fresh

    def unmark(self, fresh: np.ndarray) -> None:
        """Undo `mark`, because the programs that stored to these bytes will run again."""
        self.empty[fresh] = True

    def unwritten(self, addresses: np.ndarray, width: int) -> np.ndarray:
        """Which of these elements have bytes that were never written."""
        inside = (addresses >= self.start) & (addresses + width <= self.end)
        at = np.where(inside, addresses - self.start, 0)
        found = inside.copy()
        for byte in range(width):
            found &= self.empty[at + byte]
        return found


_patterns = itertools.count(1, 1 << 40)
_fresh: dict[int, Fresh] = {}
"""By the address of the storage."""
_watchers = 0
_patches: set_attributes | None = None


def watch(owner: object) -> None:
    """Track what is created from now on, while the owner is alive."""
    global _watchers, _patches
    _watchers += 1
    weakref.finalize(owner, _unwatch)
    if _watchers == 1:
        _patches = set_attributes([(at, name, _filling(getattr(at, name))) for at, name in _FACTORIES])
        _patches.__enter__()


def _unwatch() -> None:
    global _watchers, _patches
    _watchers -= 1
    if _watchers == 0 and _patches is not None:
        _patches.__exit__(None, None, None)
        _patches = None
        _fresh.clear()


def _filling(factory: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(factory)
    def create(*args: Any, **kwargs: Any) -> Any:
        tensor = factory(*args, **kwargs)
        if type(tensor) is torch.Tensor and tensor.device.type == "cpu" and tensor.layout is torch.strided:
            _fill(tensor)
        return tensor

    return create


def _fill(tensor: torch.Tensor) -> None:
    storage = tensor.untyped_storage()
    start, size = storage.data_ptr(), storage.nbytes()
    known = _fresh.get(start)  # a resized storage has left its memory to others
    if not size or (known is not None and known.end == start + size and known.storage() is storage):
        return
    pattern = next(_patterns)
    # A reference to the storage would keep it alive, and an array of PyTorch's makes it fixed in size.
    memory: Any = (ctypes.c_char * size).from_address(start)
    data = np.ndarray(size, np.uint8, buffer=memory)
    data[:] = _pattern(pattern, size)
    # PyTorch's storage object exists as long as any view.
    _fresh[start] = Fresh(start, start + size, pattern, np.ones(size, bool), data, weakref.ref(storage))
    weakref.finalize(storage, _forget, start, pattern)


def _forget(start: int, pattern: int) -> None:
    """A storage is gone; another one may be there already."""
    if start in _fresh and _fresh[start].pattern == pattern:
        del _fresh[start]


def fresh(info: TensorInfo) -> Fresh | None:
    """The initialization state of a tensor's memory; None if it was never uninitialized."""
    found = _fresh.get(info.storage[0])
    if found is None or found.end != info.storage[1] or (storage := found.storage()) is None:
        return None
    if storage.data_ptr() != found.start or storage.nbytes() != found.end - found.start:
        return None  # it was resized
    found.update()
    return found
