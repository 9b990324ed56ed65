"""Convolution and pooling."""

import math
from collections.abc import Sequence

from gt.errors import ShapeError
from gt.tensors.numpy_names import with_numpy_names
from gt.tensors.tensor import Tensor

__all__ = ["conv1d", "conv2d", "max_pool2d"]

Size = int | Sequence[int]
"""One number for both height and width, or one for each."""


def _pair(size: Size) -> tuple[int, int]:
    given = (size,) if isinstance(size, int) else tuple(size)
    if len(given) == 1:
        return given[0], given[0]
    if len(given) != 2:
        raise ShapeError(f"expected one or two numbers, for height and width, but got {list(given)}")
    return given[0], given[1]


def _as_batch(x: Tensor) -> Tensor:
    """Add a batch dimension to a single image."""
    return x.unsqueeze(0) if x.ndim == 3 else x


@with_numpy_names
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: str | Size = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """A 2D convolution of images, or of a batch of them."""
    x, steps, apart = _as_batch(input), _pair(stride), _pair(dilation)
    if isinstance(padding, str):
        x, around = _padded_by_name(x, weight, padding, steps, apart)
    else:
        around = _pair(padding)
    inputs = (weight,) if bias is None else (weight, bias)
    result = x._apply("conv2d", *inputs, stride=steps, padding=around, dilation=apart, groups=groups)
    return result.squeeze(0) if input.ndim == 3 else result


def _padded_by_name(
    x: Tensor, weight: Tensor, padding: str, stride: tuple[int, int], dilation: tuple[int, int]
) -> tuple[Tensor, tuple[int, int]]:
    if padding not in ("same", "valid"):
        raise ShapeError(f"Invalid padding string: {padding!r}")
    if padding == "valid":
        return x, (0, 0)
    if stride != (1, 1):
        raise ShapeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(n % 2 for n in total):
        # One side gets one more than the other, which the op has no attribute for: pad first.
        (top, left), (bottom, right) = ([n // 2 for n in total], [n - n // 2 for n in total])
        return x.pad((left, right, top, bottom)), (0, 0)
    return x, (total[0] // 2, total[1] // 2)


@with_numpy_names
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """A 1D convolution, computed as a 2D convolution of images of height 1."""
    if input.ndim not in (2, 3):
        raise ShapeError(
            "Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: "
            f"{list(input.shape)}"
        )
    (s,), (d,) = ((n,) if isinstance(n, int) else n for n in (stride, dilation))
    if not isinstance(padding, str):
        padding = (0, padding if isinstance(padding, int) else padding[0])
    flat = conv2d(input.unsqueeze(-2), weight.unsqueeze(-2), bias, (1, s), padding, (1, d), groups)
    return flat.squeeze(-2)


@with_numpy_names
def max_pool2d(
    input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1
) -> Tensor:
    """The largest element of each window."""
    steps = kernel_size if stride is None else stride
    window = {"kernel": _pair(kernel_size), "stride": _pair(steps), "padding": _pair(padding)}
    result = _as_batch(input)._apply("max_pool2d", **window, dilation=_pair(dilation))
    return result.squeeze(0) if input.ndim == 3 else result


@with_numpy_names
def avg_pool2d(input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> Tensor:
    """The mean of each window, in which padding counts as zeros."""
    steps = kernel_size if stride is None else stride
    window = {"kernel": _pair(kernel_size), "stride": _pair(steps), "padding": _pair(padding)}
    result = _as_batch(input)._apply("avg_pool2d", **window)
    return result.squeeze(0) if input.ndim == 3 else result


@with_numpy_names
def adaptive_avg_pool2d(input: Tensor, output_size: Size) -> Tensor:
    """The means of evenly spread windows, one for each element of the output size."""
    if input.ndim not in (3, 4):
        raise ShapeError(f"adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {list(input.shape)}")
    result = input
    for dim, n in zip((-2, -1), _pair(output_size), strict=True):
        size = input.shape[dim]
        windows = [(i * size // n, math.ceil((i + 1) * size / n)) for i in range(n)]
        result = _means(result, dim, windows)
    return result


def _means(x: Tensor, dim: int, windows: list[tuple[int, int]]) -> Tensor:
    """The means of these parts of a dimension. Consecutive parts of one length are computed by one op."""
    from gt.tensors.functions.shaping import cat

    size, length = x.shape[dim], windows[0][1]
    if length * len(windows) == size:
        return x.unflatten(dim, (len(windows), length)).mean(dim=dim)
    return cat([x.narrow(dim, a, b - a).mean(dim=dim, keepdim=True) for a, b in windows], dim)
