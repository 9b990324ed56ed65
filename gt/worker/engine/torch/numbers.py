"""Numbers that are tensors in a compiled graph, because they differ from call to call.

On half precision, most ops compute with a Python number in float32 and round the result. A tensor would be
rounded first: 0.999 is 1 in bfloat16, and 1e-8 is 0 in float16.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gt.ops.dtypes import HALF

_TORCH_HALF = tuple([getattr(torch, name) for name in HALF])


def like(number: Any, x: Tensor) -> Any:
    """A number that does not change the dtype of a result, like a Python number."""
    return number.to(x.dtype) if isinstance(number, Tensor) else number


def in_float32(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function; on tensors of half precision, it is computed in float32, and its result is rounded."""

    @functools.wraps(function)
    def run(x: Tensor, *others: Any, **numbers: Any) -> Tensor:
        if x.dtype not in _TORCH_HALF or any(
            one.dtype != x.dtype for one in others if isinstance(one, Tensor)
        ):
            return function(x, *others, **numbers)
        wide = [one.float() if isinstance(one, Tensor) else one for one in others]
        return function(x.float(), *wide, **numbers).to(x.dtype)

    return run
