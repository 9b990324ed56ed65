"""Convolution and pooling that NumPy and JAX share.

Based on two functions: `_windows` returns, for each position in a window, that element of every window
(im2col); `_put_back` adds such elements up into an image again (col2im).
"""

from collections.abc import Iterator, Sequence
from typing import Any

Pair = Sequence[int]


def _positions(kernel: Pair, count: Pair, stride: Pair, dilation: Pair) -> Iterator[tuple[Any, ...]]:
    """For each position in a window, the index of that element in all windows."""
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilation[0], j * dilation[1]
            bottom, right = top + (count[0] - 1) * stride[0] + 1, left + (count[1] - 1) * stride[1] + 1
            yield (..., slice(top, bottom, stride[0]), slice(left, right, stride[1]))


def _windows(
    xp: Any, x: Any, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, fill: float = 0
) -> Any:
    """From (batch, channels, h, w) to (positions in a window, batch, channels, rows and columns of
    windows)."""
    around = ((0, 0), (0, 0), *((p, p) for p in padding))
    padded = xp.pad(x, around, constant_values=fill)
    sizes = zip(padded.shape[2:], kernel, stride, dilation, strict=True)
    count = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in sizes]
    return xp.stack([padded[key] for key in _positions(kernel, count, stride, dilation)])


def _put_back(
    xp: Any, parts: Any, shape: Sequence[int], kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> Any:
    """The reverse: each element of the image is the sum of its copies in windows."""
    height, width = (n + 2 * p for n, p in zip(shape[2:], padding, strict=True))
    result = xp.zeros((*shape[:2], height, width), parts.dtype)
    for part, key in zip(parts, _positions(kernel, parts.shape[-2:], stride, dilation), strict=True):
        if hasattr(result, "at"):  # an array of JAX never changes
            result = result.at[key].add(part)
        else:
            result[key] += part
    return result[:, :, padding[0] : height - padding[0], padding[1] : width - padding[1]]


def conv2d(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Any:
    seen = _grouped_windows(xp, x, weight.shape, stride, padding, dilation, groups)
    result = xp.einsum("kngihw,goik->ngohw", seen, _grouped_weight(weight, groups), optimize=True)
    result = result.reshape(x.shape[0], weight.shape[0], *result.shape[-2:])
    return result if bias is None else result + bias[:, None, None]


def _grouped_windows(
    xp: Any, x: Any, kernel: Sequence[int], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Any:
    seen = _windows(xp, x, kernel[2:], stride, padding, dilation)
    return seen.reshape(*seen.shape[:2], groups, -1, *seen.shape[-2:])


def _grouped_weight(weight: Any, groups: int) -> Any:
    return weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], -1)


def _grouped_gradient(g: Any, groups: int) -> Any:
    return g.reshape(g.shape[0], groups, -1, *g.shape[-2:])


def conv2d_input_grad(
    xp: Any,
    g: Any,
    weight: Any,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    shape: Sequence[int],
) -> Any:
    parts = xp.einsum(
        "ngohw,goik->kngihw", _grouped_gradient(g, groups), _grouped_weight(weight, groups), optimize=True
    )
    parts = parts.reshape(parts.shape[0], *shape[:2], *parts.shape[-2:])
    return _put_back(xp, parts, shape, weight.shape[2:], stride, padding, dilation)


def conv2d_weight_grad(
    xp: Any,
    g: Any,
    x: Any,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
    shape: Sequence[int],
) -> Any:
    seen = _grouped_windows(xp, x, shape, stride, padding, dilation, groups)
    weight = xp.einsum("kngihw,ngohw->goik", seen, _grouped_gradient(g, groups), optimize=True)
    return weight.reshape(tuple(shape))


def max_pool2d(xp: Any, x: Any, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Any:
    return _windows(xp, x, kernel, stride, padding, dilation, _lowest(xp, x)).max(0)


def max_pool2d_indices(xp: Any, x: Any, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Any:
    """The flat index in its image of the largest element of each window."""
    position = _windows(xp, x, kernel, stride, padding, dilation, _lowest(xp, x)).argmax(0)
    top = xp.arange(position.shape[-2])[:, None] * stride[0] - padding[0]
    left = xp.arange(position.shape[-1]) * stride[1] - padding[1]
    row, column = top + position // kernel[1] * dilation[0], left + position % kernel[1] * dilation[1]
    return row * x.shape[-1] + column


def _lowest(xp: Any, x: Any) -> Any:
    return -xp.inf if x.dtype.kind == "f" else xp.iinfo(x.dtype).min


def avg_pool2d(xp: Any, x: Any, kernel: Pair, stride: Pair, padding: Pair) -> Any:
    return _windows(xp, x, kernel, stride, padding, (1, 1)).mean(0)


def avg_pool2d_grad(xp: Any, g: Any, kernel: Pair, stride: Pair, padding: Pair, shape: Sequence[int]) -> Any:
    positions = kernel[0] * kernel[1]
    parts = xp.broadcast_to(g / positions, (positions, *g.shape))
    return _put_back(xp, parts, shape, kernel, stride, padding, (1, 1))
