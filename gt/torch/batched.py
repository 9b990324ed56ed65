"""Batched matrix products that keep the axes of a batch apart.

`torch.matmul` and `torch.einsum` merge all axes of a batch into one and call `bmm`. A layout is along one
axis, so a tensor that is split along the second of them, such as the heads of an attention, would have to be
gathered. The storages of such inputs still have these axes. Here the instruction gets them, and the result's
storage has them again, so that the ops that follow do, too.
"""

from typing import Any

import torch

from gt.torch.buffers import Buffer, Handle, buffer_of, contiguous, emit, geometry_of, is_on_device
from gt.torch.geometry import Geometry, contiguous_strides
from gt.torch.kernels import kernel

_bmm = kernel("aten::bmm")


def bmm(self: torch.Tensor, mat2: torch.Tensor) -> torch.Tensor:
    """The kernel of `aten::bmm`."""
    first = _first_axis(self) if is_on_device(self) and is_on_device(mat2) else 0
    fits = first and self.shape[0] == mat2.shape[0] and self.shape[2] == mat2.shape[1]
    if not fits or self.dtype != mat2.dtype or _first_axis(mat2) != first:
        return _bmm(self, mat2)
    value = emit("matmul", (_apart(self, first), _apart(mat2, first)), None)
    size = (self.shape[0], self.shape[1], mat2.shape[2])
    made = contiguous(size, self.dtype).allocate()
    storage: Any = made.untyped_storage()
    apart = (first, size[0] // first, *size[1:])
    storage.tapestry = Buffer(Geometry(apart, contiguous_strides(apart), 0), self.dtype, value)
    return made


def _first_axis(tensor: torch.Tensor) -> int:
    """The size of a batch's first axis, if the first dimension is several axes of its storage; else 0."""
    if tensor.dim() != 3 or not tensor.is_floating_point() or not tensor.numel():
        return 0
    buffer = buffer_of(tensor)
    base = buffer.base
    if buffer.layout is not None or tensor.dtype != buffer.dtype or len(base.size) < 3:
        return 0
    first, merged = base.size[0], tensor.shape[0]
    whole = first > 1 and merged > first and not merged % first
    return first if whole and base.stride[0] == tensor.stride(0) * (merged // first) else 0


def _apart(tensor: torch.Tensor, first: int) -> Handle:
    """The value of a tensor, its first dimension as two, of which the first has this size."""
    size, stride, offset = geometry_of(tensor)
    rest = size[0] // first
    view = Geometry((first, rest, *size[1:]), (stride[0] * rest, *stride), offset)
    return buffer_of(tensor).read_view(view, tensor.dtype)


KERNELS = {"bmm": bmm}
"""By the name of the overload."""
