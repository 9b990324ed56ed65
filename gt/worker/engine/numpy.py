"""The NumPy engine: the reference implementation, without torch."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gt.transport.arrays import numpy_dtype
from gt.worker.engine.base import ArrayEngine


class NumpyEngine(ArrayEngine):
    """Computes with NumPy."""

    name = "numpy"
    xp = np

    def put(self, array: np.ndarray) -> np.ndarray:
        """An array as a value."""
        return array

    def get(self, value: np.ndarray) -> np.ndarray:
        """A value as an array."""
        return value

    def nbytes(self, value: np.ndarray) -> int:
        """The size of a value in bytes."""
        return value.nbytes

    def dtype(self, name: str) -> np.dtype:
        """NumPy's dtype of this name."""
        return numpy_dtype(name)

    def run(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None) -> Any:
        """Compute one op. Infinities and NaNs are values here, as in PyTorch, not warnings."""
        with np.errstate(all="ignore"):
            return super().run(op, inputs, attrs)
