"""What a trace is made of: launches, and in each the records of what its programs did.

Everything here is plain data and survives a trip through a file.
"""

import itertools
import math
from typing import Any

import msgspec
import numpy as np

from triton_viz.errors import TraceFileError

FORMAT = "tapestry trace 1"

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


class Op(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """One op that one program executed. A subclass says which, and what it did."""

    program: Program
    call_path: tuple[Site, ...]
    """Where in the source, the kernel's own line first, then the functions it called."""


class Access(Op, frozen=True, tag=True, kw_only=True):
    """Elements of a tensor that were touched. Where the mask is false nothing was."""

    tensor: str
    """Its name in the kernel; empty if the mask is false everywhere."""
    offsets: np.ndarray
    """The distance of each element from the tensor's first, in elements; the block's shape."""
    mask: np.ndarray


class Load(Access, frozen=True, tag=True, kw_only=True):
    """Elements read."""


class Store(Access, frozen=True, tag=True, kw_only=True):
    """Elements written."""


class Atomic(Access, frozen=True, tag=True, kw_only=True):
    """Elements read, changed and written in one step."""


class Dot(Op, frozen=True, tag=True, kw_only=True):
    """A product of two tiles."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    result: tuple[int, ...]


Record = Load | Store | Atomic | Dot
_launches = itertools.count()


class Launch(msgspec.Struct, kw_only=True):
    """One run of one kernel."""

    id: int = msgspec.field(default_factory=lambda: next(_launches))
    kernel: str
    file: str
    first_line: int
    source: str
    grid: Program
    tensors: tuple[TensorInfo, ...]
    records: list[Record]


class _Header(msgspec.Struct):
    format: str


class _Trace(_Header):
    launches: list[Launch]


def save(launches: list[Launch], path: str) -> None:
    """Write launches to one file."""
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(msgspec.msgpack.encode(_Trace(FORMAT, launches), enc_hook=_encode_array))


def load(path: str) -> list[Launch]:
    """Read the launches of a file that `save` wrote."""
    with open(path, "rb") as file:  # noqa: PTH123
        data = file.read()
    try:
        header = msgspec.msgpack.decode(data, type=_Header)
        if header.format != FORMAT:
            raise TraceFileError(f"{path} holds a {header.format!r}, and this release reads {FORMAT!r}")
        trace = msgspec.msgpack.decode(data, type=_Trace, dec_hook=_decode_array)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        if isinstance(error, TraceFileError):
            raise
        raise TraceFileError(f"{path} is not a trace file, or is damaged: {error}") from error
    for launch in trace.launches:
        launch.id = next(_launches)  # an id means something in one program only
        for record in launch.records:
            if isinstance(record, Access) and record.offsets.shape != record.mask.shape:
                raise TraceFileError(f"{path} is damaged: a mask of {launch.kernel} does not fit its offsets")
    return trace.launches


def _encode_array(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    raise NotImplementedError(f"a trace cannot hold a {type(value).__name__}")


def _decode_array(type: type, value: Any) -> np.ndarray:
    dtype, shape, data = value
    if np.dtype(dtype).kind not in "biuf":
        raise ValueError(f"an array of {dtype}")
    return np.frombuffer(data, dtype).reshape(shape)
