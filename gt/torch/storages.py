"""PyTorch's functions on storages, for storages that have no memory.

PyTorch saves, pickles and copies tensors by reading their storages, so that tensors that share a storage
still share it afterwards, and loads them by writing to storages. Here the elements are fetched from a worker,
or sent to it.
"""

import functools
import math
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.utils.dlpack
from torch.multiprocessing.reductions import reduce_tensor

from gt.torch.allocation import CPU_KEYS, DEVICE, create_storage, set_storage
from gt.torch.buffers import Buffer, Layout, _flat, buffer_of, emit_aten, geometry_of
from gt.torch.geometry import contiguous_strides
from gt.torch.transfers import download_value, upload

Storage = torch.UntypedStorage

NEW = object.__new__(Layout)
"""The layout of a buffer that no tensor has yet: it takes that of the first."""


def patch_storages() -> None:
    """Make PyTorch treat the device's storages as without memory."""
    for name, function in _METHODS.items():
        setattr(Storage, name, _for_ours(function, getattr(Storage, name)))
    for name in ("__setitem__", "fill_", "resize_", "_byteswap"):
        setattr(Storage, name, _for_ours(_refusing(name), getattr(Storage, name)))
    for name in ("_share_filename_cpu_", "_share_fd_cpu_"):
        setattr(Storage, name, _for_ours(_refuse_sharing, getattr(Storage, name)))
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, _reduce)
    Storage.__new__ = _creating(Storage.__new__)
    Storage.copy_ = _copying(Storage.copy_)
    Storage.to = _moving(Storage.to)
    for name in ("_to_dlpack", "_to_dlpack_versioned"):
        setattr(torch._C, name, _exporting(getattr(torch._C, name)))
    torch.to_dlpack = torch.utils.dlpack.to_dlpack = torch._C._to_dlpack  # type: ignore


# --- reading and writing ---


def _for_ours(function: Any, method: Any) -> Any:
    """A method that calls another function for storages of the device."""

    @functools.wraps(method)
    def call(self: Storage, *args: Any, **kwargs: Any) -> Any:
        return (function if self.device.type == DEVICE.type else method)(self, *args, **kwargs)

    return call


def _buffer(storage: Any) -> Buffer:
    try:
        return storage.tapestry
    except AttributeError:
        storage.tapestry = Buffer(_flat(storage.nbytes()), torch.uint8, None, NEW)
        return storage.tapestry


def _cpu(storage: Storage) -> Storage:
    """A storage on the CPU with the same bytes. Waits."""
    buffer = _buffer(storage)
    return download_value(buffer.in_memory_order(), (buffer.base.numel,), buffer.dtype).untyped_storage()


def _clone(storage: Storage) -> Storage:
    """A storage with the same contents: they are one value until one of the storages is written to."""
    buffer = _buffer(storage)
    made: Any = create_storage(storage.nbytes())
    made.tapestry = Buffer(buffer.base, buffer.dtype, buffer.value, NEW)
    return made


def _write(storage: Storage, contents: Storage) -> None:
    """Give a storage the bytes of one on the CPU."""
    buffer = _buffer(storage)
    new = Buffer(_flat(contents.nbytes()), torch.uint8, upload(_bytes(contents)))
    buffer.write(new.read_view(buffer.base, buffer.dtype))


def _bytes(storage: Storage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)


def _set_from_file(storage: Storage, *args: Any) -> Storage:
    contents: Any = Storage(storage.nbytes(), device="cpu")
    _write(storage, contents._set_from_file(*args))
    return storage


_METHODS: dict[str, Any] = {
    "cpu": _cpu,
    "clone": _clone,
    "new": lambda self: create_storage(0),
    "tolist": lambda self: _cpu(self).tolist(),
    "__getitem__": lambda self, index: _cpu(self)[index],
    "_write_file": lambda self, *args: _cpu(self)._write_file(*args),
    "_set_from_file": _set_from_file,
}
"""By name: methods of storages of the device."""


def _refusing(name: str) -> Any:
    def refuse(self: Storage, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"UntypedStorage.{name}: storages of the device tapestry have no memory in this process. "
            "Use the tensor: tensor.cpu(), tensor.copy_(), tensor.resize_(). In place of PyTorch's "
            'fully_shard: gt.torch.shard(model, "fsdp")'
        )

    return refuse


def _exporting(to_dlpack: Any) -> Any:
    """A function that gives a tensor's memory to another library, and refuses tensors that have none."""

    @functools.wraps(to_dlpack)
    def call(data: torch.Tensor, **kwargs: Any) -> Any:
        if data.device.type == DEVICE.type:
            raise BufferError(
                "DLPack: tensors of the device tapestry have no memory in this process that another library "
                "could read. Export a copy: tensor.cpu()"
            )
        return to_dlpack(data, **kwargs)

    return call


