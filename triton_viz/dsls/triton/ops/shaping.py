"""Ops that make and reshape blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from triton_viz.dsls.triton.ops.op_traits import origin_rule
from triton_viz.dsls.triton.ops.types import plain
from triton_viz.executor.affine import Affine, Box
from triton_viz.executor.lanes import Lanes, of_active
from triton_viz.executor.value import Value


class ShapeOps:
    """The builder's ops that make and reshape blocks. Affine values and boxes stay compact if possible."""

    ORIGIN_RULE = "moved"
    lanes: Lanes

    def create_make_range(self, type: Any, start: int, stop: int) -> Value:
        """start, start + 1, ... stop - 1."""
        form = Affine(np.array([start], np.int64), (1,), (stop - start,), start, stop - 1)
        return Value(None, tl.int32, affine=form, np_dtype=np.dtype(np.int32))

    @origin_rule("elementwise")
    def create_splat(self, type: Any, arg: Value) -> Value:
        """A block that repeats one value."""
        shape = tuple(type.shape)
        dtype, data = arg.dtype.scalar, arg.data
        if data.dtype.kind == "b":
            bounds = None if data.all() else (np.zeros(len(data), np.int64), np.where(data, shape[0], 0))
            return Value(None, dtype, box=Box((bounds, *(None,) * (len(shape) - 1)), shape))
        form = arg.numbers
        if form is not None:
            return Value(None, dtype, affine=form.broadcast(shape), np_dtype=data.dtype)
        spread = data.reshape(len(data), *(1,) * len(shape))
        return Value(np.broadcast_to(spread, (len(data), *shape)), dtype)

    def create_unsplat(self, arg: Value) -> Value:
        """The only element of a block."""
        return Value(arg.data.reshape(arg.lanes), arg.dtype)

    def create_expand_dims(self, arg: Value, axis: int) -> Value:
        """A block with a new axis of length one."""
        return _moved(arg, lambda form: form.expand_dims(axis), lambda data: np.expand_dims(data, axis + 1))

    @origin_rule("elementwise")
    def create_broadcast(self, arg: Value, shape: Any) -> Value:
        """A block repeated along axes of length one."""
        shape = tuple(int(plain(n)) for n in shape)
        return _moved(
            arg, lambda form: form.broadcast(shape), lambda data: np.broadcast_to(data, (len(data), *shape))
        )

    def create_trans(self, arg: Value, order: Any) -> Value:
        """A block with its axes in another order."""
        order = tuple(int(plain(axis)) for axis in order)
        axes = (0, *(axis + 1 for axis in order))
        return _moved(arg, lambda form: form.transpose(order), lambda data: data.transpose(axes))

    def create_reshape(self, arg: Value, shape: Any, allow_reorder: bool = False) -> Value:
        """The same elements in another shape."""
        shape = tuple(int(plain(n)) for n in shape)
        return Value(arg.data.reshape(arg.lanes, *shape), arg.dtype)

    def create_cat(self, left: Value, right: Value, *_: Any) -> Value:
        """Two blocks, one after the other along the first axis."""
        _check_types("cat", left, right)
        return Value(np.concatenate(_aligned(left.data, right.data), axis=1), left.dtype)

    def create_join(self, left: Value, right: Value) -> Value:
        """Two blocks joined along a new last axis."""
        _check_types("join", left, right)
        return Value(np.stack(_aligned(left.data, right.data), axis=-1), left.dtype)

    def create_split(self, arg: Value) -> tuple[Value, Value]:
        """The two halves of the last axis."""
        return Value(arg.data[..., 0], arg.dtype), Value(arg.data[..., 1], arg.dtype)

    @origin_rule("mixed")
    def create_gather(self, source: Value, index: Value, axis: int) -> Value:
        """Elements picked along an axis."""
        positions = index.data.astype(np.int64)
        size = source.shape[axis]
        bad = (positions < 0) | (positions >= size)
        if bad.any():
            picked = of_active(positions, self.lanes)  # other lanes may hold anything
            if picked.min() < 0 or picked.max() >= size:
                raise IndexError(
                    f"tl.gather picks index {picked.min()} to {picked.max()} of an axis of {size}"
                )
            positions = np.where(bad, 0, positions)
        data, positions = _aligned(source.data, positions)
        return Value(np.take_along_axis(data, positions, axis + 1), source.dtype)

    @origin_rule("none")
    def create_histogram(self, data: Value, bins: int, mask: Value | None = None) -> Value:
        """How often each integer from 0 to bins - 1 occurs in each lane."""
        keep = (data.data >= 0) & (data.data < bins)
        if mask is not None:
            keep = keep & mask.data
        lanes = len(keep)
        rows = np.arange(lanes).reshape(-1, *(1,) * (keep.ndim - 1)) * bins
        at = (np.broadcast_to(data.data, keep.shape) + rows)[keep]
        counts = np.bincount(at, minlength=lanes * bins).reshape(lanes, bins)
        return Value(counts.astype(np.int32), tl.int32)


def _moved(arg: Value, form: Callable[[Any], Any], data: Callable[[np.ndarray], np.ndarray]) -> Value:
    """A block with its axes rearranged, by `form` if it is affine or a box, else by `data`."""
    if arg.affine is not None:
        return Value(None, arg.dtype, affine=form(arg.affine), np_dtype=arg.np_dtype)
    if arg.box is not None:
        return Value(None, arg.dtype, box=form(arg.box))
    return Value(data(arg.data), arg.dtype)


def _check_types(op: str, left: Value, right: Value) -> None:
    """Triton's compiler refuses blocks of two types, which its language layer lets through."""
    if left.dtype.scalar != right.dtype.scalar:
        raise TypeError(f"tl.{op} takes blocks of one type, not of {left.dtype} and {right.dtype}: cast one")


def _aligned(*arrays: np.ndarray) -> list[np.ndarray]:
    """Values broadcast to the same number of lanes."""
    lanes = max(len(array) for array in arrays)
    return [np.broadcast_to(array, (lanes, *array.shape[1:])) for array in arrays]
