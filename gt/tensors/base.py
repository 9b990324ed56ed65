"""The base class of tensors, which issues ops."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gt.autograd.graph import GRAPH, Edge, Leaf, is_grad_enabled, is_in_backward
from gt.client.client import Client
from gt.errors import DTypeError, GTError, ShapeError
from gt.ops import TABLE, Spec, dtypes
from gt.ops.run_time import fixed
from gt.stream.instructions import Op

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor

Number = bool | int | float

_PYTHON_NUMBERS = (bool, int, float)
_frame = sys._getframe


class Value:
    """A value on the server, freed there when its last reference in the client is dropped."""

    __slots__ = ("client", "id", "site", "spec")

    def __init__(self, client: Client, id: int, spec: Spec, site: int) -> None:
        self.client = client
        self.id = id
        self.spec = spec
        self.site = site
        """The number of the line of the user's code that made it."""

    def __del__(self) -> None:
        self.client.emit(self.id)

    def tensor(self) -> "Tensor":
        """A tensor of this value, without history."""
        return TensorBase.kind(self, None)


class TensorBase:
    """A value, and the edge that its gradient flows along. It has neither data nor a worker."""

    __slots__ = ("__weakref__", "_edge", "_value")
    kind: "type[Tensor]"
    """The class of an op's result."""
    view_of: "Callable[[TensorBase, str, dict[str, Any], Tensor], Tensor]"
    """Makes the result of an op that is a view of its input."""

    def __init__(self, value: Value, edge: Edge | None) -> None:
        self._value = value
        self._edge = edge

    def _apply(self, op: str, *others: "TensorBase", **attrs: Any) -> "Tensor":
        """Issue an op on this tensor and others; record it on the tape if an input requires a gradient."""
        result = apply(op, (self, *others), attrs or None)
        if not others and TABLE[op].put_back is not None and not is_in_backward():
            return TensorBase.view_of(self, op, attrs, result)
        return result

    def _unary_op(self, op: str) -> "Tensor":
        """Issue an op on this tensor alone."""
        value, edge = self._value, self._edge
        key = (op, value.spec)
        known = _inferred.get(key) or _infer(op, (value.spec,), None, key)
        result = issue(value.client, op, (value.id,), None, known[0])
        if edge is not None:
            edge = _record(op, (value, result), (edge,), None, known[1])
        return TensorBase.kind(result, edge)

    def _binary_op(self, op: str, other: Any, reflected: bool = False) -> "Tensor":
        """`self op other`, or `other op self` if reflected; other may be a number or an array."""
        if isinstance(other, TensorBase):
            left, right = (other, self) if reflected else (self, other)
            a, b = left._value, right._value
            key = (op, a.spec, b.spec)
            known = _inferred.get(key) or _infer(op, (a.spec, b.spec), None, key)
            if a.client is not b.client:
                raise GTError(MIXED.format(op=op))
            result = issue(a.client, op, (a.id, b.id), None, known[0])
            edge = None
            if left._edge is not None or right._edge is not None:
                edge = _record(op, (a, b, result), (left._edge, right._edge), None, known[1])
            return TensorBase.kind(result, edge)
        if isinstance(other, bool | int | float):
            value, edge = self._value, self._edge
            attrs = {"scalar": check_number(other), "reflected": reflected}
            # Whether a power is allowed depends on the number itself, and not only on its type.
            key = None if op == "pow" else (op, value.spec, type(other))
            known = _inferred.get(key) or _infer(op, (value.spec,), attrs, key)
            result = issue(value.client, op, (value.id,), attrs, known[0])
            if edge is not None:
                edge = _record(op, (value, result), (edge,), attrs, known[1])
            return TensorBase.kind(result, edge)
        if isinstance(other, np.ndarray | np.generic):
            return self._binary_op(op, upload(self._value.client, np.asarray(other)), reflected)
        return NotImplemented


def apply(op: str, inputs: tuple[TensorBase, ...], attrs: dict[str, Any] | None) -> "Tensor":
    """Issue an op; record it on the tape if an input requires a gradient."""
    values = tuple([x._value for x in inputs])
    specs = tuple([value.spec for value in values])
    key = (op, specs, _kind(attrs)) if attrs else (op, specs)
    try:
        known = _inferred.get(key) or _infer(op, specs, attrs, key)
    except TypeError:  # an attribute that cannot be a key
        known = _infer(op, specs, attrs, None)
    client = values[0].client
    for value in values:
        if value.client is not client:
            raise GTError(MIXED.format(op=op))
    result = issue(client, op, tuple([value.id for value in values]), attrs, known[0])
    edge = _record(op, (*values, result), tuple([x._edge for x in inputs]), attrs, known[1])
    return TensorBase.kind(result, edge)


