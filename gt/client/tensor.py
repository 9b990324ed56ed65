"""The tensor that users hold: an id, a shape, a dtype, and gradient state. Never data, never a place."""

import operator
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np

from gt.client.autograd import GRAPH, TapeNode, grad_enabled
from gt.client.client import Client
from gt.errors import DTypeError, GraphError, ShapeError
from gt.ops import TABLE, Spec, dtypes, shapes

Number = bool | int | float
Size = SupportsIndex | Sequence[SupportsIndex]
"""Part of a shape, or a whole one: `f(2, 3)` and `f((2, 3))` mean the same."""


class RemoteValue:
    """A value on the server, freed there when nothing here refers to it any more."""

    __slots__ = ("client", "id")

    def __init__(self, client: Client, id: int):
        self.client = client
        self.id = id

    def __del__(self) -> None:
        self.client.free(self.id)


class Tensor:
    """A PyTorch-like tensor. Operations return at once; reading the data waits for it.

    >>> a = gt.tensor([1, 2, 3])
    >>> (a + 1).tolist()
    [2, 3, 4]
    """

    __slots__ = ("__weakref__", "_value", "dtype", "grad", "node", "requires_grad", "shape")
    # NumPy must leave `array * tensor` to us instead of looping over the elements.
    __array_priority__ = 1000

    def __init__(self, value: RemoteValue, shape: tuple[int, ...], dtype: str, requires_grad: bool = False):
        self._value = value
        self.shape = shape
        self.dtype = dtype
        self.requires_grad = check_grad(dtype, requires_grad)
        self.grad: Tensor | None = None
        self.node: TapeNode | None = None

    # --- issuing ops ---

    def _apply(self, op: str, *others: "Tensor", **attrs: Any) -> "Tensor":
        """Issue a row of the op table over this tensor and others; record it if a gradient may be asked."""
        inputs = (self, *others)
        spec = TABLE[op].infer(tuple(Spec(x.shape, x.dtype) for x in inputs), attrs)
        client = self._value.client
        id = client.apply(op, tuple(x.id for x in inputs), attrs)
        result = Tensor(RemoteValue(client, id), *spec)
        differentiable = TABLE[op].grad is not None and dtypes.is_float(spec.dtype)
        if differentiable and grad_enabled() and any(x.requires_grad for x in inputs):
            result.requires_grad = True
            result.node = GRAPH.record(op, inputs, result.detach(), attrs)
        return result

    def _unary_op(self, op: str, **attrs: Any) -> "Tensor":
        return self._apply(op, **attrs)

    def _binary_op(self, op: str, other: Any, reflected: bool = False) -> "Tensor":
        """`self op other`, or `other op self` if reflected; other may be a number or an array."""
        if isinstance(other, bool | int | float):
            if op == "matmul":
                return NotImplemented
            return self._apply(op, scalar=check_number(other), reflected=reflected)
        if isinstance(other, np.ndarray | np.generic):
            other = upload(self._value.client, np.asarray(other))
        if not isinstance(other, Tensor):
            return NotImplemented
        return other._apply(op, self) if reflected else self._apply(op, other)

    def __add__(self, other: Any) -> "Tensor":
        return self._binary_op("add", other)

    def __radd__(self, other: Any) -> "Tensor":
        return self._binary_op("add", other, reflected=True)

    def __sub__(self, other: Any) -> "Tensor":
        return self._binary_op("sub", other)

    def __rsub__(self, other: Any) -> "Tensor":
        return self._binary_op("sub", other, reflected=True)

    def __mul__(self, other: Any) -> "Tensor":
        return self._binary_op("mul", other)

    def __rmul__(self, other: Any) -> "Tensor":
        return self._binary_op("mul", other, reflected=True)

    def __truediv__(self, other: Any) -> "Tensor":
        return self._binary_op("truediv", other)

    def __rtruediv__(self, other: Any) -> "Tensor":
        return self._binary_op("truediv", other, reflected=True)

    def __pow__(self, other: Any) -> "Tensor":
        return self._binary_op("pow", other)

    def __rpow__(self, other: Any) -> "Tensor":
        return self._binary_op("pow", other, reflected=True)

    def __gt__(self, other: Any) -> "Tensor":
        return self._binary_op("gt", other)

    def __ge__(self, other: Any) -> "Tensor":
        return self._binary_op("ge", other)

    def __lt__(self, other: Any) -> "Tensor":
        return self._binary_op("lt", other)

    def __le__(self, other: Any) -> "Tensor":
        return self._binary_op("le", other)

    def __eq__(self, other: Any) -> "Tensor":  # type: ignore[override] - elementwise, as in PyTorch
        return self._binary_op("eq", other)

    def __ne__(self, other: Any) -> "Tensor":  # type: ignore[override] - elementwise, as in PyTorch
        return self._binary_op("ne", other)

    __hash__ = object.__hash__

    def __neg__(self) -> "Tensor":
        return self._unary_op("neg")

    def __matmul__(self, other: Any) -> "Tensor":
        return self._binary_op("matmul", other)

    def __rmatmul__(self, other: Any) -> "Tensor":
        return self._binary_op("matmul", other, reflected=True)

    def matmul(self, other: "Tensor") -> "Tensor":
        """The matrix product, also written `a @ b`."""
        return self @ other

    def exp(self) -> "Tensor":
        """e to the power of each element."""
        return self._unary_op("exp")

    def log(self) -> "Tensor":
        """The natural logarithm of each element."""
        return self._unary_op("log")

    def sqrt(self) -> "Tensor":
        """The square root of each element."""
        return self._unary_op("sqrt")

    def tanh(self) -> "Tensor":
        """The hyperbolic tangent of each element."""
        return self._unary_op("tanh")

    def sigmoid(self) -> "Tensor":
        """1 / (1 + exp(-x)) of each element."""
        return self._unary_op("sigmoid")

    def relu(self) -> "Tensor":
        """Each element, or 0 where it is negative."""
        return self._unary_op("relu")

    def to(self, dtype: str) -> "Tensor":
        """This tensor in another dtype; itself if it has that dtype already."""
        check_dtype(dtype)
        return self if dtype == self.dtype else self._unary_op("cast", dtype=dtype)

    def sum(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> "Tensor":
        """The sum over some dimensions, or over all."""
        return self._apply("sum", dim=self._dims(dim), keepdim=keepdim)

    def mean(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> "Tensor":
        """The mean over some dimensions, or over all."""
        return self._apply("mean", dim=self._dims(dim), keepdim=keepdim)

    def _dims(self, dim: int | Sequence[int] | None) -> tuple[int, ...] | None:
        if dim is None or dim == ():
            return None
        dims = (dim,) if isinstance(dim, int) else dim
        normal = tuple(shapes.normalize_dim(d, self.ndim) for d in dims)
        if len(set(normal)) != len(normal):
            raise ShapeError(f"a dimension appears more than once in dim={dim}")
        # A number has a dimension 0 by PyTorch's leave, but none to reduce.
        return normal if self.ndim else None

    def transpose(self, dim0: int, dim1: int) -> "Tensor":
        """This tensor with two dimensions swapped."""
        i, j = shapes.normalize_dim(dim0, self.ndim), shapes.normalize_dim(dim1, self.ndim)
        return self._apply("transpose", dim0=i, dim1=j)

    @property
    def T(self) -> "Tensor":
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ShapeError(
                f"T is for matrices, and this tensor has shape {list(self.shape)}; use transpose"
            )
        return self.transpose(0, 1)

    def reshape(self, *shape: Size) -> "Tensor":
        """The same elements in another shape; one size may be -1."""
        return self._apply("reshape", shape=shapes.reshape(self.shape, as_shape(shape)))

    view = reshape

    def expand(self, *shape: Size) -> "Tensor":
        """This tensor repeated along its dimensions of size 1; -1 keeps a size."""
        return self._apply("expand", shape=shapes.expand(self.shape, as_shape(shape)))

    # --- gradients ---

    def backward(self, gradient: "Tensor | np.ndarray | None" = None, retain_graph: bool = False) -> None:
        """Compute the gradient of this tensor by every leaf it came from, and add it to their `grad`."""
        if not self.requires_grad:
            raise GraphError(
                "element 0 of tensors does not require grad and does not have a grad_fn. "
                "Was it computed from a tensor made with requires_grad=True, and outside no_grad()?"
            )
        if gradient is None:
            if self.numel() != 1:
                raise GraphError(
                    f"grad can be implicitly created only for scalar outputs, and this tensor has shape "
                    f"{list(self.shape)}: pass backward(gradient)"
                )
            attrs = {"shape": self.shape, "value": 1, "dtype": self.dtype}
            gradient = create(self._value.client, "full", **attrs)
        elif not isinstance(gradient, Tensor):
            gradient = upload(self._value.client, np.asarray(gradient, self.dtype))
        if gradient.shape != self.shape:
            raise ShapeError(
                f"Mismatch in shape: the gradient has shape {list(gradient.shape)} "
                f"and the output has shape {list(self.shape)}"
            )
        GRAPH.backward(self, gradient, retain_graph)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Make this a leaf whose gradient is wanted (or not), in place."""
        if self.node is not None:
            raise GraphError("you can only change requires_grad flags of leaf variables; detach() first")
        self.requires_grad = check_grad(self.dtype, requires_grad)
        return self

    def detach(self) -> "Tensor":
        """The same value, outside the graph."""
        return Tensor(self._value, self.shape, self.dtype)

    # --- reading ---

    @property
    def id(self) -> int:
        """What the instruction stream calls this tensor."""
        return self._value.id

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def numel(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape))

    @property
    def data(self) -> "Tensor":
        """This tensor without its gradient: `x.data.numpy()` reads the values."""
        return self.detach()

    def numpy(self) -> np.ndarray:
        """The values. Waits for them."""
        if self.requires_grad:
            raise GraphError(
                "Can't call numpy() on a tensor that requires grad. Use x.data.numpy() or x.detach().numpy()"
            )
        return self._value.client.fetch(self.id)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a tensor's data is elsewhere: reading it always makes a copy")
        return self.detach().numpy().astype(dtype or self.dtype, copy=False)

    def item(self) -> Number:
        """The value of a tensor with one element, as a Python number. Waits for it."""
        if self.numel() != 1:
            raise ShapeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.detach().numpy().item()

    def tolist(self) -> Any:
        """The values as nested lists. Waits for them."""
        return self.detach().numpy().tolist()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ShapeError(f"Boolean value of a tensor with shape {list(self.shape)} is ambiguous")
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator["Tensor"]:
        raise TypeError("iterating over a tensor's rows is not supported yet; use x.tolist()")

    def __repr__(self) -> str:
        values = np.array2string(self.detach().numpy(), separator=", ", prefix="tensor(")
        usual = self.dtype in ("float32", "int64", "bool")
        dtype = "" if usual else f", dtype={self.dtype}"
        grad = ", requires_grad=True" if self.requires_grad else ""
        return f"tensor({values}{dtype}{grad})"


def as_shape(sizes: tuple[Size, ...]) -> tuple[int, ...]:
    """The shape that was given, in one piece or in several."""
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
    try:
        return tuple(operator.index(n) for n in given)  # type: ignore[arg-type] - it raises on what is none
    except TypeError:
        raise TypeError(f"a shape is whole numbers, and this is {given!r}") from None


def check_number(value: Number) -> Number:
    """A number, if it can travel."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} does not fit in 64 bits, which is what an integer has here")
    return value


def check_grad(dtype: str, requires_grad: bool) -> bool:
    """`requires_grad`, if a tensor of this dtype can have a gradient."""
    if requires_grad and not dtypes.is_float(dtype):
        raise DTypeError(f"only floating point tensors can require gradients, and this one is {dtype}")
    return requires_grad


def check_dtype(dtype: str) -> str:
    """A dtype, if it is one."""
    if dtype not in dtypes.DTYPES:
        raise DTypeError(f"no dtype is called {dtype!r}; there are {', '.join(dtypes.DTYPES)}")
    return dtype


def create(client: Client, op: str, requires_grad: bool = False, **attrs: Any) -> Tensor:
    """Issue an op that makes a tensor out of nothing."""
    spec = TABLE[op].infer((), attrs)
    if min(spec.shape, default=0) < 0:
        raise ShapeError(f"a shape has no negative sizes, and this one is {list(spec.shape)}")
    return Tensor(RemoteValue(client, client.apply(op, (), attrs)), *spec, requires_grad)


def upload(client: Client, array: np.ndarray, requires_grad: bool = False) -> Tensor:
    """Send an array's data to the server."""
    check_dtype(array.dtype.name)
    return Tensor(RemoteValue(client, client.create(array)), array.shape, array.dtype.name, requires_grad)
