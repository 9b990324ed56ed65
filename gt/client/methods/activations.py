"""Activations."""

from typing import TYPE_CHECKING, Any

from gt.client.base import Number
from gt.client.methods.elementwise import ElementwiseMethods
from gt.errors import ArgumentError
from gt.ops import shapes

if TYPE_CHECKING:
    from gt.client.tensor import Tensor


class ActivationMethods(ElementwiseMethods):
    """What networks put between their layers."""

    __slots__ = ()

    def sigmoid(self) -> "Tensor":
        """1 / (1 + exp(-x)) of each element."""
        return self._unary_op("sigmoid")

    def relu(self) -> "Tensor":
        """Each element, or 0 where it is negative."""
        return self._unary_op("relu")

    def relu6(self) -> "Tensor":
        """Each element, kept between 0 and 6."""
        return self.hardtanh(0, 6)

    def hardtanh(self, min_val: Number = -1.0, max_val: Number = 1.0) -> "Tensor":
        """Each element, kept between two numbers; the gradient is 0 at the bounds and beyond."""
        return self._apply("hardtanh", min_val=min_val, max_val=max_val)

    def leaky_relu(self, negative_slope: float = 0.01) -> "Tensor":
        """Each element, or a small part of it where it is negative."""
        return self._apply("leaky_relu", negative_slope=negative_slope)

    def elu(self, alpha: float = 1.0) -> "Tensor":
        """Each element, or alpha * (exp(x) - 1) where it is negative."""
        return self._apply("elu", alpha=alpha)

    def selu(self) -> "Tensor":
        """The elu that keeps mean and variance through the layers."""
        return self.elu(1.6732632423543772) * 1.0507009873554805

    def gelu(self, approximate: str = "none") -> "Tensor":
        """Each element times the chance that a normal variable is below it."""
        if approximate not in ("none", "tanh"):
            raise ArgumentError(f"approximate argument must be either none or tanh, not {approximate!r}")
        return self._apply("gelu", approximate=approximate)

    def silu(self) -> "Tensor":
        """Each element times its sigmoid."""
        return self._unary_op("silu")

    def mish(self) -> "Tensor":
        """Each element times the tanh of its softplus."""
        return self * self.softplus().tanh()

    def softplus(self, beta: float = 1.0, threshold: float = 20.0) -> "Tensor":
        """log(1 + exp(x)), a smooth relu; the element itself where x * beta is above the threshold."""
        return self._apply("softplus", beta=beta, threshold=threshold)

    def logsigmoid(self) -> "Tensor":
        """The logarithm of the sigmoid, exact also where that rounds to 0."""
        return -(-self).softplus(threshold=float("inf"))

    def softsign(self) -> "Tensor":
        """x / (1 + abs(x)) of each element."""
        return self / (self.abs() + 1)

    def hardsigmoid(self) -> "Tensor":
        """A sigmoid of straight lines."""
        return (self + 3).relu6() / 6

    def hardswish(self) -> "Tensor":
        """Each element times its hardsigmoid."""
        return self * self.hardsigmoid()

    def softmax(self, dim: int, dtype: Any = None) -> "Tensor":
        """exp(x) as a share of its sum along a dimension."""
        return self._along("softmax", dim, dtype)

    def log_softmax(self, dim: int, dtype: Any = None) -> "Tensor":
        """The logarithm of the softmax, exact also where that rounds to 0."""
        return self._along("log_softmax", dim, dtype)

    def softmin(self, dim: int, dtype: Any = None) -> "Tensor":
        """The softmax of `-x`."""
        return (-self).softmax(dim, dtype)

    def _along(self, op: str, dim: int, dtype: Any) -> "Tensor":
        x = self if dtype is None else self._cast(dtype)
        return x._apply(op, dim=shapes.normalize_dim(dim, len(self._value.spec.shape)))
