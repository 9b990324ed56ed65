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
    positions = np.arange(first, first + size, dtype=np.uint64)
    return (positions * np.uint64(_MULTIPLIER) >> np.uint64(56)).astype(np.uint8)


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
    """The current bytes."""

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
    if not size or start in _fresh:
        return
    data = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
    pattern = next(_patterns)
    data[:] = _pattern(pattern, size)
    memory: Any = (ctypes.c_char * size).from_address(start)  # a reference to the storage would keep it alive
    data = np.ndarray(size, np.uint8, buffer=memory)
    _fresh[start] = Fresh(start, start + size, pattern, np.ones(size, bool), data)
    weakref.finalize(storage, _fresh.pop, start, None)  # PyTorch's storage object exists as long as any view


def fresh(info: TensorInfo) -> Fresh | None:
    """The initialization state of a tensor's memory; None if it was never uninitialized."""
    found = _fresh.get(info.storage[0])
    if found is not None:
        found.update()
    return found