def _kind(attrs: dict[str, Any]) -> tuple[Any, ...]:
    """A key of the attributes that the shape and dtype of an op's result can depend on.

    It leaves out the values of run-time attributes, but has all types: for Python, 1, 1.0 and True are equal.
    """
    return (*fixed(attrs), *map(type, attrs.values()))


_inferred: dict[tuple[Any, ...] | None, tuple[Spec, bool]] = {}


def _infer(op: str, specs: tuple[Spec, ...], attrs: dict[str, Any] | None, key: Any) -> tuple[Spec, bool]:
    """The result's spec, and whether a gradient can flow back from it; remembered under `key`."""
    row = TABLE[op]
    spec = row.infer(specs, attrs or {})
    known = spec, row.differentiable and dtypes.is_float(spec.dtype)
    if key is not None:
        if len(_inferred) > 100_000:
            _inferred.clear()
        _inferred[key] = known
    return known


def issue(
    client: Client, op: str, inputs: tuple[int, ...], attrs: dict[str, Any] | None, spec: Spec
) -> Value:
    """Append an instruction to the stream; returns the value that it will create."""
    number = client.next_id()
    # At least three frames are gt's own: this one, its caller, and a method.
    frame = _frame(3)
    site = client.sites.get((id(frame.f_code), frame.f_lasti), -1)
    if site < 0:
        site = client.site(frame)
    client.emit(Op(number, op, inputs, attrs, site))
    value = Value(client, number, spec, site)  # before something is sent: that may raise
    if number >= client.next_flush:
        client.next_flush = number + client.flush_ready()
    return value


def _record(
    op: str,
    values: tuple[Value, ...],
    edges: tuple[Edge | None, ...],
    attrs: dict[str, Any] | None,
    differentiable: bool,
) -> Edge | None:
    """Record an op on the tape if one of its inputs requires a gradient and the op has one."""
    if not differentiable or not is_grad_enabled():
        return None
    wanted = tuple([edge if edge is not None and edge.requires_grad else None for edge in edges])
    return GRAPH.record(op, values, wanted, attrs) if any(wanted) else None


MIXED = (
    "{op} mixes tensors of two connections. A tensor belongs to the server it was created on: after "
    "connect() or init(), create it again, as in gt.tensor(old.numpy())"
)


def check_number(value: Number) -> Number:
    """A number as it is encoded in an instruction. Raises OverflowError if it does not fit in 64 bits."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} does not fit in 64 bits, the size of integers")
    # NumPy's float64 is a subclass of float that cannot be encoded in an instruction.
    return value if type(value) in _PYTHON_NUMBERS else float(value)


def check_dtype(dtype: Any) -> str:
    """The name of a dtype. Raises DTypeError if there is no such dtype."""
    name = dtypes.find(dtype)
    if name is None:
        raise DTypeError(f"no dtype is called {str(dtype)!r}; there are {', '.join(dtypes.DTYPES)}")
    return name


def leaf(dtype: str, requires_grad: bool) -> Leaf | None:
    """The gradient state of a tensor that the user creates."""
    if not requires_grad:
        return None
    if not dtypes.is_float(dtype):
        raise DTypeError(f"only floating point tensors can require gradients, but this one is {dtype}")
    return Leaf(True)


def upload(client: Client, array: np.ndarray, requires_grad: bool = False, owned: bool = False) -> "Tensor":
    """Send an array's data to the server. Unless it is `owned`, the array may change afterwards."""
    dtype = check_dtype(array.dtype)
    edge = leaf(dtype, requires_grad)
    value = Value(client, client.create(array, owned), Spec(array.shape, dtype), client.site(_frame(1)))
    return TensorBase.kind(value, edge)


def create(client: Client, op: str, requires_grad: bool = False, **attrs: Any) -> "Tensor":
    """Issue an op that creates a tensor without inputs."""
    spec = TABLE[op].infer((), attrs)
    if min(spec.shape, default=0) < 0:
        raise ShapeError(f"a shape cannot have negative sizes, but got {list(spec.shape)}")
    edge = leaf(spec.dtype, requires_grad)
    return TensorBase.kind(issue(client, op, (), attrs, spec), edge)
