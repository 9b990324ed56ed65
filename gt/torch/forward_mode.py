"""Forward-mode differentiation of ops that are one instruction, for which PyTorch has no forward formula.

Linear layers and the cells of GRU and LSTM layers are one op each on this device, and several on a CPU. While
a program is in a dual level (`torch.autograd.forward_ad`, `torch.func.jvp`), they are several here, too.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from gt.torch import fused_cells

_open: list[list[Any]] = []
"""For each level that was entered, the kernels that it has registered: those of the outermost one."""


def patch_forward_mode() -> None:
    """Have `forward_ad.enter_dual_level` and `exit_dual_level` replace the kernels."""
    forward_ad.enter_dual_level = _entering(forward_ad.enter_dual_level)
    forward_ad.exit_dual_level = _leaving(forward_ad.exit_dual_level)


def is_active() -> bool:
    """Whether the program is in a dual level."""
    return bool(_open)


def _entering(enter: Callable[[], int]) -> Callable[[], int]:
    @functools.wraps(enter)
    def call() -> int:
        level = enter()
        _open.append([] if _open else _registered())
        return level

    return call


def _leaving(leave: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(leave)
    def call(*, level: Any = None) -> None:
        leave(level=level)
        for library in _open.pop():
            library._destroy()

    return call


def _registered() -> list[Any]:
    """Register the composed forms above the kernels; the result keeps them registered."""
    library = torch.library.Library("aten", "IMPL")
    for name, composed in _AS_SEVERAL.items():
        library.impl(name, composed, "AutogradPrivateUse1", allow_override=True)
    return [library]


def _linear(*args: Any, **kwargs: Any) -> torch.Tensor:
    kind = torch._C.DispatchKey.CompositeImplicitAutograd
    return torch.ops.aten.linear.default._op_dk(kind, *args, **kwargs)


_AS_SEVERAL: dict[str, Any] = {
    "linear": _linear,
    "_thnn_fused_lstm_cell": fused_cells.lstm_cell,
    "_thnn_fused_gru_cell": fused_cells.gru_cell,
}
