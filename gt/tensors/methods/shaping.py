"""Methods that rearrange elements."""

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from gt.errors import DimensionError, ShapeError
from gt.ops import shapes
from gt.tensors.api import api
from gt.tensors.base import TensorBase, create, upload
from gt.tensors.generated.methods import GeneratedMethods

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor

Size = SupportsIndex | Sequence[SupportsIndex]
"""A size or a whole shape: `f(2, 3)` and `f((2, 3))` mean the same."""


class ShapeMethods(GeneratedMethods):
    """Methods that change shapes."""

    __slots__ = ()

    def _dim(self, dim: int) -> int:
        """A dimension of this tensor, counted from the front."""
        return shapes.normalize_dim(dim, len(self._value.spec.shape))

    def _some_dims(self, dims: int | Sequence[int]) -> tuple[int, ...]:
        """Dimensions of this tensor, counted from the front, each at most once."""
        normal = tuple(self._dim(dim) for dim in ((dims,) if isinstance(dims, int) else dims))
        for dim in normal:
            if normal.count(dim) > 1:
                raise ShapeError(f"dim {dim} appears multiple times in the list of dims")
        return normal

    # --- the order of dimensions ---

    @api("swapdims")
    def transpose(self, dim0: int, dim1: int) -> "Tensor":
        """This tensor with two dimensions swapped."""
        return self._apply("transpose", dim0=self._dim(dim0), dim1=self._dim(dim1))

    @api()
    def swapaxes(self, axis0: int, axis1: int) -> "Tensor":
        """As `transpose`."""
        return self.transpose(axis0, axis1)

    @api()
    def permute(self, *order: Size, dims: Size | None = None) -> "Tensor":
        """This tensor with its dimensions in another order."""
        wanted = as_shape(order, dims)
        rank = len(self._value.spec.shape)
        if len(wanted) != rank:
            raise ShapeError(
                "permute: number of dimensions in the tensor input does not match the length of the desired "
                f"ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {len(wanted)}"
            )
        normal = tuple(self._dim(dim) for dim in wanted)
        if len(set(normal)) < rank:
            raise ShapeError("permute(): duplicate dims are not allowed.")
        return self._apply("permute", dims=normal)

    @api("moveaxis")
    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> "Tensor":
        """This tensor with some dimensions moved to other positions, the others in their old order."""
        start = (source,) if isinstance(source, int) else tuple(source)
        end = (destination,) if isinstance(destination, int) else tuple(destination)
        if len(start) != len(end):
            raise ShapeError(
                f"movedim: Invalid source or destination dims: source ({list(start)} dims) should contain "
                f"the same number of dims as destination ({list(end)} dims)"
            )
        moved = [self._dim(dim) for dim in start], [self._dim(dim) for dim in end]
        for dims, given, name in zip(moved, (start, end), ("source", "destination"), strict=True):
            if len(set(dims)) < len(dims):
                raise ShapeError(f"movedim: repeated dim in `{name}` ({list(given)})")
        order = [dim for dim in range(len(self._value.spec.shape)) if dim not in moved[0]]
        for to, dim in sorted(zip(moved[1], moved[0], strict=True)):
            order.insert(to, dim)
        return self.permute(order)

    @property
    def T(self) -> "Tensor":
        """This tensor with its dimensions reversed; for a matrix, its transpose."""
        return self.permute(tuple(reversed(range(len(self._value.spec.shape)))))

    @property
    def mT(self) -> "Tensor":
        """The transpose of each matrix of a batch."""
        rank = len(self._value.spec.shape)
        if rank < 2:
            raise ShapeError(
                f"tensor.mT is only supported on matrices or batches of matrices. Got {rank}-D tensor."
            )
        return self.transpose(-2, -1)

    @api()
    def t(self) -> "Tensor":
        """The transpose of a matrix; a vector or a number stays as it is."""
        rank = len(self._value.spec.shape)
        if rank > 2:
            raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is {rank}D")
        return self.transpose(0, 1 if rank == 2 else 0)

    # --- the same elements in another shape ---

    @api()
    def reshape(self, *sizes: Size, shape: Size | None = None) -> "Tensor":
        """The same elements in another shape; one size may be -1."""
        return self._apply("reshape", shape=shapes.reshape(self._value.spec.shape, as_shape(sizes, shape)))

    def view(self, *sizes: Size, size: Size | None = None) -> "Tensor":
        """As `reshape`."""
        return self._apply("reshape", shape=shapes.reshape(self._value.spec.shape, as_shape(sizes, size)))

    def view_as(self, other: "Tensor") -> "Tensor":
        """The same elements in another tensor's shape."""
        return self.reshape(other.shape)

    reshape_as = view_as

    def contiguous(self) -> "Tensor":
        """This tensor: the worker decides its memory format."""
        return self  # type: ignore[return-value] - every TensorBase is a Tensor

    @api()
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> "Tensor":
        """The dimensions from start_dim to end_dim merged into one."""
        shape = self._value.spec.shape
        start, end = self._dim(start_dim), self._dim(end_dim)
        if start > end:
            raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
        return self.reshape(shape[:start] + (math.prod(shape[start : end + 1]),) + shape[end + 1 :])

    @api()
    def ravel(self) -> "Tensor":
        """All elements in one dimension."""
        return self.reshape(-1) if self._value.spec.shape else self.reshape(1)

    @api()
    def unflatten(self, dim: int, sizes: Sequence[int]) -> "Tensor":
        """One dimension split into several; one size may be -1."""
        shape, dim = self._value.spec.shape, self._dim(dim)
        try:
            inner = shapes.reshape((shape[dim],), tuple(sizes))
        except ShapeError:
            raise ShapeError(
                f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
                f"({shape[dim]}) in the input tensor"
            ) from None
        return self.reshape(shape[:dim] + inner + shape[dim + 1 :])

    @api()
    def squeeze(self, dim: int | Sequence[int] | None = None) -> "Tensor":
        """This tensor without its dimensions of size 1, or without those of `dim` that have size 1."""
        shape = self._value.spec.shape
        gone = range(len(shape)) if dim is None else self._some_dims(dim)
        return self.reshape(tuple(n for axis, n in enumerate(shape) if n != 1 or axis not in gone))

    @api()
    def unsqueeze(self, dim: int) -> "Tensor":
        """This tensor with a new dimension of size 1."""
        shape = self._value.spec.shape
        dim = shapes.normalize_dim(dim, len(shape) + 1)
        return self.reshape(shape[:dim] + (1,) + shape[dim:])

    # --- copies of elements ---

    def expand(self, *sizes: Size, size: Size | None = None) -> "Tensor":
        """This tensor repeated along its dimensions of size 1; -1 keeps a size."""
        return self._apply("expand", shape=shapes.expand(self._value.spec.shape, as_shape(sizes, size)))

    @api()
    def expand_as(self, other: "Tensor") -> "Tensor":
        """This tensor repeated to another's shape."""
        return self.expand(other.shape)

    @api()
    def broadcast_to(self, *sizes: Size, size: Size | None = None) -> "Tensor":
        """As `expand`."""
        return self.expand(*sizes, size=size)

    def repeat(self, *counts: Size, repeats: Size | None = None) -> "Tensor":
        """This tensor repeated along each dimension."""
        return self._apply("repeat", repeats=as_shape(counts, repeats))

    @api()
    def tile(self, *counts: Size, dims: Size | None = None) -> "Tensor":
        """As `repeat`; leading dimensions for which no number is given are not repeated."""
        given = as_shape(counts, dims)
        return self.repeat((1,) * (len(self._value.spec.shape) - len(given)) + given)

    @api()
    def repeat_interleave(self, repeats: Any, dim: int | None = None) -> "Tensor":
        """Each element, or each slice along a dimension, repeated.

        `repeats` may be a tensor or a list with a number for each. A tensor is read, so this waits for it.
        """
        if dim is None:
            return self.ravel().repeat_interleave(repeats, 0)
        dim, shape = self._dim(dim), self._value.spec.shape
        counts = np.asarray(repeats)
        if counts.min(initial=0) < 0:
            raise ShapeError("Repeats must be non-negative")
        if counts.size == 1:
            n = int(counts.reshape(()))
            wide = self.unsqueeze(dim + 1).expand(shape[: dim + 1] + (n,) + shape[dim + 1 :])
            return wide.reshape(shape[:dim] + (shape[dim] * n,) + shape[dim + 1 :])
        if counts.shape != (shape[dim],):
            raise ShapeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{counts.size} and input.size({dim}) = {shape[dim]}"
            )
        return self._pick(dim, np.repeat(np.arange(shape[dim]), counts))

    def _pick(self, dim: int, index: np.ndarray) -> "Tensor":
        """The slices at these indices along a dimension."""
        return self._apply("index", upload(self._value.client, index, owned=True), dims=(dim,))

    # --- parts ---

    @api()
    def narrow(self, dim: int, start: int, length: int) -> "Tensor":
        """The part of a dimension that begins at `start`."""
        dim = self._dim(dim)
        size = self._value.spec.shape[dim]
        if not -size <= start <= size:
            raise DimensionError(
                f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
            )
        start = start + size if start < 0 else start
        if length < 0:
            raise ShapeError("narrow(): length must be non-negative.")
        if start + length > size:
            raise ShapeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
        return self._apply(
            "getitem", index=whole(self._value.spec.shape[:dim]) + ((start, start + length, 1),)
        )

    @api()
    def select(self, dim: int, index: int) -> "Tensor":
        """One slice along a dimension, without that dimension."""
        shape = self._value.spec.shape
        if not shape:
            raise DimensionError("select() cannot be applied to a 0-dim tensor.")
        dim = self._dim(dim)
        if not -shape[dim] <= index < shape[dim]:
            raise DimensionError(
                f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}"
            )
        return self._apply("getitem", index=whole(shape[:dim]) + (index % shape[dim],))

    @api()
    def split(self, split_size: int | Sequence[int], dim: int = 0) -> "tuple[Tensor, ...]":
        """This tensor split into pieces of this size (the last may be smaller), or of these sizes."""
        dim = self._dim(dim)
        size = self._value.spec.shape[dim]
        if isinstance(split_size, int):
            if split_size < 0:
                raise ShapeError(f"split expects split_size be non-negative, but got split_size={split_size}")
            if split_size == 0 and size:
                raise ShapeError(
                    f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
                )
            step = max(split_size, 1)
            sizes = [min(step, size - start) for start in range(0, size, step)] or [0]
        else:
            sizes = list(split_size)
            if sum(sizes) != size or min(sizes, default=0) < 0:
                raise ShapeError(
                    f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at "
                    f"dimension {dim}), but got split_sizes={sizes}"
                )
        ends = np.cumsum(sizes).tolist()
        return tuple(self.narrow(dim, end - n, n) for n, end in zip(sizes, ends, strict=True))

    @api()
    def chunk(self, chunks: int, dim: int = 0) -> "tuple[Tensor, ...]":
        """This tensor split into at most `chunks` pieces of one size; the last may be smaller."""
        if chunks < 1:
            raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        dim = self._dim(dim)
        size = self._value.spec.shape[dim]
        return self.split(math.ceil(size / chunks), dim) if size else self.split([0] * chunks, dim)

    @api()
    def unbind(self, dim: int = 0) -> "tuple[Tensor, ...]":
        """The slices along a dimension."""
        dim = self._dim(dim)
        if not self._value.spec.shape:
            raise DimensionError("unbind() cannot be applied to a 0-dim tensor.")
        return tuple(self.select(dim, index) for index in range(self._value.spec.shape[dim]))

    # --- rearranged elements ---

    @api()
    def flip(self, *reversed: Size, dims: Size | None = None) -> "Tensor":
        """This tensor with the elements reversed along some dimensions."""
        return self._apply("flip", dims=self._some_dims(as_shape(reversed, dims)))

    @api()
    def roll(self, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> "Tensor":
        """This tensor with its elements shifted along dimensions, circularly."""
        by = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        if dims is None:
            shape = self._value.spec.shape
            return self.ravel()._apply("roll", shifts=by, dims=(0,) * len(by)).reshape(shape)
        along = (dims,) if isinstance(dims, int) else tuple(dims)
        if len(by) != len(along):
            raise ShapeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(along)}")
        return self._apply("roll", shifts=by, dims=tuple(self._dim(dim) for dim in along))

    @api()
    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> "Tensor":
        """The diagonals of the matrices in two dimensions, as the last dimension."""
        first, second = self._dim(dim1), self._dim(dim2)
        if first == second:
            raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
        shape = self._value.spec.shape
        matrices = self.movedim((first, second), (-2, -1))
        row, column = self._diagonal_indices(shape[first], shape[second], offset)
        return matrices._apply("index", row, column, dims=(len(shape) - 2, len(shape) - 1))

    @api()
    def diag(self, diagonal: int = 0) -> "Tensor":
        """The diagonal of a matrix; or the matrix that has this vector as its diagonal."""
        shape = self._value.spec.shape
        if len(shape) == 2:
            return self.diagonal(diagonal)
        if len(shape) != 1:
            raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {len(shape)}D")
        n, client = shape[0] + abs(diagonal), self._value.client
        zeros = create(client, "full", shape=(n, n), value=0, dtype=self._value.spec.dtype)
        where = self._diagonal_indices(n, n, diagonal)
        return zeros._apply("index_put", self, *where, dims=(0, 1), accumulate=False)

    def _diagonal_indices(self, rows: int, columns: int, offset: int) -> "tuple[Tensor, Tensor]":
        length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
        first, second = (
            create(self._value.client, "arange", shape=(length,), start=max(start, 0), step=1, dtype="int64")
            for start in (-offset, offset)
        )
        return first, second

    @api()
    def trace(self) -> "Tensor":
        """The sum of a matrix's diagonal."""
        shape = self._value.spec.shape
        if len(shape) != 2:
            raise ShapeError(f"trace: expected a matrix, but got tensor with dim {len(shape)}")
        return self.diagonal().sum()

    def pad(self, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> "Tensor":
        """This tensor with elements added before and after, in PyTorch's order: the last dimension's first.

        They are `value` or, for the modes "reflect", "replicate" and "circular", copies of elements inside.
        Negative numbers remove elements.
        """
        shape = self._value.spec.shape
        if len(pad) % 2:
            raise ShapeError("Padding length must be divisible by 2")
        if len(pad) > 2 * len(shape):
            raise ShapeError(
                "Padding length should be less than or equal to two times the input dimension but got "
                f"padding length {len(pad)} and input of dimension {len(shape)}"
            )
        pads = [(0, 0)] * (len(shape) - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2], strict=True))
        if mode != "constant":
            return self._pad_with_own(pads, mode)
        kept = []
        for n, (before, after) in zip(shape, pads, strict=True):
            if n + before + after < 0:
                raise ShapeError(
                    f"The input size {n}, plus negative padding {before} and {after}, resulted in a negative "
                    "output size, which is invalid."
                )
            kept.append((max(0, -before), max(0, -before, n + min(after, 0)), 1))
        this: TensorBase = self
        if any(min(pair) < 0 for pair in pads):
            this = self._apply("getitem", index=tuple(kept))
        positive = tuple((max(before, 0), max(after, 0)) for before, after in pads)
        return this._apply("pad", pads=positive, value=0 if value is None else value)

    def _pad_with_own(self, pads: list[tuple[int, int]], mode: str) -> "Tensor":
        names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
        if mode not in names:
            raise NotImplementedError(f"Unrecognised padding mode {mode}")
        result: Any = self
        for dim, (n, pair) in enumerate(zip(self._value.spec.shape, pads, strict=True)):
            if pair == (0, 0):
                continue
            limit = {"reflect": n - 1, "circular": n}.get(mode)
            if min(pair) < 0 or (limit is not None and max(pair) > limit):
                raise ShapeError(
                    f"Padding size should be less than the corresponding input dimension, but got: padding "
                    f"{pair} at dimension {dim} of input {list(self._value.spec.shape)}"
                )
            result = result._pick(dim, np.pad(np.arange(n), pair, mode=names[mode]))  # type: ignore[call-overload] - a name of np.pad's
        return result


def whole(shape: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """The index that selects these dimensions whole."""
    return tuple((0, n, 1) for n in shape)


def as_shape(sizes: tuple[Size, ...], named: Size | None = None) -> tuple[int, ...]:
    """A shape that was passed as one argument, as several, or by name."""
    if named is not None:
        if sizes:
            raise TypeError(f"a shape was given twice: {sizes} by position, and {named!r} by its name")
        sizes = (named,)
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
    try:
        return tuple(operator.index(n) for n in given)  # type: ignore[arg-type] - it raises on what is none
    except TypeError:
        raise TypeError(f"a shape must be a sequence of integers, but got {given!r}") from None
