"""Functions that take tensors from other libraries."""

from typing import Any

import numpy as np

from gt.client.session import current
from gt.tensors.base import upload
from gt.tensors.tensor import Tensor

__all__ = ["from_dlpack"]


def from_dlpack(x: Any) -> Tensor:
    """A tensor of another library's data: PyTorch's, JAX's, NumPy's. A copy: theirs may change afterwards."""
    try:
        array = np.from_dlpack(x)
    except (BufferError, RuntimeError):
        # NumPy has no bfloat16, and reads no memory but this computer's.
        if str(getattr(x, "dtype", "")) == "torch.bfloat16":
            return from_dlpack(x.float()).to("bfloat16")
        array = np.from_dlpack(x.cpu()) if hasattr(x, "cpu") else np.asarray(x)
    return upload(current(), array)
