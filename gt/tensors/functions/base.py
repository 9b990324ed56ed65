"""Makes functions from methods."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from gt.client.session import current
from gt.ops import dtypes
from gt.tensors.base import Number, check_number, create
from gt.tensors.numpy_names import numpy_names_of, renamed
from gt.tensors.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def _as_tensor(value: Number) -> Tensor:
    """A number as a tensor. As an operand, it affects the result's dtype only as a number does."""
    dtype = dtypes.of_scalar(check_number(value))
    return create(current(), "full", shape=(), value=value, dtype=dtype)


_INPUTS = ("input", "x", "a", "x1")
"""The names of the first parameter: PyTorch's and NumPy's."""


def function(method: F, number_first: bool = False) -> F:
    """A tensor's method as a function of the tensor, which may also be given as `input`, as in PyTorch.

    With `number_first` it may be a number.
    """
    plain: Any = getattr(method, "__wrapped__", method)
    names = numpy_names_of(plain)

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = renamed(plain.__name__, names, kwargs)
            if not args:
                args = tuple([kwargs.pop(name) for name in _INPUTS if name in kwargs][:1])
        if args and isinstance(args[0], Tensor):
            return plain(*args, **kwargs)
        if number_first and args and isinstance(args[0], Number):
            return plain(_as_tensor(args[0]), *args[1:], **kwargs)
        kind = type(args[0] if args else None).__name__
        raise TypeError(f"{plain.__name__}(): argument 'input' (position 1) must be Tensor, not {kind}")

    return call  # type: ignore[return-value] - it takes what the method takes
