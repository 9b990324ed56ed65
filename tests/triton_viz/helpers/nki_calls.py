"""Functions of NKI tiles called on arrays, and hypothesis strategies for the arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from triton_viz.dsls.nki import language

nl: Any = language


def kernel(body: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a function of tiles on arrays: loads each array, and stores the result."""

    def run(*arrays: np.ndarray) -> np.ndarray:
        def program(*tensors: Any) -> Any:
            result = body(*(nl.load(tensor) for tensor in tensors))
            out = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.copy(result) if result.memory == "PSUM" else result)
            return out

        return triton_viz.trace((), backend="nki")(program)(*arrays)

    return run


small = st.integers(1, 6)
floats = st.floats(-4, 4, width=32)


def tiles(rank: int = 2, dtype: Any = np.float32, elements: Any = floats) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(dtype, st.tuples(*[small] * rank), elements=elements)
