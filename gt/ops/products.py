"""Matrix products, einsum, and layers built on them."""

import math
from typing import Any

from gt.errors import DTypeError, ShapeError
from gt.ops import shapes
from gt.ops.engines import Functions
from gt.ops.row import Row, Spec
from gt.ops.rules import no_bool, sum_to
from gt.ops.sharding import products as sharding

# --- results ---


def one_dtype(inputs: tuple[Spec, ...]) -> str:
    """The dtype that all inputs share: PyTorch multiplies no two different ones."""
    for x in inputs:
        if x.dtype != inputs[0].dtype:
            raise DTypeError(
                f"expected m1 and m2 to have the same dtype, but got: {inputs[0].dtype} != {x.dtype}"
            )
    return inputs[0].dtype


def _matmul(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    a, b = inputs
    return Spec(shapes.matmul(a.shape, b.shape), one_dtype(inputs))


def _linear(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x, weight, *bias = inputs
    if len(weight.shape) not in (1, 2):
        raise ShapeError(f"linear: weight must be 1D or 2D, and its shape is {list(weight.shape)}")
    shape = shapes.matmul(x.shape, weight.shape[::-1])
    if bias:
        shapes.expand(bias[0].shape, shape)
    return Spec(shape, one_dtype(inputs))


def _linear_weight_grad(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    g, x = inputs
    if not g.shape or not x.shape or g.shape[:-1] != x.shape[:-1]:
        raise ShapeError(
            f"linear_weight_grad: all dimensions but the last must agree: {list(g.shape)}, {list(x.shape)}"
        )
    return Spec((g.shape[-1], x.shape[-1]), one_dtype(inputs))


def _einsum(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    terms, output = _terms(attrs["equation"])
    sizes: dict[str, int] = {}
    for term, x in zip(terms, inputs, strict=True):
        sizes.update(zip(term, x.shape, strict=True))
    return Spec(tuple(sizes[letter] for letter in output), one_dtype(inputs))


def _terms(equation: str) -> tuple[list[str], str]:
    left, output = equation.split("->")
    return left.split(","), output


# --- gradients ---


def _left_gradient(g: Any, node: Any) -> Any:
    a, b = node.inputs
    if a.ndim == b.ndim == 1:
        return g * b
    if b.ndim == 1:
        return g.unsqueeze(-1) * b  # each row of a met the same vector
    if a.ndim == 1:
        return sum_to(g.unsqueeze(-2) @ b.mT, (1, *a.shape)).reshape(a.shape)
    return sum_to(g @ b.mT, a.shape)


def _right_gradient(g: Any, node: Any) -> Any:
    a, b = node.inputs
    if a.ndim == b.ndim == 1:
        return g * a
    if a.ndim == 1:
        return sum_to(a.unsqueeze(-1) @ g.unsqueeze(-2), b.shape)
    if b.ndim == 1:
        rows = a if a.ndim == 2 else a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        return rows.T @ g.reshape(-1)
    if b.ndim == 2:
        # One product over all rows of the batch, rather than one per matrix and a sum over them.
        return a._apply("linear_weight_grad", g)
    return sum_to(a.mT @ g, b.shape)


def _linear_gradient(g: Any, node: Any, which: int) -> Any:
    x, weight = node.inputs[:2]
    if which == 2:
        return sum_to(g, node.inputs[2].shape)
    if weight.ndim == 1:
        return g.unsqueeze(-1) * weight if which == 0 else sum_to(g.unsqueeze(-1) * x, weight.shape)
    return g @ weight if which == 0 else g._apply("linear_weight_grad", x)


def _einsum_gradient(g: Any, node: Any, which: int) -> Any:
    terms, output = _terms(node.attrs["equation"])
    others = [i for i in range(len(terms)) if i != which]
    # What is summed in this operand alone gets the same gradient everywhere.
    known = set(output).union(*(terms[i] for i in others))
    term, shape = terms[which], node.inputs[which].shape
    target = "".join(letter for letter in term if letter in known)
    equation = ",".join([output, *(terms[i] for i in others)]) + "->" + target
    result = g._apply("einsum", *(node.inputs[i] for i in others), equation=equation)
    sizes = tuple(n if letter in known else 1 for letter, n in zip(term, shape, strict=True))
    return result.reshape(sizes).expand(shape)


ROWS = [
    Row(
        "matmul",
        "BinaryOp",
        no_bool("matmul", _matmul),
        Functions("torch.matmul", "numpy.matmul"),
        (_left_gradient, _right_gradient),
        sharding=sharding.matmul,
    ),
    Row(
        "linear",
        "BinaryOp",
        no_bool("linear", _linear),
        Functions("torch.nn.functional.linear", "products.linear"),
        grad_of_each=_linear_gradient,
        sharding=sharding.linear_layer,
    ),
    Row(
        "linear_weight_grad",
        "BinaryOp",
        no_bool("linear_weight_grad", _linear_weight_grad),
        Functions("products.linear_weight_grad", "products.linear_weight_grad"),
        sharding=sharding.linear_weight_gradient,
    ),
    Row(
        "einsum",
        "BinaryOp",
        no_bool("einsum", _einsum),
        Functions("products.einsum", "products.einsum"),
        grad_of_each=_einsum_gradient,
        sharding=sharding.einsum,
    ),
]
