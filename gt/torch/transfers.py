"""Data between the CPU and the device."""

from typing import Any

import numpy as np
import torch

from gt.client import session
from gt.ops.dtypes import ITEMSIZE
from gt.torch.buffers import Handle, check_distinct, emit, is_on_device, name_of, read, write
from gt.torch.kernels import assign


def upload(tensor: torch.Tensor) -> Handle:
    """A value with a CPU tensor's elements. Dtypes that the stream has not travel as bytes."""
    client = session.current()
    tensor = tensor.detach().resolve_conj().resolve_neg()
    dtype, name = tensor.dtype, name_of(tensor.dtype).removeprefix("torch.")
    if name in ITEMSIZE:
        return Handle(client, client.create(_array(tensor)))
    if not tensor.numel():
        return emit("aten::full", (), {"size": list(tensor.shape), "fill_value": 0, "dtype": str(dtype)})
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    value = Handle(client, client.create(flat.numpy()))
    value = emit("aten::view.dtype", (value,), {"dtype": str(dtype)})
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
    name = name_of(tensor.dtype).removeprefix("torch.")
    if not tensor.numel():
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    value = read(tensor)
    if name in ITEMSIZE:
        array = fetch(value)
        if name == "bfloat16":
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
        return torch.from_numpy(array)
    value = emit("reshape", (value,), {"shape": [tensor.numel()]})
    flat = emit("aten::view.dtype", (value,), {"dtype": "torch.uint8"})
    return torch.from_numpy(fetch(flat)).view(tensor.dtype).reshape(tensor.shape)


def copy_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """The kernel of `aten::copy_`, to, from and within the device."""
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


def local_scalar_dense(self: torch.Tensor) -> Any:
    """The kernel of `Tensor.item()`."""
    return download(self).item()
