"""Activations."""

from typing import TYPE_CHECKING, Any

from gt.ops import shapes
from gt.tensors.api import api
from gt.tensors.methods.elementwise import ElementwiseMethods

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor


class ActivationMethods(ElementwiseMethods):
    """Activations that are composed of other ops, and the convention of softmax."""

    __slots__ = ()

    def relu6(self) -> "Tensor":
        """Each element, clamped to [0, 6]."""
        return self.hardtanh(0, 6)

    @api()
    def selu(self) -> "Tensor":
        """scale * elu(x), with the constants of self-normalizing networks."""
        return self.elu(1.6732632423543772) * 1.0507009873554805

    def mish(self) -> "Tensor":
        """Each element times the tanh of its softplus."""
        return self * self.softplus().tanh()

    def logsigmoid(self) -> "Tensor":
        """The logarithm of the sigmoid, accurate also where the sigmoid rounds to 0."""
        return -(-self).softplus(threshold=float("inf"))

    def softsign(self) -> "Tensor":
        """x / (1 + abs(x)) of each element."""
        return self / (self.abs() + 1)

    def hardsigmoid(self) -> "Tensor":
        """A piecewise linear approximation of the sigmoid: relu6(x + 3) / 6."""
        return (self + 3).relu6() / 6

    def hardswish(self) -> "Tensor":
        """Each element times its hardsigmoid."""
        return self * self.hardsigmoid()

    def softmin(self, dim: int, dtype: Any = None) -> "Tensor":
        """The softmax of `-x`."""
        return (-self).softmax(dim, dtype)

    def _along(self, op: str, dim: int, dtype: Any) -> "Tensor":
        x = self if dtype is None else self._cast(dtype)
        return x._apply(op, dim=shapes.normalize_dim(dim, len(self._value.spec.shape)))
