"""Calling conventions: how the arguments of a method become the inputs and attributes of an op.

A row of the op table names one of them for each of its methods. Each function here makes the method of one
op. The parameters of the methods have PyTorch's names; NumPy's are added by `gt.tensors.numpy_names`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor

Dims = int | Sequence[int] | None


def unary(op: str) -> Callable[..., Any]:
    """`x.exp()`: no argument."""

    def method(self: Any) -> "Tensor":
        return self._unary_op(op)

    return method


def operand(op: str) -> Callable[..., Any]:
    """`x.mul(other)`: a tensor, a number or an array."""

    def method(self: Any, other: Any) -> "Tensor":
        return self._with(op, other)

    return method


def tensor(op: str) -> Callable[..., Any]:
    """`x.maximum(other)`: a tensor or an array, but no number."""

    def method(self: Any, other: "Tensor") -> "Tensor":
        return self._with_tensor(op, other)

    return method


def reduce(op: str) -> Callable[..., Any]:
    """`x.amax(dim, keepdim)`: over one dimension, several or all."""

    def method(self: Any, dim: Dims = None, keepdim: bool = False) -> "Tensor":
        return self._reduce(op, dim, keepdim)

    return method


def reduce_some(op: str) -> Callable[..., Any]:
    """`x.logsumexp(dim, keepdim)`: over dimensions that are required."""

    def method(self: Any, dim: Dims, keepdim: bool = False) -> "Tensor":
        return self._reduce(op, dim, keepdim)

    return method


def reduce_with_dtype(op: str) -> Callable[..., Any]:
    """`x.sum(dim, keepdim, dtype=...)`: the elements are cast first."""

    def method(self: Any, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> "Tensor":
        return self._reduce(op, dim, keepdim, dtype)

    return method


def reduce_one(op: str) -> Callable[..., Any]:
    """`x.argmax(dim, keepdim)`: over one dimension or all."""

    def method(self: Any, dim: int | None = None, keepdim: bool = False) -> "Tensor":
        return self._reduce_one(op, dim, keepdim)

    return method


def reduce_one_with_dtype(op: str) -> Callable[..., Any]:
    """`x.prod(dim, keepdim, dtype=...)`: over one dimension or all; the elements are cast first."""

    def method(self: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> "Tensor":
        return self._reduce_one(op, dim, keepdim, dtype)

    return method


def along(op: str) -> Callable[..., Any]:
    """`x.softmax(dim, dtype)`: along a dimension, with a result of the same shape."""

    def method(self: Any, dim: int, dtype: Any = None) -> "Tensor":
        return self._along(op, dim, dtype)

    return method


CONVENTIONS: dict[str, Callable[[str], Callable[..., Any]]] = {
    "unary": unary,
    "operand": operand,
    "tensor": tensor,
    "reduce": reduce,
    "reduce some": reduce_some,
    "reduce with dtype": reduce_with_dtype,
    "reduce one": reduce_one,
    "reduce one with dtype": reduce_one_with_dtype,
    "along": along,
}
"""The conventions, by their names in rows of the op table."""

OF_KIND = {"UnaryOp": "unary", "BinaryOp": "operand", "ReduceOp": "reduce"}
"""The default convention of each kind of op."""
