"""NumPy's names for parameters, which PyTorch accepts for parameters of the same kind.

`x.sum(axis=-1, keepdims=True)` is `x.sum(dim=-1, keepdim=True)`, and `gt.stack(tensors, axis=1)` is
`gt.stack(tensors, dim=1)`. The parameters of a function are read from its signature, so a new op accepts
these names without further code.
"""

import functools
from collections.abc import Callable, Container, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

NUMPY_NAMES = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x2": "other",
    "x": "input",
    "a": "input",
    "x1": "input",
}
"""NumPy's names of parameters, and PyTorch's."""


def numpy_names_of(function: Callable[..., Any]) -> dict[str, str]:
    """The names that a function's parameters may be called besides their own."""
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {
        other: name for other, name in NUMPY_NAMES.items() if name in parameters and other not in parameters
    }


def renamed(function: str, names: Mapping[str, str], given: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments by the names of the parameters that they are for."""
    for other in names.keys() & given.keys():
        if names[other] in given:
            raise TypeError(f"{function}() got {names[other]!r} twice: as {names[other]!r} and as {other!r}")
        given[names[other]] = given.pop(other)
    return given


def with_numpy_names(function: F, but: Container[str] = ()) -> F:
    """The function, which also accepts NumPy's names for its parameters, except those in `but`."""
    names = {other: name for other, name in numpy_names_of(function).items() if other not in but}
    if not names:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return function(*args)
        return function(*args, **renamed(function.__name__, names, kwargs))

    return call  # type: ignore[return-value] - it takes what the function takes, and more names


def methods_with_numpy_names(kind: type) -> None:
    """Make all methods of a class and of its base classes accept NumPy's names for dimensions.

    Only functions accept `x2`: another call would make `x.add(y)` a third slower, and `x.add(x2=y)` is not
    used in practice.
    """
    for part in kind.__mro__[:-1]:
        for name, method in list(vars(part).items()):
            if type(method) is type(with_numpy_names) and not name.startswith("_"):
                setattr(part, name, with_numpy_names(method, but=("x2",)))
