"""Gradients: the graph of recorded ops (`graph`), replay of gradient rules, and `gt.autograd.grad`.

Tensors are built on this package, so `grad`, which takes tensors, is imported on first use.
"""

from typing import TYPE_CHECKING, Any

from gt.autograd.graph import enable_grad, is_grad_enabled, no_grad, set_grad_enabled

if TYPE_CHECKING:
    from gt.autograd.gradients import grad

__all__ = ["enable_grad", "grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]


def __getattr__(name: str) -> Any:
    if name == "grad":
        from gt.autograd.gradients import grad

        return grad
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
