"""The PyTorch engine: the default."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gt.ops import Spec
from gt.ops.aten import OWN, PREFIX
from gt.ops.dtypes import ITEMSIZE
from gt.worker.engine.base import Engine
from gt.worker.engine.torch import aten

_NAMES = {getattr(torch, name): name for name in ITEMSIZE}


class PyTorchEngine(Engine):
    """Computes with PyTorch, on the GPU if there is one. Gradients are GT's own; PyTorch's are off."""

    name = "pytorch"

    def __init__(self, device: str | None = None) -> None:
        super().__init__()
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.on_host = self.device.type == "cpu"
        if not self.on_host:
            torch.set_default_device(self.device)

    def _named(self, op: str) -> Callable[..., Any]:
        return aten.function(op) if op in OWN or op.startswith(PREFIX) else super()._named(op)

    def put(self, array: np.ndarray) -> torch.Tensor:
        """An array as a value."""
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16).to(self.device)
        return torch.from_numpy(array).to(self.device)

    def get(self, value: torch.Tensor) -> np.ndarray:
        """A value as an array."""
        value = value.cpu()
        if value.dtype == torch.bfloat16:
            import ml_dtypes

            return value.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
        return value.numpy()

    def spec(self, value: torch.Tensor) -> Spec:
        """The shape and dtype of a value."""
        return Spec(tuple(value.shape), _NAMES[value.dtype])

    def kind(self, value: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        """A key that differs for values of different specs."""
        if isinstance(value, tuple):
            return tuple([(one.shape, one.dtype) for one in value])
        return value.shape, value.dtype

    def dense(self, value: Any) -> Any:
        """A contiguous value: compiled code ignores strides."""
        if isinstance(value, tuple):
            return tuple([one.contiguous() for one in value])
        return value.contiguous()  # itself, if it is

    @property
    def threads(self) -> int:
        """The number of threads that compute an op."""
        return torch.get_num_threads()

    def nbytes(self, value: torch.Tensor | tuple[torch.Tensor, ...]) -> int:
        """The size of a value in bytes."""
        return sum(one.nbytes for one in value) if isinstance(value, tuple) else value.nbytes
