"""Ops of a training step besides the model: dropout, optimizer updates, the norm of the gradients.

Learning rates, decays and corrections are float attributes, which may change with every step; the rest of the
instruction does not.
"""

from typing import Any

from gt.errors import DTypeError, ShapeError
from gt.ops import dtypes
from gt.ops.engines import Functions
from gt.ops.row import Infer, Row, Spec
from gt.ops.run_time import SEEDED
from gt.ops.sharding import elementwise as sharding
from gt.ops.sharding.kinds import gathers


def _dropout(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    if not dtypes.is_float(inputs[0].dtype):
        raise DTypeError(f"result type Float can't be cast to {inputs[0].dtype}: dropout takes floats")
    return inputs[0]


def _dropout_mask(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(inputs[0].shape, "bool")


def _update(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """The spec of the first input; all inputs must have one shape."""
    first = inputs[0]
    for other in inputs[1:]:
        if other.shape != first.shape:
            raise ShapeError(f"an update of {list(first.shape)} with {list(other.shape)}: shapes must agree")
    return first


def _total_norm(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec((), inputs[0].dtype)


def _row(name: str, infer: Infer, *grads: Any, sharding: Any = sharding.pointwise, **more: Any) -> Row:
    functions = Functions(f"training.{name}", f"training.{name}")
    return Row(name, "TrainingOp", infer, functions, grads, sharding=sharding, **more)


ROWS = [
    # The dropped elements are a function of the seed, so the gradient computes them again
    # and no mask is stored.
    _row(
        "dropout",
        _dropout,
        lambda g, n: g._apply("dropout", **n.attrs),
        sharding=sharding.dropout,
        run_time=SEEDED,
    ),
    # Which elements a dropout keeps. It has the layout of x, of which only the shape matters: numbers that
    # are drawn without inputs would be split along the first axis, and x moved to them.
    _row("dropout_mask", _dropout_mask, sharding=sharding.dropout, run_time=SEEDED),
    # x * x_scale + y * y_scale: momentum, weight decay, moving averages and the plain SGD step.
    _row("weighted_sum", _update, compiled_numbers=("x_scale", "y_scale")),
    # average * decay + gradient**2 * (1 - decay)
    _row("average_of_squares", _update, compiled_numbers=("decay",)),
    # x * shrink - rate * direction / (sqrt(squares) / correction + eps)
    _row("adaptive_step", _update, compiled_numbers=("rate", "shrink", "correction", "eps")),
    # The norm of any number of tensors as if they were one long vector.
    _row("total_norm", _total_norm, sharding=gathers, lowering="total_norm"),
]
