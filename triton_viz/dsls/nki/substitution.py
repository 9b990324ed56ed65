"""Substitution: a copy of the kernel's function, in which NKI's names refer to our modules.

So a kernel runs here even if the vendor's package is installed. The package itself is not changed.
"""

import functools
import types
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from triton_viz.dsls.base import plain_function
from triton_viz.dsls.nki import nki_modules
from triton_viz.dsls.nki.nki_loops import Range

_ROOTS = ("nki", "neuronxcc")


def runnable(function: Callable) -> Callable:
    """The function, and the user's functions that it calls, with `range` and the vendor's names replaced."""
    return _Substitution().function(function)


class _Substitution:
    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._kept: list[Any] = []

    def function(self, function: Any) -> Any:
        if id(function) in self._made:
            return self._made[id(function)]
        self._kept.append(function)
        names: dict[str, Any] = dict(function.__globals__)
        made = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, self._cells(function)
        )
        made.__kwdefaults__ = function.__kwdefaults__
        functools.update_wrapper(made, function)
        vars(made).pop("__wrapped__", None)
        self._made[id(function)] = made
        for name in _names_in(function.__code__):
            if name in function.__globals__:
                names[name] = self.value(function.__globals__[name])
        if "range" not in function.__globals__:
            names["range"] = Range
        return made

    def _cells(self, function: Any) -> Any:
        if function.__closure__ is None:
            return None
        cells = []
        for cell in function.__closure__:
            try:
                held = cell.cell_contents
            except ValueError:  # not assigned yet
                cells.append(cell)
                continue
            found = self.value(held)
            cells.append(cell if found is held else types.CellType(found))
        return tuple(cells)

    def value(self, value: Any) -> Any:
        """The object that a name refers to while the kernel runs."""
        if isinstance(value, ModuleType):
            return nki_modules.module_for(value.__name__) or value if _vendors(value.__name__) else value
        module = getattr(value, "__module__", None)
        if isinstance(module, str) and _vendors(module):
            plain = plain_function(value)
            if plain is not None and not _vendors(
                plain.__module__ or ""
            ):  # a kernel that the vendor's package decorated
                return self.function(plain)
            ours, name = nki_modules.module_for(module), getattr(value, "__name__", None)
            return getattr(ours, name, value) if ours is not None and isinstance(name, str) else value
        if isinstance(value, nki_modules.Kernel):
            return value
        if (
            isinstance(value, FunctionType)
            and not (module or "").startswith("triton_viz.")
            and _mentions(value)
        ):
            return self.function(value)
        return value


def _vendors(module: str) -> bool:
    return module.partition(".")[0] in _ROOTS


def _names_in(code: types.CodeType) -> set[str]:
    """The names of globals that a function uses, also in nested functions."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names


def _mentions(function: Any) -> bool:
    """Whether a user's function has to be replaced: it has loops, uses a name of NKI, or calls such a
    function."""
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        names = _names_in(one.__code__)
        if "range" in names:
            return True
        for name in names:
            value = one.__globals__.get(name)
            where = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(where, str) and _vendors(where):
                return True
            if isinstance(value, FunctionType) and value.__globals__ is one.__globals__:
                waiting.append(value)
    return False
