"""The contents of a storage: a value of the stream, and how views of it are read and written.

A tensor of the device is a plain `torch.Tensor` whose storage has no memory. PyTorch keeps account of
sizes, strides, offsets, views and version counters, as for any device; what the storage holds is a
`Buffer`, kept as an attribute of the storage's Python object, which lives exactly as long as the storage.
In-place ops give a buffer a new value: on the server nothing is ever overwritten.
"""

import itertools
import math
from typing import Any, ClassVar

import torch

from gt.client import session
from gt.client.client import Client
from gt.stream.instructions import Op
from gt.torch.geometry import Geometry, Step, contiguous_strides, is_dense, plan
from gt.torch.sites import site

DEVICE = torch.device("privateuseone:0")
"""The device; `gt.torch.device` renames it to "tapestry"."""

_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_set_storage = torch.ops.aten.set_.source_Storage_storage_offset._handle.redispatch_boxed
_create_empty = torch._C._acc.create_empty_tensor  # type: ignore[attr-defined]
_create_storage = torch._C._construct_storage_from_data_pointer
_addresses = itertools.count(1 << 60, 1 << 32)
"""Storages have addresses of their own: libraries find shared tensors by them. Nothing is there."""


class Layout:
    """A tensor's size, strides and dtype. Equal layouts are one object, so they are compared by identity."""

    __slots__ = ("dtype", "home", "nbytes", "size", "stride")
    _known: ClassVar[dict[tuple[Any, ...], "Layout"]] = {}

    def __new__(cls, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> "Layout":
        """The one layout of this size, these strides and this dtype."""
        known = cls._known.get((size, stride, dtype))
        if known is None:
            known = super().__new__(cls)
            known.size, known.stride, known.dtype = size, stride, dtype
            known.home = Geometry(size, stride, 0)
            if is_dense(size, stride):
                numel = math.prod(size)
            else:
                numel = (
                    1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if math.prod(size) else 0
                )
                known.home = _flat(numel)
            known.nbytes = numel * dtype.itemsize
            if len(cls._known) > 100_000:
                cls._known.clear()
            cls._known[size, stride, dtype] = known
        return known


class Handle:
    """A value on the server, freed there when nothing here refers to it any more."""

    __slots__ = ("client", "id")

    def __init__(self, client: Client, id: int) -> None:
        self.client = client
        self.id = id

    def __del__(self) -> None:
        self.client.emit(self.id)


class Item:
    """One of the results of an op that has several: taken when it is first read."""

    __slots__ = ("all", "index")

    def __init__(self, all: Handle, index: int) -> None:
        self.all = all
        self.index = index


class Buffer:
    """What a storage holds: a value whose elements are all of the storage's, in the order of `home`."""

    __slots__ = ("_views", "dtype", "home", "layout", "value")

    def __init__(
        self, home: Geometry, dtype: torch.dtype, value: "Handle | Item | None", layout: Layout | None = None
    ) -> None:
        self.home = home
        self.dtype = dtype
        self.value = value
        """None if nothing was written yet: then it reads as zeros."""
        self._views: dict[tuple[Geometry, torch.dtype], Handle] | None = None
        self.layout = layout
        """The layout of every tensor with this storage, as long as they all have the same one."""

    def read(self) -> Handle:
        """The value of the whole storage, in the geometry of `home`."""
        value = self.value
        if type(value) is Handle:
            return value
        if value is None:
            dtype = self.dtype
            attrs = {"size": list(self.home.size), "fill_value": _zero(dtype), "dtype": name_of(dtype)}
            value = emit("aten::full", (), attrs)
        else:
            value = _taken(value)
        self.value = value
        return value

    def write(self, value: "Handle | Item") -> None:
        """Replace the contents; `value` has the geometry of `home`."""
        self.value = value
        self._views = None

    def read_view(self, view: Geometry, dtype: torch.dtype) -> Handle:
        """The value of a tensor with this geometry and dtype."""
        if dtype != self.dtype:
            return self._reinterpreted(dtype).read_view(view, dtype)
        if view == self.home:
            return self.read()
        if self._views is None:
            self._views = {}
        found = self._views.get((view, dtype))
        if found is None:
            found = self.read()
            steps = plan(self.home, view)
            if steps is None:
                found = emit("as_strided", (self.in_memory_order(),), _strided(view))
            else:
                for step in steps:
                    found = emit(step.op, (found,), step.attrs)
            self._views[view, dtype] = found
        return found

    def write_view(self, view: Geometry, dtype: torch.dtype, value: "Handle | Item") -> None:
        """Replace the elements of a tensor with this geometry and dtype by a value of its size."""
        if dtype != self.dtype:
            other = self._reinterpreted(dtype)
            other.write_view(view, dtype, value)
            back = other._reinterpreted(self.dtype)
            self.home = back.home
            self.write(back.read())
        elif view.numel == self.home.numel and view.offset == 0 and is_dense(view.size, view.stride):
            self.home = view  # all elements are new: their order is now this tensor's
            self.write(value)
        elif view.numel:
            taken, steps = _taken(value), plan(self.home, view)
            self.write(
                self._scattered_strided(view, taken) if steps is None else self._scattered(steps, taken)
            )

    def _scattered(self, steps: tuple[Step, ...], value: Handle) -> Handle:
        """The home's value in which what the steps compute is replaced."""
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
                # Elements in one place: PyTorch lets only ops pass that write the same to all of them.
                index = [[0, n, 1] for n in step.shape]
                value = emit("getitem", (value,), {"index": index})
        return value

    def _scattered_strided(self, view: Geometry, value: Handle) -> Handle:
        flat = self.in_memory_order()
        flat = emit("as_strided_scatter", (flat, value), _strided(view))
        self.home = _flat(self.home.numel)
        return flat

    @property
    def is_written(self) -> bool:
        """Whether there is anything to read."""
        return self.value is not None

    def in_memory_order(self) -> Handle:
        """The storage's elements as one dimension."""
        value = self.read()
        for step in plan(self.home, _flat(self.home.numel)) or ():
            value = emit(step.op, (value,), step.attrs)
        return value

    def _reinterpreted(self, dtype: torch.dtype) -> "Buffer":
        """The same bytes as elements of another dtype."""
        flat = self.in_memory_order()
        other = emit("aten::view.dtype", (flat,), {"dtype": name_of(dtype)})
        numel = self.home.numel * self.dtype.itemsize // dtype.itemsize
        return Buffer(_flat(numel), dtype, other)


def _taken(value: "Handle | Item") -> Handle:
    return emit("item", (value.all,), {"index": value.index}) if type(value) is Item else value  # type: ignore[return-value]


def _strided(view: Geometry) -> dict[str, Any]:
    return {"size": list(view.size), "stride": list(view.stride), "storage_offset": view.offset}


def _flat(numel: int) -> Geometry:
    return Geometry((numel,), (1,), 0)


def _zero(dtype: torch.dtype) -> Any:
    return False if dtype is torch.bool else 0.0 if dtype.is_floating_point or dtype.is_complex else 0


_names: dict[torch.dtype, str] = {}


def name_of(dtype: torch.dtype) -> str:
    """A dtype's name as it travels: "torch.float32"."""
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = str(dtype)
    return name


# --- instructions ---


def emit(op: str, inputs: "tuple[Handle, ...]", attrs: dict[str, Any] | None) -> Handle:
    """Append an instruction to the stream; the result is the value it will make."""
    client = inputs[0].client if inputs else session.current()
    number = client.next_id()
    client.emit(Op(number, op, tuple([x.id for x in inputs]), attrs or None, site(client)))
    if number >= client.next_flush:
        client.next_flush = number + client.pass_on()
    return Handle(client, number)


# --- tensors ---


def create(layout: Layout, value: "Handle | Item | None") -> torch.Tensor:
    """A new tensor of the device, with a storage of its own."""
    storage: Any = _create_storage(next(_addresses), DEVICE, layout.nbytes)
    size, stride, dtype, home = layout.size, layout.stride, layout.dtype, layout.home
    if home.size is size:
        storage.tapestry = Buffer(home, dtype, value, layout)
        return _set_storage(_CPU, _create_empty(_NO_SIZE, dtype), storage, 0, size, stride)
    buffer = storage.tapestry = Buffer(home, dtype, None)
    if value is not None:
        buffer.write_view(Geometry(size, stride, 0), dtype, value)
    return _set_storage(_CPU, _create_empty(_NO_SIZE, dtype), storage, 0, size, stride)


_NO_SIZE = (0,)


def contiguous(size: tuple[int, ...], dtype: torch.dtype) -> Layout:
    """The layout of a contiguous tensor."""
    return Layout(size, contiguous_strides(size), dtype)


def buffer_of(tensor: torch.Tensor) -> Buffer:
    """What a tensor's storage holds."""
    storage: Any = tensor.untyped_storage()
    try:
        return storage.tapestry
    except AttributeError:
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
    """Conjugate or negate elements if the tensor is such a view of its storage: both ways alike."""
    if tensor.is_conj():
        value = emit("aten::conj_physical", (value,), None)
    return emit("neg", (value,), None) if tensor.is_neg() else value


def write(tensor: torch.Tensor, value: "Handle | Item") -> None:
    """Replace a tensor's elements by a value of its size and dtype."""
    buffer = buffer_of(tensor)
    if buffer.layout is not None:
        buffer.write(value)
    else:
        if tensor.is_conj() or tensor.is_neg():
            value = _flipped(tensor, _taken(value))
        buffer.write_view(geometry_of(tensor), tensor.dtype, value)


def check_distinct(tensor: torch.Tensor) -> None:
    """Raise if elements of a tensor that is about to be written to are in one place."""
    repeated = any(n > 1 and not step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    if repeated and tensor.numel():
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def is_on_device(value: Any) -> bool:
    """Whether this is a tensor of the device."""
    return isinstance(value, torch.Tensor) and value.device.type == DEVICE.type


__all__ = ["Buffer", "Handle", "Item", "contiguous_strides", "create", "emit", "read", "write"]
