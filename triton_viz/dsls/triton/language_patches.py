"""Patches of Triton's language during a launch, so that it calls our builder; substitutes for functions.

Calls in rewritten kernels are substituted without patches. Patched are only operators of tensors, types that
are passed to the builder, and the few functions that Triton's own functions call by name.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import triton.language as tl
from triton.language.core import is_builtin

from triton_viz.core.attributes import set_attributes
from triton_viz.dsls.triton import compat
from triton_viz.dsls.triton.lane_machine import current
from triton_viz.dsls.triton.ops.types import plain

_SEMANTIC = "triton.language.semantic"


@contextlib.contextmanager
def patched() -> Iterator[None]:
    """While inside, tensors of this process compute with the current thread's machine."""
    if any(_left_over(module.load) for module in (tl, tl.core)):
        _remove_left_over()
    with _patches():
        yield


def _left_over(member: Any) -> Any:
    """The function that a patch of Triton's interpreter replaced; None if the argument is no such patch."""
    if getattr(member, "__module__", None) != "triton.runtime.interpreter":
        return None
    return (getattr(member, "__kwdefaults__", None) or {}).get("member")


def _remove_left_over() -> None:
    """Remove patches that Triton's interpreter does not undo when a kernel calls another kernel."""
    for owner in (tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base):
        for name, member in list(vars(owner).items()):
            original = _left_over(member)
            if original is not None:
                while (deeper := _left_over(original)) is not None:
                    original = deeper
                setattr(owner, name, original)


@functools.cache
def _patches() -> set_attributes:
    # Not their methods that have names: `Flow.call` passes the language layer to those.
    patches: list[tuple[Any, str, Any]] = [
        (tl.tensor, name, _with_semantic(member))
        for name, member in vars(tl.tensor).items()
        if is_builtin(member) and name.startswith("__")
    ]
    patches += [
        (tl.tensor, "__bool__", _truth),
        (tl.tensor, "__index__", lambda self: current().flow.index(self)),
        (tl.tensor, "__int__", lambda self: current().flow.index(self)),
        (tl.tensor, "__repr__", lambda self: repr(self.handle.data)),
        (tl.tensor, "__str__", lambda self: str(self.handle.data)),
        (tl.tensor, "T", property(lambda self: tl.trans(self, 1, 0, _semantic=current().semantic))),
    ]
    for cls in (tl.dtype, tl.pointer_type, tl.block_type):
        if "to_ir" in vars(cls):
            patches.append((cls, "to_ir", lambda self, builder: self))
    patches += compat.patches()
    for name in _OPERATORS:
        if name in vars(tl.constexpr):
            patches.append((tl.constexpr, name, _yielding(vars(tl.constexpr)[name])))
    for module in (tl, tl.core):
        for name, function in _BY_NAME.items():
            if hasattr(module, name):
                patches.append((module, name, function))
    return set_attributes(patches, of_launch=True)


def _with_semantic(member: Callable) -> Callable:
    @functools.wraps(member)
    def method(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = current().semantic
        try:
            return member(*args, **kwargs)
        except AttributeError as error:
            if any(arg is None or isinstance(arg, str) for arg in args):
                given = " and ".join(_type_name(arg) for arg in args)
                raise TypeError(f"tl.tensor.{member.__name__} is of numbers, not of {given}") from error
            raise

    return method


def _type_name(argument: Any) -> str:
    return str(argument.type) if isinstance(argument, tl.tensor) else repr(argument)


def _truth(self: Any) -> bool:
    # In Triton's language layer, `if mask` means `mask is not None`; in a kernel it means the value.
    return sys._getframe(1).f_globals["__name__"] == _SEMANTIC or current().flow.truth(self)


_OPERATORS = [
    f"__{side}{name}__"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
    for side in ("", "r")
] + ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__pow__"]


def _yielding(operator: Callable) -> Callable:
    """An operator of a constexpr that returns NotImplemented for tensors, so that the result is a tensor."""

    @functools.wraps(operator)
    def yielding(self: Any, other: Any) -> Any:
        return NotImplemented if isinstance(other, tl.tensor) else operator(self, other)

    return yielding


# --- functions that take functions ---


def _reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:
    machine = current()
    inputs = (input,) if isinstance(input, tl.tensor) else tuple(input)
    axis, keep_dims = plain(axis), plain(keep_dims)
    rank = len(inputs[0].shape)
    if axis is not None:
        axis = _axis(axis, rank)
    results = machine.builder.create_reduce(tuple(x.handle for x in inputs), axis, combine_fn)
    found = []
    for value, given in zip(results, inputs, strict=True):
        if keep_dims:
            for position in [axis] if axis is not None else [0] * rank:
                value = machine.builder.create_expand_dims(value, position)
        found.append(_tensor(value, given.dtype))
    return found[0] if isinstance(input, tl.tensor) else tuple(found)


def _scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
    inputs = (input,) if isinstance(input, tl.tensor) else tuple(input)
    axis = _axis(plain(axis), len(inputs[0].shape))
    handles = tuple(x.handle for x in inputs)
    results = current().builder.create_scan(handles, axis, combine_fn, bool(plain(reverse)))
    found = [_tensor(value, given.dtype) for value, given in zip(results, inputs, strict=True)]
    return found[0] if isinstance(input, tl.tensor) else tuple(found)


def _map_elementwise(scalar_fn: Any, *args: Any, pack: Any = 1, **_: Any) -> Any:
    machine = current()
    inputs = machine.semantic.broadcast_tensors(*(machine.semantic.to_tensor(arg) for arg in args))
    handles = tuple(x.handle for x in inputs)
    results = [
        _tensor(value, value.dtype)
        for value in machine.builder.create_map_elementwise(handles, scalar_fn, int(plain(pack)))
    ]
    return results[0] if len(results) == 1 else tuple(results)


_BY_NAME = {"reduce": _reduce, "associative_scan": _scan, "map_elementwise": _map_elementwise}


@functools.cache
def substitutes() -> dict[Any, Callable]:
    """Substitutes for functions of the language, by function."""
    found: dict[Any, Callable] = {
        getattr(tl, name): function for name, function in _BY_NAME.items() if hasattr(tl, name)
    }
    for name in ("multiple_of", "max_contiguous", "max_constancy"):
        found[getattr(tl, name)] = lambda x, values: x  # hints to the compiler
    from triton.language.extra import libdevice as stubs
    from triton.language.extra.cuda import libdevice as functions

    for name, stub in vars(stubs).items():
        if callable(stub) and hasattr(functions, name):
            found[stub] = _library(getattr(functions, name))
    return found


def _library(function: Callable) -> Callable:
    return lambda *args, **kwargs: function(*args, **{**kwargs, "_semantic": current().semantic})


def _tensor(value: Any, dtype: Any) -> Any:
    return tl.tensor(value, tl.block_type(dtype.scalar, list(value.shape)) if value.shape else dtype.scalar)


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a block with {rank} axes")
    return axis % rank
