"""Data between the CPU and the device."""

import math
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from gt.ops.dtypes import ITEMSIZE
from gt.torch.allocation import CPU_KEYS, DEVICE
from gt.torch.buffers import (
    Handle,
    check_distinct,
    current_client,
    emit,
    emit_aten,
    full,
    is_on_device,
    name_of,
    read,
    write,
    zeros,
)
from gt.torch.kernels import assign, kernel


def upload(tensor: torch.Tensor) -> Handle:
    """A value with a CPU tensor's elements. Dtypes that the stream does not have are sent as bytes.

    An empty tensor, and a single float, need no upload: an op that creates them can be part of a hot path.
    """
    client = current_client()
    tensor = tensor.detach().resolve_conj().resolve_neg()
    dtype, name, numel = tensor.dtype, name_of(tensor.dtype).removeprefix("torch."), tensor.numel()
    if not numel:
        return zeros(tuple(tensor.shape), dtype)
    if name in ITEMSIZE:
        if numel == 1 and dtype.is_floating_point:
            return full(tuple(tensor.shape), tensor.item(), name)
        return Handle(client, client.create(_array(tensor)))
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    value = Handle(client, client.create(flat.numpy()))
    value = emit_aten("aten::view.dtype", (value,), {"dtype": str(dtype)}, (numel,), dtype)
    return emit("reshape", (value,), {"shape": list(tensor.shape)})


def _array(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def fetch(value: Handle) -> np.ndarray:
    """A value's data. Waits."""
    return value.client.fetch(value.id)


def download(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor with a device tensor's elements."""
    if not tensor.numel():
        return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    return download_value(read(tensor), tuple(tensor.shape), tensor.dtype)


def download_value(value: Handle, size: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A CPU tensor with the elements of a value that has this size and dtype. Waits."""
    name = name_of(dtype).removeprefix("torch.")
    if name in ITEMSIZE:
        array = _checked(fetch(value), size, name)
        if name == "bfloat16":
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
        return torch.from_numpy(array)
    numel = math.prod(size)
    value = emit("reshape", (value,), {"shape": [numel]})
    nbytes = numel * dtype.itemsize
    flat = emit_aten("aten::view.dtype", (value,), {"dtype": "torch.uint8"}, (nbytes,), torch.uint8)
    return torch.from_numpy(fetch(flat)).view(dtype).reshape(size)


def _checked(array: np.ndarray, size: tuple[int, ...], name: str) -> np.ndarray:
    """The data of a tensor. Raises RuntimeError if its shape or dtype is not the one that PyTorch expects."""
    if array.shape != size or array.dtype.name != name:
        raise RuntimeError(
            f"this tensor is {name}{list(size)}, but the worker has "
            f"{array.dtype.name}{list(array.shape)} for it: the op that created it is wrong on the "
            "device tapestry. Compute it on the CPU (x.cpu()), and please report it"
        )
    return array


def copy_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """The kernel of `aten::copy_`, to, from and within the device."""
    if is_lazy(src):  # a lazy module's parameter has no shape until it is called
        return self
    if not is_on_device(self):
        return self.copy_(download(src))
    check_distinct(self)
    if not is_on_device(src):
        if src.dtype != self.dtype:
            src = src.to(self.dtype)
        value = upload(src)
        if src.shape != self.shape:
            value = emit("expand", (value,), {"shape": list(self.shape)})
        write(self, value)
    else:
        assign(self, src)
    return self


_cast = kernel("aten::_to_copy")
_composed_copy: Any = torch.ops.aten._to_copy.default._handle.redispatch_boxed


def to_copy(
    self: torch.Tensor,
    *,
    device: torch.device | None = None,
    memory_format: torch.memory_format | None = None,
    dtype: torch.dtype | None = None,
    non_blocking: bool = False,
    **rest: Any,
) -> torch.Tensor:
    """The kernel of `Tensor.to`, where a tensor is on the device or goes there."""
    if is_on_device(self) and (device is None or device.type == DEVICE.type):
        return _cast(self, dtype=dtype or self.dtype, device=device, memory_format=memory_format)
    # PyTorch would make a tensor in pinned memory if the copy may be non-blocking: a download waits.
    return _composed_copy(CPU_KEYS, self, dtype=dtype, device=device, memory_format=memory_format, **rest)


def local_scalar_dense(self: torch.Tensor) -> Any:
    """The kernel of `Tensor.item()`."""
    return download(self).item()
