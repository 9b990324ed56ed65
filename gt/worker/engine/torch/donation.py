"""In-place forms of elementwise ops: they compute a result in the memory of the first input.

Every instruction has a new result. Memory for a large one is new to the process, and the system clears each
page of it, which takes longer than many an op. So where an op's first input is freed directly after it (an
optimizer frees the old value of each parameter), the input's memory is donated to the result. The results
have the same bits.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gt.ops.aten import PREFIX, RESULTS
from gt.worker.engine.base import MIN_DONATED_BYTES

_ATEN = torch.ops.aten
IN_PLACE: dict[str, Callable[..., Any]] = {
    "add": _ATEN.add_,
    "sub": _ATEN.sub_,
    "mul": _ATEN.mul_,
    "truediv": _ATEN.div_,
    "aten::add.Tensor": _ATEN.add_.Tensor,
    "aten::sub.Tensor": _ATEN.sub_.Tensor,
    "aten::addcdiv": _ATEN.addcdiv_.default,
    "aten::addcmul": _ATEN.addcmul_.default,
    "aten::lerp.Scalar": _ATEN.lerp_.Scalar,
    **{
        name: getattr(_ATEN, f"{name}_").default
        for name in ("abs", "cos", "exp", "log", "neg", "relu", "rsqrt", "sigmoid", "sin", "sqrt", "tanh")
    },
}
"""By op. If all inputs have the same dtype and shape, the result has them, too."""

_NUMBERS = frozenset(("alpha", "value", "weight", RESULTS))
"""The attributes that ops of these names may have: with others, some inputs are no tensors."""

_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def in_place(op: str, attrs: dict[str, Any] | None) -> Callable[..., Any] | None:
    """The in-place form of an op with these attributes, as a function of its inputs; None if it has none."""
    function = IN_PLACE.get(op)
    if function is None or not attrs:
        return function
    if op.startswith(PREFIX):
        given = {name: one for name, one in attrs.items() if name != RESULTS}
        return functools.partial(function, **given) if attrs.keys() <= _NUMBERS else None
    if attrs.keys() != {"scalar", "reflected"} or attrs["reflected"] or isinstance(attrs["scalar"], complex):
        return None
    scalar = attrs["scalar"]
    return lambda x: function(x, scalar)


def in_memory_of_first(function: Callable[..., Any], inputs: Sequence[Any], references: int) -> Any:
    """Compute an op with its in-place form. None, and nothing has changed, if the first input's memory
    cannot be used.

    `references` is how many references to the first input the caller has, besides `inputs`. If there are
    others, or views of it, somebody may still read it.
    """
    x = inputs[0]
    if (
        type(x) is not torch.Tensor
        or x.dtype not in _FLOATS
        or x.nbytes < MIN_DONATED_BYTES
        or not x.is_contiguous()
        or sys.getrefcount(x) > references + 3  # `inputs`, `x`, and the argument of getrefcount
    ):
        return None
    for other in inputs[1:]:
        if other.dtype != x.dtype or other.shape != x.shape or other is x:
            return None
    storage = x.untyped_storage()
    # Memory that is shared with another process, or with NumPy, cannot be resized.
    if storage.nbytes() != x.nbytes or not storage.resizable() or _uses(storage) > 2:
        return None
    return function(*inputs)


def _uses(storage: torch.UntypedStorage) -> int:
    """How many tensors have this storage, and `storage` itself."""
    return torch._C._storage_Use_Count(storage._cdata)
