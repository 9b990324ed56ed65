"""Layers: PyTorch's, with PyTorch's arguments, parameter names and initial distributions."""

import math

from gt.nn import functional, init
from gt.nn.module import Module, Parameter
from gt.tensors.functions.creation import arange, ones, zeros
from gt.tensors.functions.random_numbers import check_probability
from gt.tensors.tensor import Tensor

__all__ = [
    "AvgPool2d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "Identity",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "RMSNorm",
]

Size = int | tuple[int, int]


class Identity(Module):
    """Returns its input."""

    def forward(self, x: Tensor) -> Tensor:
        """The same tensor."""
        return x


class Flatten(Module):
    """Several dimensions merged into one: by default, all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        """The same elements."""
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Linear(Module):
    """A fully connected layer: `x @ weight.T + bias`."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: str = "float32"
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(zeros(out_features, in_features, dtype=dtype))
        self.bias = Parameter(zeros(out_features, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        _reset(self.weight, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes that are printed."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


def _reset(weight: Parameter, bias: Parameter | None) -> None:
    """PyTorch's initial values: uniform, with a bound of 1 / sqrt(fan_in)."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        bound = 1 / math.sqrt(max(init.fans(weight)[0], 1))
        init.uniform_(bias, -bound, bound)


class Embedding(Module):
    """A table of vectors, which are looked up by index."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError("Padding_idx must be within num_embeddings")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(zeros(num_embeddings, embedding_dim, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values; those of the padding are zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            padding = arange(self.num_embeddings).reshape(-1, 1) == self.padding_idx
            self.weight.data = self.weight.data.masked_fill(padding, 0)

    def forward(self, x: Tensor) -> Tensor:
        """The vector of each index."""
        return functional.embedding(x, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """The sizes that are printed."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def _shape(normalized_shape: int | tuple[int, ...] | list[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    """The last dimensions normalized to mean 0 and variance 1, then a learned scale and offset."""

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...] | list[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter(ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None
        self.bias = (
            Parameter(zeros(self.normalized_shape, dtype=dtype)) if elementwise_affine and bias else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    """The last dimensions divided by their root mean square, then a learned scale."""

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...] | list[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter(ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


def _pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


class Conv2d(Module):
    """A 2D convolution of images with learned weights."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = _pair(kernel_size), _pair(stride), _pair(dilation)
        self.padding = padding if isinstance(padding, str) else _pair(padding)
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(zeros(shape, dtype=dtype))
        self.bias = Parameter(zeros(out_channels, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        _reset(self.weight, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        return functional.conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        """The settings that are printed."""
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0, 0):
            text += f", padding={self.padding}"
        return text if self.bias is not None else f"{text}, bias=False"


class MaxPool2d(Module):
    """The largest of each window of an image."""

    def __init__(
        self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        return functional.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of an image."""

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        return functional.avg_pool2d(x, self.kernel_size, self.stride, self.padding)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class Dropout(Module):
    """While training, elements set to zero at random, and the others divided by 1 - p."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        check_probability(p)
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        return functional.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"p={self.p}"
