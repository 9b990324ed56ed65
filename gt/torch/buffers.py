"""The contents of a storage: a value of the stream, and functions that read and write views of it.

A tensor of the device is a plain `torch.Tensor` whose storage has no memory. PyTorch tracks sizes, strides,
offsets, views and version counters, as for any device; the contents of a storage are a `Buffer`, an attribute
of the storage's Python object, which lives exactly as long as the storage. In-place ops give a buffer a new
value: on the server nothing is ever overwritten.
"""

import contextlib
import math
import threading
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import torch

from gt.client import session
from gt.client.client import Client
from gt.ops.aten import RESULTS, result_text
from gt.ops.dtypes import ITEMSIZE
from gt.stream.instructions import Op
from gt.torch.allocation import DEVICE, allocator
from gt.torch.geometry import Geometry, Step, contiguous_strides, is_dense, view_steps
from gt.torch.sites import site


class Layout:
    """A tensor's size, strides and dtype. Equal layouts are one object, so they are compared by identity."""

    __slots__ = ("allocate", "base", "dtype", "size", "stride")
    _known: ClassVar[dict[tuple[Any, ...], "Layout"]] = {}

    def __new__(cls, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> "Layout":
        """The one layout of this size, these strides and this dtype."""
        known = cls._known.get((size, stride, dtype))
        if known is None:
            known = super().__new__(cls)
            known.size, known.stride, known.dtype = size, stride, dtype
            known.base = Geometry(size, stride, 0)
            if is_dense(size, stride):
                numel = math.prod(size)
            else:
                numel = (
                    1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if math.prod(size) else 0
                )
                known.base = _flat(numel)
            known.allocate = allocator(size, stride, dtype, numel * dtype.itemsize)
            if len(cls._known) > 100_000:
                cls._known.clear()
            cls._known[size, stride, dtype] = known
        return known


class Handle:
    """A value on the server, freed there when its last reference in the program is dropped."""

    __slots__ = ("client", "id")

    def __init__(self, client: Client, id: int) -> None:
        self.client = client
        self.id = id

    def __del__(self) -> None:
        self.client.emit(self.id)


class Buffer:
    """The contents of a storage: a value with all its elements, in the geometry `base`."""

    __slots__ = ("_views", "base", "dtype", "layout", "value")

    def __init__(
        self, base: Geometry, dtype: torch.dtype, value: "Handle | None", layout: Layout | None = None
    ) -> None:
        self.base = base
        self.dtype = dtype
        self.value = value
        """None if nothing was written yet: then it reads as zeros."""
        self._views: dict[tuple[Geometry, torch.dtype], Handle] | None = None
        self.layout = layout
        """The layout of every tensor with this storage, as long as they all have the same one."""

    def read(self) -> Handle:
        """The value of the whole storage, in the geometry of `base`."""
        value = self.value
        if type(value) is Handle:
            return value
        self.value = zeros(self.base.size, self.dtype)
        return self.value

    def write(self, value: Handle) -> None:
        """Replace the contents; `value` has the geometry of `base`."""
        self.value = value
        self._views = None

    def read_view(self, view: Geometry, dtype: torch.dtype) -> Handle:
        """The value of a tensor with this geometry and dtype."""
        if dtype != self.dtype:
            return self._reinterpreted(dtype).read_view(view, dtype)
        if view == self.base:
            return self.read()
        if self._views is None:
            self._views = {}
        found = self._views.get((view, dtype))
        if found is None:
            found = self.read()
            steps = view_steps(self.base, view)
            if steps is None:
                found = emit("as_strided", (self.in_memory_order(),), _strided(view))
            else:
                for step in steps:
                    found = emit(step.op, (found,), step.attrs)
            self._views[view, dtype] = found
        return found

    def write_view(self, view: Geometry, dtype: torch.dtype, value: Handle) -> None:
        """Replace the elements of a tensor with this geometry and dtype by a value of its size."""
        if dtype != self.dtype:
            other = self._reinterpreted(dtype)
            other.write_view(view, dtype, value)
            back = other._reinterpreted(self.dtype)
            self.base = back.base
            self.write(back.read())
        elif view.numel == self.base.numel and view.offset == 0 and is_dense(view.size, view.stride):
            self.base = view  # all elements are replaced, so the storage can have this tensor's order
            self.write(value)
        elif view.numel:
            steps = view_steps(self.base, view)
            self.write(
                self._scattered_strided(view, value) if steps is None else self._scattered(steps, value)
            )

    def _scattered(self, steps: tuple[Step, ...], value: Handle) -> Handle:
        """The base's value, with the part that the steps select replaced."""
        before = [self.read()]
        for step in steps[:-1]:
            before.append(emit(step.op, (before[-1],), step.attrs))
        for step, old in zip(reversed(steps), reversed(before), strict=True):
            if step.op == "getitem":
                value = emit("setitem", (old, value), step.attrs)
            elif step.op == "reshape":
                value = emit("reshape", (value,), {"shape": list(step.shape)})
            elif step.op == "permute":
                dims = step.attrs["dims"]
                value = emit("permute", (value,), {"dims": [dims.index(d) for d in range(len(dims))]})
            elif step.op == "transpose":
                value = emit("transpose", (value,), step.attrs)
            else:
                # Several elements at one address: PyTorch allows only ops that write the same value to all.
                index = [[0, n, 1] for n in step.shape]
                value = emit("getitem", (value,), {"index": index})
        return value

    def _scattered_strided(self, view: Geometry, value: Handle) -> Handle:
        flat = self.in_memory_order()
        flat = emit("as_strided_scatter", (flat, value), _strided(view))
        self.base = _flat(self.base.numel)
        return flat

    @property
    def is_written(self) -> bool:
        """Whether the storage was written to."""
        return self.value is not None

    def in_memory_order(self) -> Handle:
        """The storage's elements as one dimension."""
        value = self.read()
        for step in view_steps(self.base, _flat(self.base.numel)) or ():
            value = emit(step.op, (value,), step.attrs)
        return value

    def _reinterpreted(self, dtype: torch.dtype) -> "Buffer":
        """The same bytes as elements of another dtype."""
        flat = self.in_memory_order()
        numel = self.base.numel * self.dtype.itemsize // dtype.itemsize
        other = emit_aten("aten::view.dtype", (flat,), {"dtype": name_of(dtype)}, (numel,), dtype)
        return Buffer(_flat(numel), dtype, other)


def _strided(view: Geometry) -> dict[str, Any]:
    return {"size": list(view.size), "stride": list(view.stride), "storage_offset": view.offset}


def _flat(numel: int) -> Geometry:
    return Geometry((numel,), (1,), 0)


def _zero(dtype: torch.dtype) -> Any:
    return False if dtype is torch.bool else 0.0 if dtype.is_floating_point or dtype.is_complex else 0


_names: dict[torch.dtype, str] = {}


def name_of(dtype: torch.dtype) -> str:
    """A dtype's name in instructions: "torch.float32"."""
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = str(dtype)
    return name


# --- instructions ---


class _Target(threading.local):
    client: Any = None


_target = _Target()


def current_client() -> Client:
    """The client that ops without inputs are issued to."""
    return _target.client or session.current()


@contextlib.contextmanager
def recording_to(recorder: Any) -> Iterator[None]:
    """Issue ops without inputs to a recorder instead of the program's client, in this thread."""
    before, _target.client = _target.client, recorder
    try:
        yield
    finally:
        _target.client = before


def emit(op: str, inputs: "tuple[Handle, ...]", attrs: dict[str, Any] | None) -> Handle:
    """Append an instruction to the stream; returns the value that it will create."""
    client = inputs[0].client if inputs else current_client()
    number = client.next_id()
    client.emit(Op(number, op, tuple([x.id for x in inputs]), attrs or None, site(client)))
    if number >= client.next_flush:
        client.next_flush = number + client.flush_ready()
    return Handle(client, number)


def emit_aten(
    op: str, inputs: "tuple[Handle, ...]", attrs: dict[str, Any], size: Iterable[int], dtype: torch.dtype
) -> Handle:
    """As `emit`, for an op by PyTorch's name, whose result has this size and dtype."""
    text = result_text(size, name_of(dtype).removeprefix("torch."))
    return emit(op, inputs, {**attrs, RESULTS: text})


def full(size: tuple[int, ...], value: Any, dtype: str) -> Handle:
    """A value whose elements are all the same."""
    return emit("full", (), {"shape": list(size), "value": value, "dtype": dtype})


def zeros(size: tuple[int, ...], dtype: torch.dtype) -> Handle:
    """A value of zeros."""
    name = name_of(dtype).removeprefix("torch.")
    if name in ITEMSIZE:
        return full(size, _zero(dtype), name)
    attrs = {"size": list(size), "fill_value": _zero(dtype), "dtype": name_of(dtype)}
    return emit_aten("aten::full", (), attrs, size, dtype)


def items(value: Handle, count: int) -> list[Handle]:
    """The results of an op that has several.

    The `item` ops follow at once, so that no repeated sequence ends with a value that is several tensors,
    which could not be an input or a result of compiled code.
    """
    return [emit("item", (value,), {"index": n}) for n in range(count)]


# --- tensors ---


def create(layout: Layout, value: "Handle | None") -> torch.Tensor:
    """A new tensor of the device, with a storage of its own."""
    tensor = layout.allocate()
    storage: Any = tensor.untyped_storage()
    base, dtype = layout.base, layout.dtype
    if base.size is layout.size:
        storage.tapestry = Buffer(base, dtype, value, layout)
        return tensor
    buffer = storage.tapestry = Buffer(base, dtype, None)
    if value is not None:
        buffer.write_view(Geometry(layout.size, layout.stride, 0), dtype, value)
    return tensor


def contiguous(size: tuple[int, ...], dtype: torch.dtype) -> Layout:
    """The layout of a contiguous tensor."""
    return Layout(size, contiguous_strides(size), dtype)


def buffer_of(tensor: torch.Tensor) -> Buffer:
    """The contents of a tensor's storage."""
    storage: Any = tensor.untyped_storage()
    try:
        return storage.tapestry
    except AttributeError:
        if storage.device.type != DEVICE.type:
            raise RuntimeError(
                f"expected a tensor of the device tapestry, but got one on {tensor.device}"
            ) from None
        numel = storage.nbytes() // tensor.dtype.itemsize
        buffer = storage.tapestry = Buffer(_flat(numel), tensor.dtype, None)
        return buffer


def geometry_of(tensor: torch.Tensor) -> Geometry:
    """Where a tensor's elements are in its storage."""
    return Geometry(tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()))


