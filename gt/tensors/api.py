"""Makes the methods of Tensor, their aliases, in-place forms and functions from one declaration of each.

A declaration is a `Method` in a row of the op table or, for a method that is written out in
`gt.tensors.methods`, the decorator `@api`. Rows that are registered later get methods, too.
"""

import inspect
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gt.ops.method import Method
from gt.ops.row import Row
from gt.ops.table import for_each_row
from gt.tensors.base import TensorBase
from gt.tensors.conventions import CONVENTIONS, OF_KIND
from gt.tensors.generated.in_place import GeneratedInPlace
from gt.tensors.generated.methods import GeneratedMethods
from gt.tensors.numpy_names import methods_with_numpy_names, with_numpy_names

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class Function(NamedTuple):
    """A method that is also a function."""

    method: Callable[..., Any]
    number_first: bool
    """Whether the first argument may be a number."""


FUNCTIONS: dict[str, Function] = {}
"""By name, the methods that `gt.NAME` calls."""


def api(
    *aliases: str, function: bool = True, in_place: bool = False, number_first: bool = False
) -> Callable[[F], F]:
    """Declare a method's aliases, and whether it has a function and an in-place form: see `Method`."""

    def declare(method: F) -> F:
        names = " ".join((method.__name__, *aliases))
        method.api = Method(  # type: ignore[attr-defined] - read by `complete`
            names, method.__doc__ or "", method, function, in_place, number_first
        )
        return method

    return declare


def complete(tensor: type) -> None:
    """Define all methods, aliases and functions: called once, when the class Tensor exists."""
    methods_with_numpy_names(tensor)
    for part in tensor.__mro__[:-1]:
        for method in list(vars(part).values()):
            declared = getattr(method, "api", None)
            if isinstance(declared, Method):
                _install(declared, method)
    for_each_row(_install_row)


def _install_row(row: Row) -> None:
    for name in " ".join(declared.names for declared in row.methods).split():
        if hasattr(TensorBase.kind, name):
            raise ValueError(f"{row.name}: a tensor has an attribute {name!r} already")
    for declared in row.methods:
        method = declared.call
        if isinstance(method, str):
            method = CONVENTIONS[method or OF_KIND[row.kind]](row.name)
        name = declared.names.partition(" ")[0]
        method = with_numpy_names(_named(method, name, declared.doc), but=("x2",))
        setattr(GeneratedMethods, name, method)
        _install(declared, method)
    if row.operator:
        _install_operators(row.name, row.operator, row.kind)


def _install(declared: Method, method: Callable[..., Any]) -> None:
    """The aliases, in-place forms and functions of a method."""
    first, *aliases = declared.names.split()
    for name in aliases:
        setattr(GeneratedMethods, name, method)
    for name in (first, *aliases):
        if declared.in_place:
            setattr(GeneratedInPlace, f"{name}_", _in_place(method, f"{name}_", first))
        if declared.function:
            FUNCTIONS[name] = Function(method, declared.number_first)


def _named(method: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """A copy of a function under the name and with the docstring of a method."""
    copy = types.FunctionType(
        method.__code__, method.__globals__, name, method.__defaults__, method.__closure__
    )
    copy.__kwdefaults__ = method.__kwdefaults__
    copy.__annotations__ = {**method.__annotations__, "return": "Tensor"}
    copy.__qualname__, copy.__doc__ = f"Tensor.{name}", doc
    return copy


def _in_place(method: Callable[..., Any], name: str, of: str) -> Callable[..., Any]:
    def form(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._in_place(method(self, *args, **kwargs))

    def without_arguments(self: Any) -> Any:  # a tenth faster than a call through *args
        return self._in_place(method(self))

    code = method.__code__
    if code.co_argcount == 1 and not code.co_kwonlyargcount and not code.co_flags & inspect.CO_VARARGS:
        form = without_arguments
    form.__name__, form.__qualname__, form.__doc__ = name, f"Tensor.{name}", f"As `{of}`, in place."
    form.__wrapped__ = method  # type: ignore[attr-defined] - `inspect.signature` reads it
    return form


COMPARISONS = ("gt", "ge", "lt", "le", "eq", "ne")
"""Comparison operators: Python reflects them, and they have no in-place form."""


def _install_operators(op: str, operator: str, kind: str) -> None:
    def unary(self: Any) -> "Tensor":
        return self._unary_op(op)

    def forward(self: Any, other: Any) -> "Tensor":
        return self._binary_op(op, other)

    def reflected(self: Any, other: Any) -> "Tensor":
        return self._binary_op(op, other, True)

    def in_place(self: Any, other: Any) -> "Tensor":
        return self._in_place(self._binary_op(op, other))

    def install(part: type, function: Callable[..., Any], name: str) -> None:
        function.__name__, function.__qualname__ = name, f"Tensor.{name}"
        setattr(part, name, function)

    if kind == "UnaryOp":
        install(GeneratedMethods, unary, f"__{operator}__")
        return
    install(GeneratedMethods, forward, f"__{operator}__")
    if operator not in COMPARISONS:
        install(GeneratedMethods, reflected, f"__r{operator}__")
        install(GeneratedInPlace, in_place, f"__i{operator}__")