def _refuse_sharing(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "parameters and storages of the device tapestry cannot be shared with another process: they would "
        "be copies. Make the model there, and pass its state_dict()"
    )


def _reduce(tensor: torch.Tensor) -> Any:
    """A tensor as it is sent to another process, for example by a DataLoader: as its elements."""
    if tensor.device.type != DEVICE.type:
        return reduce_tensor(tensor)
    if tensor.requires_grad:
        _refuse_sharing()
    return _from_cpu, (tensor.cpu(),)


def _from_cpu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(DEVICE)


def _creating(new: Any) -> Any:
    """`UntypedStorage(nbytes, device=...)`, also on the device."""

    @functools.wraps(new)
    def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None or torch.device(device).type != DEVICE.type:
            return new(cls, *args, **kwargs)
        contents = new(cls, *args, **{**kwargs, "device": "cpu"})
        made = create_storage(contents.nbytes())
        if args and not isinstance(args[0], int):
            _write(made, contents)
        return made

    return call


def _copying(copy_: Any) -> Any:
    """`UntypedStorage.copy_`, also from and to the device."""

    @functools.wraps(copy_)
    def call(self: Storage, source: Storage, non_blocking: Any = None) -> Storage:
        source = source.cpu()  # itself, if it is on the CPU
        if self.device.type != DEVICE.type:
            return copy_(self, source)
        _write(self, source)
        return self

    return call


def _moving(to: Any) -> Any:
    """`UntypedStorage.to`, also to the device: `torch.load` moves storages and makes tensors of them."""

    @functools.wraps(to)
    def call(self: Storage, *, device: Any, non_blocking: bool = False) -> Any:
        if torch.device(device).type != DEVICE.type or self.device.type == DEVICE.type:
            return to(self, device=device, non_blocking=non_blocking)
        made: Any = create_storage(self.nbytes())
        made.tapestry = Buffer(_flat(self.nbytes()), torch.uint8, upload(_bytes(self.cpu())), NEW)
        return made

    return call


# --- tensors in storages ---


def set_(self: torch.Tensor, source: Any, *geometry: Any) -> torch.Tensor:
    """The kernel of `Tensor.set_` with a storage."""
    buffer = _buffer(source)
    is_first = buffer.layout is NEW
    buffer.layout = buffer_of(self).layout = None
    size = (buffer.base.numel * buffer.dtype.itemsize // self.dtype.itemsize,)
    set_storage(CPU_KEYS, self, source, *(geometry or (0, size, (1,))))
    if is_first:
        _adopt(self, buffer)
    return self


def _adopt(tensor: torch.Tensor, buffer: Buffer) -> None:
    """Keep the contents of a storage in the form that its first tensor reads."""
    layout = Layout(tuple(tensor.shape), tensor.stride(), tensor.dtype)
    view = geometry_of(tensor)
    whole = view == layout.base and layout.base.size is layout.size and tensor.nbytes == _nbytes(buffer)
    if whole:
        if buffer.is_written:
            buffer.write(buffer.read_view(view, tensor.dtype))
        buffer.base, buffer.dtype, buffer.layout = layout.base, tensor.dtype, layout
    elif buffer.dtype != tensor.dtype and buffer.is_written:
        other = buffer._reinterpreted(tensor.dtype)
        buffer.base, buffer.dtype = other.base, other.dtype
        buffer.write(other.read())


def _nbytes(buffer: Buffer) -> int:
    return buffer.base.numel * buffer.dtype.itemsize


def resize_(self: torch.Tensor, size: Any, memory_format: Any = None) -> torch.Tensor:
    """The kernel of `Tensor.resize_`: the storage grows if it must, and its elements stay."""
    size = tuple(size)
    if tuple(self.shape) == size:
        return self
    stride = contiguous_strides(size)
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        stride = torch.empty(size, device="meta", memory_format=memory_format).stride()
    offset = int(self.storage_offset())
    needed = (offset + math.prod(size)) * self.dtype.itemsize if math.prod(size) else 0
    buffer_of(self).layout = None
    storage: Any = self.untyped_storage()
    if needed > storage.nbytes():
        storage = _grown(self, needed)
    return set_storage(CPU_KEYS, self, storage, offset, size, stride)


def _grown(tensor: torch.Tensor, nbytes: int) -> Any:
    """A larger storage for a tensor, which begins with the elements of the smaller one."""
    old = buffer_of(tensor)
    numel = -(-nbytes // old.dtype.itemsize)
    storage: Any = create_storage(numel * old.dtype.itemsize)
    storage.tapestry = Buffer(_flat(numel), old.dtype, None)
    if old.base.numel and old.is_written:
        attrs = {"pad": [0, numel - old.base.numel]}
        value = emit_aten("aten::constant_pad_nd", (old.in_memory_order(),), attrs, (numel,), old.dtype)
        storage.tapestry.write(value)
    return storage
