"""The ops that compute `x[key]`.

As in PyTorch, and unlike in NumPy, numbers and slices are applied first, and arrays index the result. So
`x[0, :, [1, 2]]` is `x[0][:, [1, 2]]`.

A mask is an index by the positions of its true elements. Their number is part of a shape, so a mask that is a
tensor is read, which waits for it.
"""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gt.client.client import Client
from gt.errors import DimensionError
from gt.ops.indexing import array_region, region
from gt.tensors.base import TensorBase, upload

Pick = TensorBase | np.ndarray
"""Positions along a dimension: in a tensor, or in an array of the client."""


class Step(NamedTuple):
    """One op, which reads a part of the previous step's result."""

    attrs: dict[str, Any]
    """`index` for a basic index; `dims` for arrays."""
    picks: tuple[TensorBase, ...] = ()

    def region(self, x: TensorBase) -> tuple[int, ...]:
        """The shape of this step's result."""
        shape = x._value.spec.shape
        if not self.picks:
            return region(shape, self.attrs["index"])
        return array_region(shape, self.attrs["dims"], [pick._value.spec for pick in self.picks])

    def get(self, x: Any) -> Any:
        """The result of this step."""
        return x._apply("index" if self.picks else "getitem", *self.picks, **self.attrs)

    def put(self, x: Any, y: Any) -> Any:
        """The tensor with the part that this step reads replaced by a tensor or a number."""
        value = () if isinstance(y, bool | int | float) else (y,)
        number = {} if value else {"value": y}
        if not self.picks:
            return x._apply("setitem", *value, **self.attrs, **number)
        return x._apply("index_put", *value, *self.picks, **self.attrs, accumulate=False, **number)


def get(x: Any, key: Any) -> Any:
    """`x[key]`"""
    for step in steps(x, key):
        x = step.get(x)
    return x


def put(x: Any, key: Any, y: Any) -> Any:
    """The value of x after `x[key] = y`."""
    path, places = steps(x, key), [x]
    for step in path[:-1]:
        places.append(step.get(places[-1]))
    if isinstance(y, TensorBase):
        # A value may have more dimensions than the indexed part, if they have size 1.
        shape, rank = y._value.spec.shape, len(path[-1].region(places[-1]))
        extra = max(len(shape) - rank, 0)
        if extra and shape[:extra] == (1,) * extra:
            y = y._apply("reshape", shape=shape[extra:])
    for step, place in zip(reversed(path), reversed(places), strict=True):
        y = step.put(place, y)
    return y


def steps(x: TensorBase, key: Any) -> list[Step]:
    """The rows that read `x[key]`, in order."""
    shape, client = x._value.spec.shape, x._value.client
    entries = [_entry(entry) for entry in (key if isinstance(key, tuple) else (key,))]
    taken = sum(_dimensions_taken(entry) for entry in entries)
    if taken > len(shape):
        if not shape:
            raise DimensionError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a number"
            )
        raise DimensionError(f"too many indices for tensor of dimension {len(shape)}")

    basic: list[Any] = []
    picks: list[tuple[int, Pick]] = []  # with the dimension in the result of `basic`
    axis, left = 0, len(shape) - taken
    for entry in entries:
        dim = sum(not isinstance(e, int) for e in basic)
        if entry is None:
            basic.append(None)
        elif entry is Ellipsis:
            basic += [(0, n, 1) for n in shape[axis : axis + left]]
            axis, left = axis + left, 0
        elif isinstance(entry, bool):
            basic.append(None)
            picks.append((dim, np.zeros(int(entry), np.int64)))
        elif isinstance(entry, int):
            basic.append(_position(entry, axis, shape[axis]))
            axis += 1
        elif isinstance(entry, slice):
            basic.append(_range(entry, shape[axis]))
            axis += 1
        else:
            if _dtype(entry) in ("bool", "uint8"):
                found = _true_positions(entry, axis, shape)
            else:
                found = [_checked(entry, axis, shape[axis])]
            basic += [(0, n, 1) for n in shape[axis : axis + len(found)]]
            picks += enumerate(found, dim)
            axis += len(found)

    while axis and basic and basic[-1] == (0, shape[axis - 1], 1):
        basic.pop()
        axis -= 1
    path = [Step({"index": tuple(basic)})] if basic or not picks else []
    return path + _array_steps(client, picks)


