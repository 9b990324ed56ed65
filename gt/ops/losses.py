"""Losses: one instruction forward and one backward.

They could be composed of other ops. As single ops, they make fewer instructions for a training step, and
their gradients stay finite where the chain rule would multiply 0 by infinity.
"""

from typing import Any

from gt.errors import DTypeError, ShapeError
from gt.ops import dtypes
from gt.ops.engines import Functions
from gt.ops.row import Infer, Row, Spec
from gt.ops.sharding import losses as sharding
from gt.ops.sharding.elementwise import pointwise


def _reduced(shape: tuple[int, ...], attrs: dict[str, Any]) -> tuple[int, ...]:
    return shape if attrs["reduction"] == "none" else ()


def _pair(name: str) -> Infer:
    """The result of a loss over two tensors of one shape."""

    def infer(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        x, y = inputs
        if x.shape != y.shape:
            raise ShapeError(
                f"{name}: the input has shape {list(x.shape)} and the target has shape {list(y.shape)}; "
                "they must be the same"
            )
        dtype = dtypes.promote(x.dtype, y.dtype)
        if not dtypes.is_float(dtype):
            raise DTypeError(f"{name} takes floating point numbers, not {dtype}. Convert first: x.float()")
        return Spec(_reduced(x.shape, attrs), dtype)

    return infer


def _classes(name: str) -> Infer:
    """The result of a loss over scores for classes (in dimension 1, or 0 without a batch) and class
    indices."""

    def infer(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        x, target = inputs[:2]
        if not dtypes.is_float(x.dtype):
            raise DTypeError(f"\"{name}\" not implemented for '{x.dtype}': scores are floating point numbers")
        if dtypes.is_float(target.dtype) or target.dtype == "bool":
            raise DTypeError(
                f"expected scalar type Long but found {target.dtype}: a target is either one class number "
                f"for each row (int64), or probabilities of the input's own shape {list(x.shape)}"
            )
        sizes, given = list(x.shape), list(target.shape)
        if not sizes:
            raise ShapeError(f"{name}: the input has no dimension of classes")
        want = sizes[:1] + sizes[2:] if len(sizes) > 1 else []
        if given != want:
            if given and want and given[0] != want[0]:
                raise ShapeError(
                    f"Expected input batch_size ({sizes[0]}) to match target batch_size ({given[0]})."
                )
            raise ShapeError(
                f"size mismatch (got input: {sizes}, target: {given}, wanted a target of shape {want})"
            )
        count = sizes[min(len(sizes) - 1, 1)]
        if len(inputs) == 3 and inputs[2].shape != (count,):
            raise ShapeError(
                f"weight tensor should be defined either for all {count} classes or no classes "
                f"but got weight tensor of shape: {list(inputs[2].shape)}"
            )
        return Spec(_reduced(target.shape, attrs), x.dtype)

    return infer


def _like_second(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return inputs[1]


def _by_classes(name: str) -> list[Row]:
    """The rows of a loss over classes and of its gradient."""
    function, gradient = f"losses.{name}", f"losses.{name}_grad"
    return [
        Row(
            name,
            "LossOp",
            _classes(name),
            Functions(function, function),
            (lambda g, n: g._apply(f"{name}_grad", *n.inputs, **n.attrs), None, None),
            sharding=sharding.class_loss,
            lowering="class_loss",
        ),
        Row(
            f"{name}_grad",
            "LossOp",
            _like_second,
            Functions(gradient, gradient),
            sharding=sharding.class_loss_gradient,
            lowering="class_loss_gradient",
        ),
    ]


def _mse(g: Any, node: Any, sign: int) -> Any:
    a, b = node.inputs
    count = a.numel() if node.attrs["reduction"] == "mean" else 1
    return (a - b) * (g * (sign * 2 / max(count, 1)))


def _spread(g: Any, node: Any) -> Any:
    """The gradient of the loss of one element: for a mean, divided by the number of elements."""
    return g / max(node.inputs[0].numel(), 1) if node.attrs["reduction"] == "mean" else g


def _bce_by_input(g: Any, node: Any) -> Any:
    # Where the input is 0 or 1, the slope is infinite; it is limited as in PyTorch.
    p, y = node.inputs
    return p._apply("binary_cross_entropy_grad", y) * _spread(g, node)


def _bce_by_target(g: Any, node: Any) -> Any:
    p, _ = node.inputs
    return ((1 - p).log() - p.log()) * _spread(g, node)


ROWS = [
    *_by_classes("cross_entropy"),
    *_by_classes("nll_loss"),
    Row(
        "mse_loss",
        "LossOp",
        _pair("mse_loss"),
        Functions("torch.nn.functional.mse_loss", "losses.mse_loss"),
        (lambda g, n: _mse(g, n, 1), lambda g, n: _mse(g, n, -1)),
        sharding=sharding.loss,
    ),
    Row(
        "binary_cross_entropy",
        "LossOp",
        _pair("binary_cross_entropy"),
        Functions("losses.binary_cross_entropy", "losses.binary_cross_entropy"),
        (_bce_by_input, _bce_by_target),
        sharding=sharding.loss,
    ),
    Row(
        "binary_cross_entropy_grad",
        "LossOp",
        lambda inputs, attrs: inputs[0],
        Functions("losses.binary_cross_entropy_grad", "losses.binary_cross_entropy_grad"),
        sharding=pointwise,
    ),
    Row(
        "binary_cross_entropy_with_logits",
        "LossOp",
        _pair("binary_cross_entropy_with_logits"),
        Functions(
            "torch.nn.functional.binary_cross_entropy_with_logits", "losses.binary_cross_entropy_with_logits"
        ),
        (
            lambda g, n: (n.inputs[0].sigmoid() - n.inputs[1]) * _spread(g, n),
            lambda g, n: n.inputs[0] * -_spread(g, n),
        ),
        sharding=sharding.loss,
    ),
]
