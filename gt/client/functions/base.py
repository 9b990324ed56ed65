"""How a tensor's method becomes a function."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from gt.client.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def function(method: F) -> F:
    """A tensor's method as a function of the tensor, which may also be given as `input`, as in PyTorch."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tensor):
            return method(*args, **kwargs)
        given = args[0] if args else kwargs.pop("input", None)
        if not args and isinstance(given, Tensor):
            return method(given, **kwargs)
        name, kind = method.__name__, type(given).__name__
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {kind}")

    return call  # type: ignore[return-value] - it takes what the method takes
