"""Traced launches of NKI kernels, and their records."""

from typing import Any

import numpy as np

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from triton_viz.core.data import Launch, Record
from triton_viz.dsls.nki import language

nl: Any = language


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def traced(kernel: Any, *clients: Any) -> Any:
    return triton_viz.trace(clients or "tracer", backend="nki")(kernel)


def last() -> Launch:
    return triton_viz.launches[-1]


def of(kind: type[Record], launch: Launch | None = None) -> list[Any]:
    return [record for record in (launch or last()).records if type(record) is kind]


def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ds(nl.program_id(0) * 2, 2)
    nl.store(out[rows, :], nl.load(x[rows, :]) * 2.0)
    return out