def layout_of(tensor: torch.Tensor) -> Layout:
    """A tensor's layout."""
    return buffer_of(tensor).layout or Layout(tuple(tensor.shape), tensor.stride(), tensor.dtype)


def read(tensor: torch.Tensor) -> Handle:
    """A tensor's value."""
    buffer = buffer_of(tensor)
    if buffer.layout is not None:
        return buffer.read()
    return _flipped(tensor, buffer.read_view(geometry_of(tensor), tensor.dtype))


def _flipped(tensor: torch.Tensor, value: Handle) -> Handle:
    """Conjugate or negate elements if the tensor is such a view of its storage; the inverse is the same."""
    if tensor.dtype.is_complex and tensor.is_conj():
        value = emit_aten("aten::conj_physical", (value,), {}, tensor.shape, tensor.dtype)
    return emit("neg", (value,), None) if tensor.is_neg() else value


def write(tensor: torch.Tensor, value: Handle) -> None:
    """Replace a tensor's elements by a value of its size and dtype."""
    buffer = buffer_of(tensor)
    if buffer.layout is not None:
        buffer.write(value)
    else:
        if tensor.is_conj() or tensor.is_neg():
            value = _flipped(tensor, value)
        buffer.write_view(geometry_of(tensor), tensor.dtype, value)


def check_distinct(tensor: torch.Tensor) -> None:
    """Raise RuntimeError if a tensor that will be written to has several elements at one address."""
    repeated = any(n > 1 and not step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    if repeated and tensor.numel():
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def is_on_device(value: Any) -> bool:
    """Whether this is a tensor of the device."""
    return isinstance(value, torch.Tensor) and value.device.type == DEVICE.type


__all__ = ["Buffer", "Handle", "contiguous_strides", "create", "emit", "read", "write"]
