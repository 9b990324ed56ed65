"""NKI's ops as clients see them: for each method of the builder an `Op` type, and an adapter."""

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from triton_viz.core.chip import Instruction
from triton_viz.core.columns import Numbers, Places
from triton_viz.core.data import Atomic, Compute, Dot, Load, Op, Reduce, Scan, Store, Transfer
from triton_viz.core.grid.affine import Box
from triton_viz.core.grid.memory import Mask
from triton_viz.core.grid.value import Value
from triton_viz.core.places import Tensors, places_of
from triton_viz.dsls.base import DSL, Accessed, Adapter, Here
from triton_viz.dsls.nki import loops, machine
from triton_viz.dsls.nki.builder import COMPUTED, Builder
from triton_viz.dsls.nki.dtypes import cast
from triton_viz.dsls.nki.tensor import Tensor

if TYPE_CHECKING:
    from triton_viz.core.client import ClientManager


def compact(mask: np.ndarray | None) -> Mask:
    """A mask in its shortest form: None if it is true everywhere, bounds if it is a box."""
    if mask is None or mask.all():
        return None
    if not mask.ndim:
        return mask.reshape(1)
    bounds: list[tuple[np.ndarray, np.ndarray] | None] = []
    count = 1
    for axis, size in enumerate(mask.shape):
        along = mask.any(axis=tuple(other for other in range(mask.ndim) if other != axis))
        places = np.flatnonzero(along)
        start, end = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        count *= end - start
        bounds.append(None if (start, end) == (0, size) else (np.array([start]), np.array([end])))
    return Box(tuple(bounds), mask.shape) if count == int(mask.sum()) else mask[None]


class _Accessed(Accessed):
    """An access to a tensor that is known: also an element outside it is one of its, not its neighbour's."""

    def __init__(self, tensor: Tensor, mask: np.ndarray | None, semantics: frozenset[str] = frozenset()):
        def packed(values: Value) -> np.ndarray:
            return cast(values.data, tensor.dtype)

        launched = machine.current().launched
        super().__init__(tensor.pointers(), compact(mask), launched, packed, tensor.itemsize, semantics)
        self._tensor = tensor.storage.info

    @functools.cached_property
    def places(self) -> Places:
        """The elements."""
        assert self._tensor is not None
        anywhere = msgspec.structs.replace(self._tensor, storage=(-(2**62), 2**62))
        return places_of(self.pointers, self.mask, self.width, Tensors([anywhere]))


def _instruction(
    builder: Builder,
    name: str,
    engine: str,
    number: int,
    reads: tuple[Tensor, ...],
    writes: tuple[Tensor, ...],
    seconds: float,
) -> dict[str, Any]:
    return {
        "name": name,
        "engine": engine,
        "number": number,
        "reads": tuple(tensor.name for tensor in reads),
        "writes": tuple(tensor.name for tensor in writes),
        "buffers_read": tuple(t.storage.position for t in reads if t.memory != "HBM"),
        "buffers_written": tuple(t.storage.position for t in writes if t.memory != "HBM"),
        "picoseconds": Numbers(1, round(seconds * 1e12)),
    }


def _load(builder: Builder, source: Tensor, mask: np.ndarray | None) -> dict[str, Any]:
    return {"accessed": _Accessed(source, mask)}


def _store(builder: Builder, target: Tensor, values: Value, mask: np.ndarray | None) -> dict[str, Any]:
    return {"accessed": _Accessed(target, mask), "values": values}


def _atomic(
    builder: Builder, target: Tensor, values: Value, mask: np.ndarray | None, operation: str
) -> dict[str, Any]:
    accessed = _Accessed(target, mask, frozenset({"atomic", "acquire", "release"}))
    return {"accessed": accessed, "values": values, "operation": operation}


def _transfer(builder: Builder, values: Value, source: str, destination: str, tensor: str) -> dict[str, Any]:
    return {
        "source": source,
        "destination": destination,
        "tensor": tensor,
        "shape": values.shape,
        "bytes": values.data[0].size * values.dtype.dtype.itemsize,
    }


def _dot(builder: Builder, left: Value, right: Value) -> dict[str, Any]:
    output = (left.shape[0], right.shape[1])
    return {"left": left.shape, "right": right.shape, "output": output, "dtype": str(left.dtype)}


def _reduce(builder: Builder, inputs: tuple[Value, ...], axis: int, combine: str) -> dict[str, Any]:
    shape = inputs[0].shape
    return {"combine": combine, "axis": axis, "input": shape, "output": shape[:axis] + shape[axis + 1 :]}


def _scan(builder: Builder, inputs: tuple[Value, ...], axis: int, combine: str, step: Any) -> dict[str, Any]:
    return {"combine": combine, "axis": axis, "input": inputs[0].shape, "reverse": False}


def _compute(name: str) -> Adapter:
    def adapter(builder: Builder, function: str, *operands: Value) -> dict[str, Any]:
        return {"name": name, "inputs": tuple(operand.shape for operand in operands)}

    return adapter


_OPERATIONS: dict[str, tuple[type[Op], Adapter]] = {
    "instruction": (Instruction, _instruction),
    "load": (Load, _load),
    "store": (Store, _store),
    "atomic": (Atomic, _atomic),
    "transfer": (Transfer, _transfer),
    "dot": (Dot, _dot),
    "reduce": (Reduce, _reduce),
    "scan": (Scan, _scan),
    **{name: (Compute, _compute(name)) for name in sorted(COMPUTED)},
}


@contextlib.contextmanager
def _patch_calls(manager: "ClientManager") -> Iterator[None]:
    with machine.running.kept():
        yield


def _here() -> Here:
    return machine.current().here()


NKI = DSL(
    name="nki",
    namespace=Builder,
    operations=_OPERATIONS,
    patch_calls=_patch_calls,
    patch_loops=machine.running.patch_loops,
    here=_here,
    loops_file=loops.__file__,
    client_options={"profiler": {"device": "Trainium2"}},
    checks_itself=True,
)
