"""The JAX engine: NumPy's spelling, XLA's code."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gt.worker.engine.base import ArrayEngine

# Without this JAX makes 32-bit numbers of 64-bit ones, silently.
jax.config.update("jax_enable_x64", True)


class JaxEngine(ArrayEngine):
    """Computes with JAX."""

    name = "jax"
    xp = jnp
    on_host = jax.default_backend() == "cpu"

    def put(self, array: np.ndarray) -> Any:
        """Take an array in."""
        return jnp.asarray(array)

    def get(self, value: Any) -> np.ndarray:
        """Give a value out."""
        return np.asarray(value)

    def nbytes(self, value: Any) -> int:
        """How much memory a value takes."""
        return value.nbytes

    def dtype(self, name: str) -> Any:
        """JAX's dtype of this name."""
        return jnp.dtype(name)
