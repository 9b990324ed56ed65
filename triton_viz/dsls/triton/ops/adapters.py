"""Adapters: convert the arguments of a builder's op to the standardized ones that callbacks receive."""

import functools
from typing import Any

from triton_viz.dsls.base import Accessed, Adapter
from triton_viz.dsls.triton.ops.types import Atomically, to_memory, width
from triton_viz.executor.memory import effective
from triton_viz.executor.value import Value


def _accessed(
    builder: Any, pointers: Value, mask: Value | None, semantics: frozenset[str] = frozenset()
) -> Accessed:
    keep = effective(mask, builder.lanes.active, pointers.shape)
    packed = functools.partial(to_memory, dtype=pointers.dtype.element_ty)
    return Accessed(pointers, keep, builder.memory, packed, width(pointers.dtype), semantics)


def _semantics(order: tuple[Any, ...]) -> frozenset[str]:
    """Those of Triton's memory order and scope; by default both acquire and release.

    With the scope of a CTA, other programs may come between its read and its write.
    """
    said = [str(part).rsplit(".", 1)[-1].lower() for part in order]
    if "cta" in said[1:]:
        return frozenset()
    sem = said[0] if said else "acquire_release"
    return frozenset({"atomic"} | {name for name in ("acquire", "release") if name in sem})


def _of_policy(policy: tuple[Any, ...]) -> frozenset[str]:
    """The semantics of a load or store. A volatile load is taken for one that acquires."""
    last = policy[-1] if policy else None
    if isinstance(last, Atomically):
        return _semantics(last.order)
    return frozenset({"atomic", "acquire"}) if last is True else frozenset()


def load(
    builder: Any, pointers: Value, mask: Value | None, other: Any = None, *policy: Any
) -> dict[str, Any]:
    """A load's arguments for callbacks."""
    return {"accessed": _accessed(builder, pointers, mask, _of_policy(policy))}


def store(builder: Any, pointers: Value, values: Value, mask: Value | None, *policy: Any) -> dict[str, Any]:
    """A store's arguments for callbacks."""
    return {"accessed": _accessed(builder, pointers, mask, _of_policy(policy)), "values": values}


def atomic(
    builder: Any, op: Any, pointers: Value, values: Value, mask: Value | None, *order: Any
) -> dict[str, Any]:
    """An atomic's arguments, with the name of its operation."""
    name = str(op).rsplit(".", 1)[-1].lower()
    accessed = _accessed(builder, pointers, mask, _semantics(order))
    return {"accessed": accessed, "values": values, "operation": name}


def compare_and_swap(
    builder: Any, pointers: Value, expected: Value, values: Value, *order: Any
) -> dict[str, Any]:
    """A compare-and-swap's arguments."""
    accessed = _accessed(builder, pointers, None, _semantics(order))
    return {"accessed": accessed, "values": values, "operation": "cas"}


def dot(builder: Any, a: Value, b: Value, accumulator: Value, *_: Any) -> dict[str, Any]:
    """A product's arguments: the shapes of its tiles."""
    return {"left": a.shape, "right": b.shape, "output": accumulator.shape, "dtype": str(a.dtype.scalar)}


def dot_scaled(builder: Any, a: Value, a_scale: Any, a_format: Any, b: Value, *rest: Any) -> dict[str, Any]:
    """A scaled product's arguments."""
    name = "fp4" if "E2M1" in str(a_format).upper() else "fp8"
    return {"left": a.shape, "right": b.shape, "output": rest[-1].shape, "dtype": name}


def reduce(builder: Any, inputs: tuple[Value, ...], axis: int | None, combine: Any) -> dict[str, Any]:
    """A reduction's arguments."""
    shape = inputs[0].shape
    left = () if axis is None else shape[:axis] + shape[axis + 1 :]
    return {"combine": _name(combine), "axis": axis, "input": shape, "output": left}


def scan(builder: Any, inputs: tuple[Value, ...], axis: int, combine: Any, reverse: bool) -> dict[str, Any]:
    """A scan's arguments."""
    return {"combine": _name(combine), "axis": axis, "input": inputs[0].shape, "reverse": reverse}


def _name(function: Any) -> str:
    return getattr(function, "__name__", str(function)).strip("_").removesuffix("_combine")


def compute(name: str) -> Adapter:
    """The adapter of a computation: its name, and the shapes of its operands."""

    def adapter(builder: Any, *args: Any, **_: Any) -> dict[str, Any]:
        operands = tuple(arg for arg in args if isinstance(arg, Value))
        return {"name": name, "inputs": tuple(arg.shape for arg in operands), "operands": operands}

    return adapter


def unknown(builder: Any, name: str, *args: Any) -> dict[str, Any]:
    """The arguments of an op that runs lane by lane."""
    return compute(name.removeprefix("create_"))(builder, *args)
