"""Convolution and pooling.

Images are (batch, channels, height, width). `stride`, `padding` and the like are pairs, for height and width.
"""

from collections.abc import Sequence
from typing import Any

from gt.errors import ShapeError
from gt.ops.engines import Functions
from gt.ops.products import one_dtype
from gt.ops.row import Infer, Row, Spec
from gt.ops.rules import given_shape
from gt.ops.sharding import products as sharding

Pair = Sequence[int]

# --- results ---


def _windows(size: Pair, kernel: Pair, attrs: dict[str, Any]) -> tuple[int, int]:
    """The number of windows along height and width."""
    along = [
        (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1
        for n, k, stride, padding, dilation in zip(
            size, kernel, attrs["stride"], attrs["padding"], attrs.get("dilation", (1, 1)), strict=True
        )
    ]
    return along[0], along[1]


def _conv2d(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x, weight, *bias = inputs
    groups = attrs["groups"]
    if len(x.shape) != 4:
        raise ShapeError(
            f"Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: {list(x.shape)}"
        )
    if len(weight.shape) != 4:
        raise ShapeError(f"weight should have four dimensions, but its size is {list(weight.shape)}")
    if groups < 1 or weight.shape[0] % groups:
        raise ShapeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got "
            f"weight of size {list(weight.shape)} instead"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise ShapeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(x.shape)} to "
            f"have {weight.shape[1] * groups} channels, but got {x.shape[1]} channels instead"
        )
    if bias and bias[0].shape != weight.shape[:1]:
        raise ShapeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with "
            f"{weight.shape[0]} elements, but got bias of size {list(bias[0].shape)} instead"
        )
    size = _windows(x.shape[2:], weight.shape[2:], attrs)
    if min(size) < 1:
        padded = " x ".join(str(n + 2 * p) for n, p in zip(x.shape[2:], attrs["padding"], strict=True))
        kernel = " x ".join(
            str(d * (k - 1) + 1) for k, d in zip(weight.shape[2:], attrs["dilation"], strict=True)
        )
        raise ShapeError(
            f"Calculated padded input size per channel: ({padded}). Kernel size: ({kernel}). "
            "Kernel size can't be greater than actual input size"
        )
    return Spec((x.shape[0], weight.shape[0], *size), one_dtype(inputs))


def _pool(name: str, dtype: str | None = None) -> Infer:
    def infer(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        x = inputs[0]
        if len(x.shape) != 4:
            raise ShapeError(f"{name}: Expected 3D or 4D input, but got {list(x.shape)}")
        dilations = attrs.get("dilation", (1, 1))
        for padding, kernel, dilation in zip(attrs["padding"], attrs["kernel"], dilations, strict=True):
            if padding > (dilation * (kernel - 1) + 1) / 2:
                raise ShapeError(
                    f"pad should be at most half of effective kernel size, but got pad={padding}, "
                    f"kernel_size={kernel} and dilation={dilation}"
                )
        size = _windows(x.shape[2:], attrs["kernel"], attrs)
        if min(size) < 1:
            before, after = ("x".join(map(str, s)) for s in (x.shape[1:], (x.shape[1], *size)))
            raise ShapeError(
                f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small"
            )
        return Spec((*x.shape[:2], *size), dtype or x.dtype)

    return infer


# --- gradients ---


def _conv2d_gradient(g: Any, node: Any, which: int) -> Any:
    x, weight = node.inputs[:2]
    if which == 0:
        return g._apply("conv2d_input_grad", weight, **node.attrs, shape=x.shape)
    if which == 1:
        return g._apply("conv2d_weight_grad", x, **node.attrs, shape=weight.shape)
    return g.sum(dim=(0, 2, 3))


def _max_pool2d_gradient(g: Any, node: Any) -> Any:
    x = node.inputs[0]
    chosen = x._apply("max_pool2d_indices", **node.attrs)
    flat = (*x.shape[:2], x.shape[2] * x.shape[3])
    rows = (*g.shape[:2], g.shape[2] * g.shape[3])
    spread = g.reshape(rows)._apply("gather_grad", chosen.reshape(rows), dim=2, shape=flat)
    return spread.reshape(x.shape)


def _avg_pool2d_gradient(g: Any, node: Any) -> Any:
    return g._apply("avg_pool2d_grad", **node.attrs, shape=node.inputs[0].shape)


def _row(name: str, infer: Infer, sharding: Any, *grads: Any, each: Any = None) -> Row:
    functions = Functions(f"convolution.{name}", f"convolution.{name}")
    return Row(name, "ConvOp", infer, functions, grads, each, sharding)


ROWS = [
    _row("conv2d", _conv2d, sharding.conv2d, each=_conv2d_gradient),
    _row(
        "conv2d_input_grad",
        given_shape,
        sharding.image_gradient((("image", "out"), ("out", "in")), ("image", "in")),
    ),
    _row(
        "conv2d_weight_grad",
        given_shape,
        sharding.image_gradient((("image", "out"), ("image", "in")), ("out", "in")),
    ),
    _row("max_pool2d", _pool("max_pool2d()"), sharding.pooling, _max_pool2d_gradient),
    _row("max_pool2d_indices", _pool("max_pool2d()", "int64"), sharding.pooling),
    _row("avg_pool2d", _pool("avg_pool2d()"), sharding.pooling, _avg_pool2d_gradient),
    _row("avg_pool2d_grad", given_shape, sharding.pooling),
]