def _array_steps(client: Client, picks: list[tuple[int, Pick]]) -> list[Step]:
    # A tensor without dimensions is treated as a number, so it is applied before the others.
    arrays, path = [], []
    for dim, pick in picks:
        if isinstance(pick, TensorBase) and not pick._value.spec.shape:
            path.append(Step({"dims": (dim - len(path),)}, (pick,)))
        else:
            arrays.append((dim - len(path), pick))
    if arrays:
        tensors = [p if isinstance(p, TensorBase) else upload(client, p, owned=True) for _, p in arrays]
        path.append(Step({"dims": tuple(dim for dim, _ in arrays)}, tuple(tensors)))
    return path


def _entry(entry: Any) -> Any:
    """An entry of a key as None, Ellipsis, bool, int, slice, array or tensor."""
    if entry is None or entry is Ellipsis or isinstance(entry, bool | int | slice):
        return entry
    if isinstance(entry, TensorBase):
        number = not entry._value.spec.shape and _dtype(entry) in ("bool", "uint8")
        return bool(np.asarray(entry)) if number else entry
    if isinstance(entry, np.bool_):
        return bool(entry)
    if hasattr(entry, "__array__") or (isinstance(entry, Sequence) and not isinstance(entry, str)):
        # Lists inside a list are an array of indices, as in NumPy and, as its warning says, in future
        # PyTorch.
        if isinstance(entry, Sequence) and any(isinstance(e, TensorBase) for e in entry):
            entry = [np.asarray(e) for e in entry]
        array = np.asarray(entry)
        if array.size == 0 and not hasattr(entry, "dtype"):
            array = array.astype(np.int64)
        if array.dtype.kind not in "bui":
            raise DimensionError("tensors used as indices must be long, int, byte or bool tensors")
        if array.ndim == 0:
            return array.item()
        return array if array.dtype in (np.bool_, np.uint8) else array.astype(np.int64)
    try:
        return operator.index(entry)  # type: ignore[arg-type] - it raises on what is none
    except TypeError:
        raise DimensionError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
            f"indices (got {type(entry).__name__})"
        ) from None


def _dtype(entry: Pick) -> str:
    return entry._value.spec.dtype if isinstance(entry, TensorBase) else entry.dtype.name


def _shape(entry: Pick) -> tuple[int, ...]:
    return entry._value.spec.shape if isinstance(entry, TensorBase) else entry.shape


def _dimensions_taken(entry: Any) -> int:
    if entry is None or entry is Ellipsis or isinstance(entry, bool):
        return 0
    if isinstance(entry, int | slice) or _dtype(entry) not in ("bool", "uint8"):
        return 1
    return len(_shape(entry))


def _position(index: int, dim: int, size: int) -> int:
    if not -size <= index < size:
        raise DimensionError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    return index % size


def _range(entry: slice, size: int) -> tuple[int, int, int]:
    if entry.step is not None and entry.step.__index__() < 0:
        raise ValueError("step must be greater than zero")
    start, stop, step = entry.indices(size)
    return start, max(start, stop), step


def _checked(pick: Pick, dim: int, size: int) -> Pick:
    """Check positions in an array; those in a tensor are checked by the worker."""
    if isinstance(pick, np.ndarray) and pick.size:
        for number in (int(pick.min()), int(pick.max())):
            _position(number, dim, size)
    return pick


def _true_positions(mask: Pick, axis: int, shape: tuple[int, ...]) -> list[np.ndarray]:
    size = _shape(mask)
    for offset, (m, n) in enumerate(zip(size, shape[axis:], strict=False)):
        if m != n:
            raise DimensionError(
                f"The shape of the mask {list(size)} at index {offset} does not match the shape of the "
                f"indexed tensor {list(shape)} at index {axis + offset}"
            )
    return [np.ascontiguousarray(positions) for positions in np.nonzero(np.asarray(mask))]
