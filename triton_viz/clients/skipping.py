"""Overriders that skip loads and stores, for a client that needs no real data."""

from typing import Any

from triton_viz.core.patch import running_backend
from triton_viz.dsls import find_dsl
from triton_viz.errors import UnsupportedError


def skipped_load(*args: Any, **kwargs: Any) -> Any:
    """The result of a skipped load: zeros of the result's type, which the language makes."""
    zeros = find_dsl(running_backend()).zeros
    if zeros is None:
        raise UnsupportedError(
            f"loads cannot be skipped: backend {running_backend()!r} has no `zeros`, which makes results of "
            "skipped loads: add it to its DSL(...) (docs/adding-a-dsl.md)"
        )
    return zeros(*args, **kwargs)


def skipped_store(*_: Any, **__: Any) -> None:
    """Write nothing."""
