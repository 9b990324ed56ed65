"""Methods that look at one element at a time."""

from typing import TYPE_CHECKING, Any

from gt.client.base import TensorBase, check_dtype

if TYPE_CHECKING:
    from gt.client.tensor import Tensor


class ElementwiseMethods(TensorBase):
    """Arithmetic, comparison and mathematical functions."""

    __slots__ = ()

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

    def to(self, dtype: Any) -> "Tensor":
        """This tensor in another dtype; itself if it has that dtype already."""
        name = check_dtype(dtype)
        if name == self._value.spec.dtype:
            return self  # type: ignore[return-value] - every TensorBase is a Tensor
        return self._apply("cast", dtype=name)
