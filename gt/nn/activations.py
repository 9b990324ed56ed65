"""Activations as modules."""

from gt.nn import functional
from gt.nn.module import Module
from gt.tensors.tensor import Tensor

__all__ = [
    "ELU",
    "GELU",
    "LeakyReLU",
    "LogSoftmax",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
]


class ReLU(Module):
    """Each element, or 0 where it is negative."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.relu(x)


class LeakyReLU(Module):
    """Each element, or a small part of it where it is negative."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """Each element, or `alpha * (exp(x) - 1)` where it is negative."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.elu(x, self.alpha)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"alpha={self.alpha}"


class GELU(Module):
    """Each element times the probability that a standard normal variable is below it."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """Each element times its sigmoid."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.silu(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.sigmoid(x)


class Softplus(Module):
    """log(1 + exp(x))."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.softplus(x)


class Softmax(Module):
    """The softmax along a dimension: exp(x) divided by its sum."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.softmax(x, self.dim)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of the softmax along a dimension."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functional.log_softmax(x, self.dim)
