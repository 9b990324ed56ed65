"""What PyTorch does with storages, for storages that have no memory.

Saving, pickling and copying a tensor normally reads its storage. PyTorch knows devices whose tensors have
none, and then goes by the tensor: `torch.save` writes a CPU tensor and the device's name, `copy.deepcopy`
clones. A storage of the device itself has nothing that could be read: that is an error, and not a crash.
"""

import functools
import math
from typing import Any

import torch

from gt.torch.buffers import (
    _CPU,
    DEVICE,
    Buffer,
    _addresses,
    _create_storage,
    _flat,
    _set_storage,
    buffer_of,
    emit,
)
from gt.torch.geometry import contiguous_strides

_READING = (
    "__getitem__",
    "__setitem__",
    "tolist",
    "clone",
    "cpu",
    "to",
    "copy_",
    "fill_",
    "resize_",
    "__deepcopy__",
)


def without_memory() -> None:
    """Have PyTorch treat the device's storages as what they are."""
    has_storage = torch._C._has_storage

    def _has_storage(tensor: torch.Tensor) -> bool:
        return not _is_ours(tensor) and has_storage(tensor)

    torch._C._has_storage = _has_storage
    if not torch.cuda.is_available():
        torch.Tensor.pin_memory = _pin_memory
    for name in _READING:
        setattr(torch.UntypedStorage, name, _refusing(name, getattr(torch.UntypedStorage, name)))


def _pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """The tensor itself: uploads copy from any memory. PyTorch would ask the device for an allocator."""
    return self


def _is_ours(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == DEVICE.type


def _refusing(name: str, method: Any) -> Any:
    @functools.wraps(method)
    def call(self: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == DEVICE.type:
            raise RuntimeError(
                f"UntypedStorage.{name}: storages of the device tapestry have no memory in this process. "
                "Use the tensor: tensor.cpu(), tensor.clone(), tensor.resize_()"
            )
        return method(self, *args, **kwargs)

    return call


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
    return _set_storage(_CPU, self, storage, offset, size, stride)


def _grown(tensor: torch.Tensor, nbytes: int) -> Any:
    """A larger storage for a tensor, which begins with what the smaller one held."""
    old = buffer_of(tensor)
    numel = -(-nbytes // old.dtype.itemsize)
    storage: Any = _create_storage(next(_addresses), DEVICE, numel * old.dtype.itemsize)
    storage.tapestry = Buffer(_flat(numel), old.dtype, None)
    if old.home.numel and old.is_written:
        value = emit("aten::constant_pad_nd", (old.in_memory_order(),), {"pad": [0, numel - old.home.numel]})
        storage.tapestry.write(value)
    return storage
