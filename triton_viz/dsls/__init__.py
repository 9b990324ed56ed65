"""The languages that kernels are written in, one folder each; `OPERATION_REGISTRY` lists them.

A program adds a language by assigning to the registry: docs/adding-a-dsl.md. `base.DSL` is the interface.
All code for one language, or for one release of it, is in its folder: adding a language changes neither core
nor clients. A language is imported on first use.
"""

from typing import Any

from triton_viz.core.data import register_record
from triton_viz.core.lazy import lazy_exports
from triton_viz.dsls.backends import Backends
from triton_viz.dsls.base import DSL
from triton_viz.errors import UnsupportedError

OPERATION_REGISTRY = Backends(triton="triton_viz.dsls.triton:TRITON", nki="triton_viz.dsls.nki:NKI")
# Types of records that only NKI launches have: a trace file may hold them before NKI is imported.
register_record("triton_viz.core.records.chip:Instruction")
register_record("triton_viz.dsls.nki.nki_records:NeuronProfile")


_TRACE_CLASSES = lazy_exports(
    "triton_viz.core.trace",
    "triton_viz.dsls.triton.triton_trace:TritonTrace",
    "triton_viz.dsls.nki.nki_trace:NKITrace",
)


def find_trace_class(name: str) -> Any:
    """`TritonTrace` or `NKITrace`, imported on first use; AttributeError for any other name."""
    return _TRACE_CLASSES(name)


def default_backend() -> str:
    """The backend of `trace()` if none is given: the first in the registry."""
    return next(iter(OPERATION_REGISTRY))


def find_dsl(backend: str) -> DSL:
    """The language that is registered under a name; otherwise raises UnsupportedError, which lists all."""
    found = OPERATION_REGISTRY.get(backend)
    if found is None:
        names = ", ".join(repr(name) for name in OPERATION_REGISTRY)
        raise UnsupportedError(
            f"no backend is called {backend!r}: there are {names}. "
            "To add one, see docs/adding-a-dsl.md: OPERATION_REGISTRY[name] = DSL(...)"
        )
    return found


def check_target(target: str) -> None:
    """Raise an UnsupportedError if no language compiles for a target of this name."""
    refused: UnsupportedError | None = None
    for dsl in OPERATION_REGISTRY.values():
        if dsl.compile is None:
            continue
        if dsl.check_target is None:
            return None
        try:
            return dsl.check_target(target)
        except UnsupportedError as error:
            refused = refused or error
    raise refused or UnsupportedError(f"no language compiles kernels: there is no target {target!r}")


__all__ = ["DSL", "OPERATION_REGISTRY", "check_target", "default_backend", "find_dsl", "find_trace_class"]
