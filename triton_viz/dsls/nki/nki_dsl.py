"""NKI's `DSL`: for each method of the builder, the type of its record and its adapter."""

import contextlib
import functools
from typing import Any

import msgspec
import numpy as np

from triton_viz.core.data import Atomic, Compute, Dot, Load, Op, Reduce, Scan, Store, Transfer
from triton_viz.core.records.accesses import Tensors, find_accessed_elements
from triton_viz.core.records.chip import Instruction
from triton_viz.core.records.columns import AccessedElements, Numbers
from triton_viz.dsls.base import DSL, Accessed, Adapter, Here
from triton_viz.dsls.nki import nki_loops, nki_machine, nki_modules, program_launch
from triton_viz.dsls.nki.dtypes import cast
from triton_viz.dsls.nki.nki_builder import COMPUTED, Builder
from triton_viz.dsls.nki.tensor import Tensor, as_value
from triton_viz.executor.affine import Box
from triton_viz.executor.memory import Mask
from triton_viz.executor.value import Value


def compact(mask: np.ndarray | None) -> Mask:
    """A mask in its most compact form: None if it is true everywhere, bounds if it is a box."""
    if mask is None or mask.all():
        return None
    if not mask.ndim:
        return mask.reshape(1)
    bounds: list[tuple[np.ndarray, np.ndarray] | None] = []
    count = 1
    for axis, size in enumerate(mask.shape):
        along = mask.any(axis=tuple(other for other in range(mask.ndim) if other != axis))
        positions = np.flatnonzero(along)
        start, end = (int(positions[0]), int(positions[-1]) + 1) if len(positions) else (0, 0)
        count *= end - start
        bounds.append(None if (start, end) == (0, size) else (np.array([start]), np.array([end])))
    return Box(tuple(bounds), mask.shape) if count == int(mask.sum()) else mask[None]


class _Accessed(Accessed):
    """An access to a known tensor: elements outside of it are not attributed to another tensor."""

    def __init__(self, tensor: Tensor, mask: np.ndarray | None, semantics: frozenset[str] = frozenset()):
        def packed(values: Value) -> np.ndarray:
            return cast(values.data, tensor.dtype)

        launched = nki_machine.current().launched
        super().__init__(tensor.pointers(), compact(mask), launched, packed, tensor.itemsize, semantics)
        self._tensor = tensor.storage.info

    @functools.cached_property
    def elements(self) -> AccessedElements:
        """The accessed elements."""
        assert self._tensor is not None
        anywhere = msgspec.structs.replace(self._tensor, storage=(-(2**62), 2**62))
        return find_accessed_elements(self.pointers, self.mask, self.width, Tensors([anywhere]))


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


def _here() -> Here:
    return nki_machine.current().here()


def _zeros(source: Tensor, mask: np.ndarray | None) -> Value:
    return as_value(np.zeros(source.shape, source.dtype), source.dtype)


def _trace(kernel: Any, clients: Any) -> Any:
    from triton_viz.dsls.nki.nki_trace import NKITrace  # it imports the core, which imports this

    return NKITrace(kernel, clients)


NKI = DSL(
    name="nki",
    namespace=Builder,
    operations=_OPERATIONS,
    arithmetic={name: count for name, count in COMPUTED.items() if count},
    patch_calls=contextlib.nullcontext,
    patch_loops=nki_machine.running.patch_loops,
    here=_here,
    loops_file=nki_loops.__file__,
    client_options={"profiler": {"device": "Trainium2"}},
    checks_itself=True,
    launch=program_launch.launch,
    trace=_trace,
    zeros=_zeros,
    is_running=nki_machine.is_running,
    kernel_classes=(nki_modules.Kernel,),
    install=nki_modules.install,
)
