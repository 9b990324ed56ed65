"""Triton's ops as clients see them: for each method of the builder an `Op` type, and an adapter."""

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from triton_viz.core.data import Atomic, Compute, Dot, Load, Op, Other, Reduce, Scan, Store
from triton_viz.core.grid.memory import effective
from triton_viz.core.grid.value import Value
from triton_viz.dsls.base import DSL, Accessed, Adapter, Here
from triton_viz.dsls.triton import language, loops, machine
from triton_viz.dsls.triton.access import ATOMIC, as_stored
from triton_viz.dsls.triton.builder import LaneBuilder
from triton_viz.dsls.triton.types import width

if TYPE_CHECKING:
    from triton_viz.core.client import ClientManager


def _accessed(
    builder: LaneBuilder, pointers: Value, mask: Value | None, semantics: frozenset[str] = frozenset()
) -> Accessed:
    keep = effective(mask, builder.lanes.active, pointers.shape)
    packed = functools.partial(as_stored, dtype=pointers.dtype.element_ty)
    return Accessed(pointers, keep, builder.memory, packed, width(pointers.dtype), semantics)


_WAITING = frozenset({"atomic", "acquire"})
_SIGNALLING = frozenset({"atomic", "release"})


def _load(
    builder: LaneBuilder, pointers: Value, mask: Value | None, other: Any = None, *policy: Any
) -> dict[str, Any]:
    volatile = bool(policy) and policy[-1] is True
    return {"accessed": _accessed(builder, pointers, mask, _WAITING if volatile else frozenset())}


def _store(
    builder: LaneBuilder, pointers: Value, values: Value, mask: Value | None, *policy: Any
) -> dict[str, Any]:
    signalling = bool(policy) and policy[-1] == ATOMIC
    accessed = _accessed(builder, pointers, mask, _SIGNALLING if signalling else frozenset())
    return {"accessed": accessed, "values": values}


def _semantics(order: tuple[Any, ...]) -> frozenset[str]:
    """An atomic's, from what Triton says of its memory order; it is both acquire and release by default."""
    said = str(order[0]).rsplit(".", 1)[-1].lower() if order else "acquire_release"
    return frozenset({"atomic"} | {name for name in ("acquire", "release") if name in said})


def _atomic(
    builder: LaneBuilder, op: Any, pointers: Value, values: Value, mask: Value | None, *order: Any
) -> dict[str, Any]:
    name = str(op).rsplit(".", 1)[-1].lower()
    accessed = _accessed(builder, pointers, mask, _semantics(order))
    return {"accessed": accessed, "values": values, "operation": name}


def _compare_and_swap(
    builder: LaneBuilder, pointers: Value, expected: Value, values: Value, *order: Any
) -> dict[str, Any]:
    accessed = _accessed(builder, pointers, None, _semantics(order))
    return {"accessed": accessed, "values": values, "operation": "cas"}


def _dot(builder: LaneBuilder, a: Value, b: Value, accumulator: Value, *_: Any) -> dict[str, Any]:
    return {"left": a.shape, "right": b.shape, "output": accumulator.shape, "dtype": str(a.dtype.scalar)}


def _dot_scaled(
    builder: LaneBuilder, a: Value, a_scale: Any, a_format: Any, b: Value, *rest: Any
) -> dict[str, Any]:
    name = "fp4" if "E2M1" in str(a_format).upper() else "fp8"
    return {"left": a.shape, "right": b.shape, "output": rest[-1].shape, "dtype": name}


def _reduce(
    builder: LaneBuilder, inputs: tuple[Value, ...], axis: int | None, combine: Any
) -> dict[str, Any]:
    shape = inputs[0].shape
    left = () if axis is None else shape[:axis] + shape[axis + 1 :]
    return {"combine": _name(combine), "axis": axis, "input": shape, "output": left}


def _scan(
    builder: LaneBuilder, inputs: tuple[Value, ...], axis: int, combine: Any, reverse: bool
) -> dict[str, Any]:
    return {"combine": _name(combine), "axis": axis, "input": inputs[0].shape, "reverse": reverse}


def _name(function: Any) -> str:
    return getattr(function, "__name__", str(function)).strip("_").removesuffix("_combine")


def _compute(name: str) -> Adapter:
    def adapter(builder: LaneBuilder, *args: Any, **_: Any) -> dict[str, Any]:
        operands = tuple(arg for arg in args if isinstance(arg, Value))
        return {"name": name, "inputs": tuple(arg.shape for arg in operands), "operands": operands}

    return adapter


def _unknown(builder: LaneBuilder, name: str, *args: Any) -> dict[str, Any]:
    return _compute(name.removeprefix("create_"))(builder, *args)


_ADAPTED: dict[str, tuple[type[Op], Adapter]] = {
    # The other forms (unmasked, descriptors, atomic loads) call these, so these see every access.
    "create_masked_load": (Load, _load),
    "create_masked_store": (Store, _store),
    "create_atomic_rmw": (Atomic, _atomic),
    "create_atomic_cas": (Atomic, _compare_and_swap),
    "create_dot": (Dot, _dot),
    "create_dot_scaled": (Dot, _dot_scaled),
    "create_reduce": (Reduce, _reduce),
    "create_scan": (Scan, _scan),
    # What we have no lanes for.
    "lane_by_lane": (Other, _unknown),
}
_NOT_OPS = ("load", "store", "barrier", "atomic_", "descriptor", "tensor_pointer", "grid_dependency")
"""What calls other ops, or does nothing."""


def _operations() -> dict[str, tuple[type[Op], Adapter]]:
    operations = dict(_ADAPTED)
    for name in dir(LaneBuilder):
        short = name.removeprefix("create_")
        if name.startswith("create_") and name not in operations and not any(n in short for n in _NOT_OPS):
            operations[name] = (Compute, _compute(short))
    return operations


@contextlib.contextmanager
def _patch_calls(manager: "ClientManager") -> Iterator[None]:
    with language.patched(), machine.running.kept():
        yield


def _here() -> Here:
    return machine.current().here()


TRITON = DSL(
    name="triton",
    namespace=LaneBuilder,
    operations=_operations(),
    patch_calls=_patch_calls,
    patch_loops=machine.running.patch_loops,
    here=_here,
    loops_file=loops.__file__,
)
