"""What a trace is made of: the tensors of a launch, and the ops that its programs executed.

Everything here is plain data and survives a trip through a file.
"""

import math
from typing import Any

import msgspec
import numpy as np


Program = tuple[int, int, int]
"""Which program of the grid: its index along x, y and z."""


class Site(msgspec.Struct, frozen=True):
    """A line of source code."""

    file: str
    line: int
    function: str


class TensorInfo(msgspec.Struct, frozen=True):
    """A tensor argument: its name in the kernel, and where its elements are."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements, as in PyTorch."""
    dtype: str
    address: int
    """Of its first element."""
    itemsize: int
    storage: tuple[int, int]
    """From which address to which reaches the memory it is a view of."""

    @classmethod
    def of(cls, name: str, tensor: Any) -> "TensorInfo":
        """What a trace keeps of a torch tensor."""
        storage = tensor.untyped_storage()
        return cls(
            name=name,
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            dtype=str(tensor.dtype).removeprefix("torch."),
            address=tensor.data_ptr(),
            itemsize=tensor.element_size(),
            storage=(storage.data_ptr(), storage.data_ptr() + storage.nbytes()),
        )

    def elements(self, offsets: np.ndarray) -> np.ndarray:
        """Which element is at each distance from the first, counted in row-major order; -1 where none is.

        The largest stride is taken off first, so transposes, slices and steps come out right. Where strides
        overlap, one distance is several elements, and this is one of them.
        """
        left = offsets.astype(np.int64)
        position = np.zeros_like(left)
        inside = np.ones(left.shape, bool)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] and self.shape[axis] > 1:
                index, left = np.divmod(left, self.strides[axis])
                inside &= (index >= 0) & (index < self.shape[axis])
                position += index * math.prod(self.shape[axis + 1 :])
        return np.where(inside & (left == 0), position, -1)


OPS: dict[str, type["Op"]] = {}
"""Each kind of op by the name that records, files and the page know it by. A new subclass of `Op` adds itself."""


class Op(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """One op that one program executed. A subclass says which, and what it did."""

    program: Program
    call_path: tuple[Site, ...]
    """Where in the source, the kernel's own line first, then the functions it called."""
    iterations: tuple[tuple[int, int], ...] = ()
    """For each loop around it, outermost first: the loop's line, and which iteration this is."""

    def __init_subclass__(cls, **options: Any) -> None:
        OPS[cls.__name__] = cls

    def at(self, program: Program) -> "Op | None":
        """Itself, if it is this program's."""
        return self if self.program == program else None


class Access(Op, frozen=True, tag=True, kw_only=True):
    """Elements of a tensor that were touched. Where the mask is false nothing was."""

    tensor: str
    """Its name in the kernel; empty if the mask is false everywhere. Several, if one op reached into several."""
    offsets: np.ndarray
    """The distance of each element from its tensor's first, in elements; the block's shape."""
    mask: np.ndarray
    values: np.ndarray | None = None
    """What was read or written, if that was asked for."""
    tensors: tuple[str, ...] = ()
    """If the op reached into several tensors: their names, and in `which` the one of each element."""
    which: np.ndarray | None = None


class Load(Access, frozen=True, tag=True, kw_only=True):
    """Elements read."""


class Store(Access, frozen=True, tag=True, kw_only=True):
    """Elements written."""


class Atomic(Access, frozen=True, tag=True, kw_only=True):
    """Elements read, changed and written in one step."""

    operation: str = ""
    """add, max, xchg, cas, ..."""


class Dot(Op, frozen=True, tag=True, kw_only=True):
    """A product of two tiles."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    result: tuple[int, ...]


class Reduce(Op, frozen=True, tag=True, kw_only=True):
    """An axis combined away: a sum, a maximum, ..."""

    combine: str
    axis: int | None
    input: tuple[int, ...]
    result: tuple[int, ...]


class Scan(Op, frozen=True, tag=True, kw_only=True):
    """A running combination along an axis."""

    combine: str
    axis: int
    input: tuple[int, ...]
    reverse: bool = False


class Compute(Op, frozen=True, tag=True, kw_only=True):
    """Arithmetic, a cast, a change of shape."""

    name: str
    inputs: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]


class Other(Op, frozen=True, tag=True, kw_only=True):
    """An op that the registry does not know."""

    name: str
    inputs: tuple[tuple[int, ...], ...]
