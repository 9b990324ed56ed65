"""The PyTorch engine: the default."""

import numpy as np
import torch

from gt.ops import Spec
from gt.ops.dtypes import ITEMSIZE
from gt.worker.engine.base import Engine

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

    def put(self, array: np.ndarray) -> torch.Tensor:
        """Take an array in."""
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16).to(self.device)
        return torch.from_numpy(array).to(self.device)

    def get(self, value: torch.Tensor) -> np.ndarray:
        """Give a value out."""
        value = value.cpu()
        if value.dtype == torch.bfloat16:
            import ml_dtypes

            return value.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
        return value.numpy()

    def spec(self, value: torch.Tensor) -> Spec:
        """What is known of a value without its data."""
        return Spec(tuple(value.shape), _NAMES[value.dtype])

    def kind(self, value: torch.Tensor) -> tuple[torch.Size, torch.dtype]:
        """What tells values of different specs apart."""
        return value.shape, value.dtype

    def dense(self, value: torch.Tensor) -> torch.Tensor:
        """A value without gaps: what is compiled looks at memory, and not at strides."""
        return value.contiguous()  # itself, if it is

    @property
    def threads(self) -> int:
        """How many threads compute an op."""
        return torch.get_num_threads()

    def nbytes(self, value: torch.Tensor) -> int:
        """How much memory a value takes."""
        return value.nbytes
