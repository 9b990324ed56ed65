"""The JAX engine: the functions of jax.numpy, compiled by XLA."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gt.worker.engine.base import ArrayEngine

# Without this, JAX silently converts 64-bit numbers to 32 bits.
jax.config.update("jax_enable_x64", True)
# On a CPU, JAX runs large computations on another thread, and raises their errors when a result is read. Such
# an error could not name the op that failed or the user's line.
jax.config.update("jax_cpu_enable_async_dispatch", False)


class JaxEngine(ArrayEngine):
    """Computes with JAX."""

    name = "jax"
    xp = jnp
    on_host = jax.default_backend() == "cpu"

    def put(self, array: np.ndarray) -> Any:
        """An array as a value."""
        return jnp.asarray(array)

    def get(self, value: Any) -> np.ndarray:
        """A value as an array."""
        return np.asarray(value)

    def nbytes(self, value: Any) -> int:
        """The size of a value in bytes."""
        return value.nbytes

    def dtype(self, name: str) -> Any:
        """JAX's dtype of this name."""
        return jnp.dtype(name)
