"""The PyTorch engine: the default."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from gt.ops import Spec
from gt.ops.aten import PREFIX, TORCH_DTYPES
from gt.transport.arrays import numpy_dtype
from gt.worker.engine.base import Engine
from gt.worker.engine.torch import aten, donation

_DTYPE_NAMES = {getattr(torch, name): name for name in TORCH_DTYPES}
_EXTENDED = frozenset(name for name in TORCH_DTYPES if name == "bfloat16" or name.startswith("float8"))
"""The dtypes that NumPy has from an extension."""
_STORED = {1: (torch.uint8, np.uint8), 2: (torch.uint16, np.uint16)}
"""By size: the dtypes that such elements are passed between the libraries as."""


class PyTorchEngine(Engine):
    """Computes with PyTorch, on the GPU if there is one, without PyTorch's autograd."""

    name = "pytorch"

    def __init__(self, device: str | None = None) -> None:
        super().__init__()
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.on_host = self.device.type == "cpu"
        if not self.on_host:
            torch.set_default_device(self.device)

    def _named(self, op: str) -> Callable[..., Any]:
        return aten.function(op) if aten.is_aten(op) else super()._named(op)

    def bound(self, op: str, attrs: dict[str, Any] | None) -> Callable[..., Any]:
        """An op's function of its inputs, with these attributes, for an op that is computed repeatedly."""
        function: Any = self.functions[op]
        if op.startswith(PREFIX):
            return function.bound(attrs or {})
        if not attrs or "scalar" not in attrs:
            return partial(function, **attrs) if attrs else function
        scalar = attrs["scalar"]
        if attrs["reflected"]:
            return lambda x: function(scalar, x)
        return lambda x: function(x, scalar)

    def in_place(self, op: str, attrs: dict[str, Any] | None) -> Callable[..., Any] | None:
        """The in-place form of an op, if it has one."""
        function = donation.in_place(op, attrs)
        return None if function is None else partial(donation.in_memory_of_first, function)

    def infer(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> Spec | tuple[Spec, ...]:
        """The spec of an op's result, or of each of its results. Raises if that depends on the data."""
        if not aten.is_aten(op):
            return super().infer(op, inputs, attrs)
        return self._specs(self.functions[op](*map(_meta, inputs), **attrs))

    def _specs(self, value: Any) -> Spec | tuple[Spec, ...]:
        return tuple(map(self.spec, value)) if isinstance(value, tuple) else self.spec(value)

    def put(self, array: np.ndarray) -> torch.Tensor:
        """An array as a value."""
        if array.dtype.name in _EXTENDED:
            dtype, stored = getattr(torch, array.dtype.name), _STORED[array.dtype.itemsize][1]
            return torch.from_numpy(array.view(stored)).view(dtype).to(self.device)
        return torch.from_numpy(array).to(self.device)

    def get(self, value: torch.Tensor) -> np.ndarray:
        """A value as an array."""
        value = value.cpu()
        name = _DTYPE_NAMES[value.dtype]
        if name in _EXTENDED:
            stored = _STORED[value.itemsize][0]
            return value.contiguous().view(stored).numpy().view(numpy_dtype(name))
        return value.resolve_conj().resolve_neg().numpy()

    def spec(self, value: torch.Tensor) -> Spec:
        """The shape and dtype of a value."""
        return Spec(tuple(value.shape), _DTYPE_NAMES[value.dtype])

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


def _meta(spec: Spec | tuple[Spec, ...]) -> Any:
    """A value without data."""
    if isinstance(spec, Spec):
        return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta")
    return tuple(map(_meta, spec))
