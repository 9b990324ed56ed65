"""Op overriders with which the sanitizer runs a kernel without reading or writing memory."""

from collections.abc import Callable
from typing import Any

from triton_viz.clients.skipping import skipped_load, skipped_store
from triton_viz.core.data import (
    Atomic,
    Load,
    Op,
    Store,
)
from triton_viz.executor.value import Value


def _fake_atomic(*args: Any, **_: Any) -> Any:
    """The result of an atomic that does not read memory."""
    pointers = next(arg for arg in args if isinstance(arg, Value) and hasattr(arg.dtype, "element_ty"))
    return skipped_load(pointers)


FAKE_OPS: dict[type[Op], Callable[..., Any]] = {
    Load: skipped_load,
    Store: skipped_store,
    Atomic: _fake_atomic,
}
"""The op overriders of `fake_memory`; the profiler uses the same functions to skip accesses."""
