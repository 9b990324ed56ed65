"""Tensors in HBM, SBUF and PSUM, and views of them.

An element is *undefined* before its first write, or if a mask left it out. Instructions may move and use
undefined elements; their results are undefined, too. Storing an undefined element in HBM is an error.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from triton_viz.dsls.nki import indexing, nki_machine
from triton_viz.dsls.nki.dtypes import ElementType, as_dtype, cast, is_float
from triton_viz.dsls.nki.indexing import Picked
from triton_viz.dsls.nki.storage import Storage
from triton_viz.errors import UnsupportedError
from triton_viz.executor.affine import Affine
from triton_viz.executor.value import Value


def as_value(array: np.ndarray, dtype: np.dtype | None = None) -> Value:
    """An array as a value for clients, with floats that NumPy lacks converted to float32."""
    element_type = ElementType(array.dtype if dtype is None else dtype)
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    return Value(array[None], element_type)


class Tensor:
    """A tensor of a kernel, or a view of one. `array` and `undefined` are views of the storage's."""

    __slots__ = ("array", "picked", "spread", "storage", "undefined")
    __array_ufunc__ = None  # so that `array + tensor` calls our operator
    __hash__ = object.__hash__

    def __init__(
        self,
        storage: Storage,
        array: np.ndarray | None = None,
        undefined: np.ndarray | None = None,
        picked: Picked | None = None,
    ):
        self.storage = storage
        self.array = storage.array if array is None else array
        self.undefined = storage.undefined if array is None else undefined
        self.picked = picked
        """The coordinates of the view's elements in `array`; None for all of `array`."""
        self.spread = None if picked is None else picked.spread
        """The shape of masks with the same indices, if it differs."""

    # --- shape, dtype and memory ---

    @property
    def shape(self) -> tuple[int, ...]:
        """The size along each axis."""
        return self.array.shape if self.picked is None else self.picked.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self.array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The element size in bytes."""
        return self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The step from one element to the next along each axis, in elements."""
        return tuple(stride // self.itemsize for stride in self._regular("strides").strides)

    @property
    def memory(self) -> str:
        """HBM, SBUF or PSUM."""
        return self.storage.memory

    @property
    def buffer(self) -> Any:
        """The memory region of `nki.language` that it is in."""
        from triton_viz.dsls.nki.buffers import BUFFERS

        return BUFFERS[self.memory]

    @property
    def name(self) -> str:
        """The argument's or variable's name."""
        return self.storage.name

    @property
    def whole(self) -> bool:
        """Whether it is a tensor, not a part of one."""
        return self.array is self.storage.array and self.picked is None

    def __repr__(self) -> str:
        return f"<{self.memory} tensor {self.name} {self.dtype.name}{list(self.shape)}>"

    def __len__(self) -> int:
        return self.shape[0]

    def is_contiguous(self) -> bool:
        """Whether its elements are contiguous (on the chip: in each partition)."""
        array = self._regular("is_contiguous")
        if self.memory == "HBM" or array.ndim < 2:
            return bool(array.flags.c_contiguous)
        return array.shape[0] == 0 or bool(array[0].flags.c_contiguous)

    def is_indirect(self) -> bool:
        """Whether its elements are not evenly spaced."""
        return self.picked is not None

    def get_pattern(self) -> list[list[int]]:
        """The step (in elements) and the size of each axis."""
        return [[step, n] for step, n in zip(self.strides, self.shape, strict=True)]

    # --- views ---

    def __getitem__(self, key: Any) -> "Tensor":
        if self.ndim == 1 and self.memory != "HBM" and isinstance(key, tuple) and len(key) == 2:
            return self.reshape(len(self), 1)[key]  # one element of each partition
        entries = indexing.parse(key, self.shape)
        if self.picked is not None:
            return self._pick_again(entries)
        if indexing.basic(entries):
            sizes = iter(self.shape)
            own = [(entry, next(sizes)) for entry in entries if entry is not None]
            if all(_inside(entry, size) for entry, size in own):
                index = tuple(_slice(entry) for entry in entries)
                if self.memory != "HBM" and self.array[index].ndim == 1 < self.ndim:
                    index = (*index, None)  # a tile has a free axis
                return self._part(
                    self.array[index], None if self.undefined is None else self.undefined[index]
                )
        found = indexing.picked(entries)
        return self._strided(found) or Tensor(self.storage, self.array, self.undefined, found)

    def _strided(self, found: Picked) -> "Tensor | None":
        """The selection as a strided view, if all elements are inside and evenly spaced."""
        steps = [indexing.steps_of(positions, len(found.shape)) for positions in found.coordinates]
        if 0 in found.shape or any(step is None for step in steps):
            return None
        for positions, n in zip(found.coordinates, self.array.shape, strict=True):
            if positions.min() < 0 or positions.max() >= n:
                return None
        first = tuple(slice(step[0], None) for step in steps if step is not None)

        def view(array: np.ndarray) -> np.ndarray:
            strides = [0] * len(found.shape)
            for step, stride in zip(steps, array.strides, strict=True):
                assert step is not None
                strides = [total + s * stride for total, s in zip(strides, step[1], strict=True)]
            return np.lib.stride_tricks.as_strided(array[first], found.shape, strides)

        part = self._part(view(self.array), None if self.undefined is None else view(self.undefined))
        part.spread = found.spread
        return part

    def _pick_again(self, entries: indexing.Key) -> "Tensor":
        assert self.picked is not None
        index = tuple(
            _slice(entry) if entry is None or isinstance(entry, int | indexing.Axis) else entry
            for entry in entries
        )
        sizes = iter(self.shape)
        if not all(_inside(entry, next(sizes)) for entry in entries if entry is not None):
            raise IndexError(f"an index that is outside this part, of shape {self.shape}, of {self.name}")
        positions = [np.broadcast_to(c, self.shape)[index] for c in self.picked.coordinates]
        return Tensor(self.storage, self.array, self.undefined, Picked(tuple(positions), positions[0].shape))

    def _part(self, array: np.ndarray, undefined: np.ndarray | None) -> "Tensor":
        return Tensor(self.storage, array, undefined)

    def _regular(self, what: str) -> np.ndarray:
        if self.picked is not None:
            raise UnsupportedError(
                f"{what} of a part of {self.name} whose elements are not regularly spaced, or out of bounds"
            )
        return self.array

    def _view(self, what: str, view: Any) -> "Tensor":
        """A view with the same elements in another arrangement. Raises an error if that requires a copy."""
        array = self._regular(what)
        try:
            undefined = None if self.undefined is None else view(self.undefined)
            made = view(array)
        except ValueError as error:
            raise UnsupportedError(f"{what} of {self!r}: {error}") from None
        if array.size and not np.shares_memory(made, array):
            raise UnsupportedError(f"{what} of {self!r} would have to move elements: copy it first")
        return self._part(made, undefined)

    def reshape(self, *shape: Any) -> "Tensor":
        """The same elements in another shape."""
        size = _sizes(shape)
        return self._view("reshape", lambda array: array.reshape(size))

    def permute(self, *dims: Any) -> "Tensor":
        """A view with the axes in another order."""
        order = _sizes(dims)
        return self._view("permute", lambda array: array.transpose(order))

    def broadcast_to(self, *shape: Any) -> "Tensor":
        """A view that is repeated along axes of length one."""
        size = _sizes(shape)
        if self.ndim == 1 < len(size) and self.memory != "HBM":  # one element of each partition
            return self.reshape(len(self), *(1,) * (len(size) - 1)).broadcast_to(size)
        return self._view("broadcast_to", lambda array: np.broadcast_to(array, size))

    def broadcast(self, dim: int, size: int) -> "Tensor":
        """A view that is repeated along one axis of length one."""
        return self.broadcast_to((*self.shape[:dim], size, *self.shape[dim + 1 :]))

    def expand_dims(self, axis: Any) -> "Tensor":
        """A view with new axes of length one."""
        return self._view("expand_dims", lambda array: np.expand_dims(array, axis))

    expand_dim = expand_dims

    def squeeze_dim(self, dim: int) -> "Tensor":
        """A view without an axis of length one."""
        return self._view("squeeze_dim", lambda array: array.squeeze(dim))

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> "Tensor":
        """A view with one axis split into several."""
        sizes = list(shape)
        if -1 in sizes:
            rest = math.prod(n for n in sizes if n != -1)
            sizes[sizes.index(-1)] = self.shape[dim] // max(rest, 1)
        return self.reshape((*self.shape[:dim], *sizes, *self.shape[dim + 1 :]))

    def flatten_dims(self, start_dim: int, end_dim: int) -> "Tensor":
        """A view with several axes merged into one."""
        inner = math.prod(self.shape[start_dim : end_dim + 1])
        return self.reshape((*self.shape[:start_dim], inner, *self.shape[end_dim + 1 :]))

    def rearrange(
        self,
        src_pattern: Sequence[Any],
        dst_pattern: Sequence[Any],
        fixed_sizes: dict[str, int] | None = None,
    ) -> "Tensor":
        """A view with axes split, reordered and merged by name."""
        groups = [(part,) if isinstance(part, str) else tuple(part) for part in src_pattern]
        sizes = dict(fixed_sizes or {})
        for group, n in zip(groups, self.shape, strict=True):
            unknown = [name for name in group if name not in sizes]
            known = math.prod(sizes[name] for name in group if name in sizes)
            if len(unknown) > 1:
                raise UnsupportedError(f"rearrange: give the sizes of all but one of {group}")
            for name in unknown:
                sizes[name] = n // max(known, 1)
        names = [name for group in groups for name in group]
        wanted = [(part,) if isinstance(part, str) else tuple(part) for part in dst_pattern]
        order = [names.index(name) for group in wanted for name in group]
        split = self.reshape([sizes[name] for name in names]).permute(order)
        return split.reshape([math.prod(sizes[name] for name in group) for group in wanted])

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> "Tensor":
        """A part along one axis."""
        return self[(*[slice(None)] * dim, slice(start, end, step))]

    def select(self, dim: int, index: Any) -> "Tensor":
        """One index along an axis, which is dropped."""
        if isinstance(index, Tensor):
            index = int(index.as_index().reshape(-1)[0])
        return self[(*[slice(None)] * dim, index)]

    def vector_select(self, dim: int, vector_offset: "Tensor") -> "Tensor":
        """A view with a separate index along the first axis for each partition."""
        if dim != 0:
            raise UnsupportedError("vector_select is along axis 0")
        return self[vector_offset.as_index().reshape(-1)]

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: Any = None,
        vector_offset: "Tensor | None" = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> "Tensor":
        """An access pattern: for each axis a step and a size, in elements from the view's first."""
        here = self._regular("ap")
        root = Tensor(self.storage)
        first = here.__array_interface__["data"][0] - root.array.__array_interface__["data"][0]
        if dtype is not None:
            root = root.view(dtype)
        shape = tuple(int(n) for _, n in pattern)
        flat = np.full((1,) * len(shape), first // root.itemsize + (offset or 0), np.int64)
        for axis, (step, n) in enumerate(pattern):
            flat = flat + (np.arange(n, dtype=np.int64) * step).reshape(-1, *(1,) * (len(shape) - axis - 1))
        stride = self.strides[indirect_dim]
        if vector_offset is not None:
            chosen = vector_offset.as_index().T.reshape(-1)[: shape[0]]
            outer = np.arange(shape[0], dtype=np.int64) * pattern[0][0]
            flat = flat + (chosen * stride - outer).reshape(-1, *(1,) * (len(shape) - 1))
        elif scalar_offset is not None:
            if isinstance(scalar_offset, Tensor):
                scalar_offset = scalar_offset.as_index().reshape(-1)[0]
            flat = flat + int(scalar_offset) * stride
        array = root.array
        coordinates: list[np.ndarray] = []
        for axis in range(array.ndim):  # elements outside are reported along the first axis
            position, flat = np.divmod(flat, max(math.prod(array.shape[axis + 1 :]), 1))
            coordinates.append(position)
        found = Picked(tuple(coordinates), shape)
        return root._strided(found) or Tensor(root.storage, array, root.undefined, found)

    def view(self, dtype: Any) -> "Tensor":
        """The same bytes as another type."""
        wanted = as_dtype(dtype)
        array = self._regular("view")
        try:
            made = array.view(wanted)
        except ValueError as error:
            raise UnsupportedError(f"view of {self!r} as {wanted.name}: {error}") from None
        if self.undefined is None or made.shape == array.shape:
            return self._part(made, self.undefined)
        self.undefined[...] = False  # elements of different sizes: undefined elements are not tracked
        return self._part(made, None)

    reinterpret_cast = view

    def assert_shape(self, *shape: Any) -> "Tensor":
        """Returns the tensor. Raises an error unless it has this shape."""
        if self.shape != _sizes(shape):
            raise AssertionError(f"{self.name} is of shape {self.shape}, not {_sizes(shape)}")
        return self

    # --- elements ---

    def read(self, mask: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None]:
        """The elements, and which of them are undefined (None for none). Masked-off elements are
        undefined."""
        if self.picked is None:
            values, undefined = self.array, self.undefined
        else:
            keep = self.checked(mask)
            at = self.picked.clipped(self.array.shape)
            values = np.broadcast_to(self.array[at], self.shape)
            undefined = None if self.undefined is None else np.broadcast_to(self.undefined[at], self.shape)
            if keep is not None:
                mask = keep
        if undefined is not None and not undefined.any():
            undefined = None
        if mask is not None and not mask.all():
            undefined = ~mask if undefined is None else ~mask | undefined
        return values, undefined

    def write(
        self, values: np.ndarray, undefined: np.ndarray | None = None, mask: np.ndarray | None = None
    ) -> None:
        """Write values to its elements, where the mask is true."""
        values = cast(values, self.dtype)
        if self.picked is None:
            at: Any = ... if mask is None else np.broadcast_to(mask, self.shape)
            self.array[at] = values if mask is None else np.broadcast_to(values, self.shape)[at]
            if self.undefined is not None:
                left = False if undefined is None else np.broadcast_to(undefined, self.shape)
                self.undefined[at] = left if mask is None or left is False else left[at]
            return
        keep = self.checked(mask)
        keep = np.ones(self.shape, bool) if keep is None else keep
        positions = tuple(np.broadcast_to(c, self.shape)[keep] for c in self.picked.coordinates)
        self.array[positions] = np.broadcast_to(values, self.shape)[keep]
        if self.undefined is not None:
            left = False if undefined is None else np.broadcast_to(undefined, self.shape)[keep]
            self.undefined[positions] = left

    def checked(self, mask: np.ndarray | None) -> np.ndarray | None:
        """The mask without elements outside of the tensor, which are reported; None for all elements."""
        if self.picked is None:
            return mask
        inside = self.picked.inside(self.array.shape)
        asked = inside if mask is None else np.broadcast_to(mask, self.shape)
        if not inside.all():
            bad = ~inside if mask is None else asked & ~inside
            if bad.any():
                nki_machine.current().report_outside(self, bad, mask)
            return asked & inside
        return None if mask is None else asked

    def as_index(self) -> np.ndarray:
        """Its elements as indices into another tensor."""
        nki_machine.current().use(self)
        values, undefined = self.read()
        if undefined is not None:
            nki_machine.current().report_undefined(self, undefined, "as an index")
        if is_float(values.dtype):
            raise UnsupportedError(f"{self.name} holds {values.dtype.name}; indices are integers")
        return values.astype(np.int64)

    def pointers(self) -> Value:
        """The address of each element."""
        address = self.array.__array_interface__["data"][0]
        element_type = ElementType(self.dtype)
        if self.picked is None:
            steps, shape = self.array.strides, self.array.shape
            form = Affine(np.array([address]), tuple(steps), shape, 0, 2**62)
            return Value(None, element_type, affine=form)
        total: Any = np.full((1,) * len(self.shape), address, np.int64)
        for positions, stride in zip(self.picked.coordinates, self.array.strides, strict=True):
            total = total + positions * stride
        regular = indexing.steps_of(total, len(self.shape))
        if regular is not None and self.shape:
            form = Affine(np.array([regular[0]]), regular[1], self.shape, 0, 2**62)
            return Value(None, element_type, affine=form)
        return Value(np.broadcast_to(total, self.shape)[None], element_type)

    # --- Python's operators are in operators.py ---

    def __bool__(self) -> bool:
        values, _ = self.read()
        return bool(values.all())

    def __iter__(self) -> Iterable["Tensor"]:  # otherwise Python would index without end
        return iter([self[i] for i in range(self.shape[0])])


def _inside(entry: Any, size: int) -> bool:
    if isinstance(entry, indexing.Axis):
        return entry.inside(size)
    if isinstance(entry, np.ndarray):
        return bool(((entry >= 0) & (entry < size)).all())
    return 0 <= entry < size


def _slice(entry: Any) -> Any:
    if isinstance(entry, indexing.Axis):
        return slice(entry.start, entry.start + entry.step * entry.count, entry.step)
    return entry


def _sizes(shape: tuple[Any, ...]) -> tuple[int, ...]:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    return tuple(int(n) for n in given)
