"""Ops that multiply and add up: matrix products and what is built on them."""

from typing import Any

from gt.errors import DTypeError
from gt.ops import shapes
from gt.ops.row import Row, Spec, engines
from gt.ops.rules import no_bool


def _matmul(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    a, b = inputs
    if a.dtype != b.dtype:
        raise DTypeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")
    return Spec(shapes.matmul(a.shape, b.shape), a.dtype)


ROWS = [
    Row(
        "matmul",
        "BinaryOp",
        no_bool("matmul", _matmul),
        engines("torch.matmul", "numpy.matmul"),
        (lambda g, n: g @ n.inputs[1].T, lambda g, n: n.inputs[0].T @ g),
    ),
]
