"""Checks keywords of the functions that kernels call: an unknown one raises an error that lists the known
ones."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from triton_viz.errors import UnsupportedError

_OURS = ("instruction",)
"""Internal parameters, which kernels cannot pass."""


def strict(prefix: str, functions: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The named functions, wrapped to refuse unknown keywords."""
    return {name: _strict(f"{prefix}.{name}", functions[name]) for name in names}


def without_first(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function with None bound to its first parameter."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(None, *args, **kwargs)

    signature = inspect.signature(function)
    call.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return _strict(name, call)


def _strict(name: str, function: Any) -> Any:
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return function  # the function that it calls checks keywords
    known = [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.name not in _OURS
    ]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for keyword in kwargs:
            if keyword not in known:
                raise UnsupportedError(f"{name} has no keyword {keyword!r}: it has {', '.join(known)}")
        return function(*args, **kwargs)

    return call
