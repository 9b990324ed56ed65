"""Ops that compare, that combine truths and bits, and that choose by them."""

from typing import Any

from gt.errors import DTypeError
from gt.ops import dtypes, shapes
from gt.ops.row import Infer, Row, Spec, engines
from gt.ops.rules import broadcast, compare, only, same, sum_to, truth


def _where(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    condition, tensors = inputs[0], inputs[1:]
    if condition.dtype != "bool":
        raise DTypeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{dtypes.TITLE[condition.dtype]}"
        )
    numbers = [n for n in (attrs["input"], attrs["other"]) if n is not None]
    if len(tensors) == 2:
        chosen = broadcast(tensors, attrs)
    elif tensors:
        chosen = Spec(tensors[0].shape, dtypes.promote_scalar(tensors[0].dtype, numbers[0]))
    else:
        chosen = Spec((), dtypes.promote_scalar(dtypes.of_scalar(numbers[0]), numbers[1]))
    return Spec(shapes.broadcast(condition.shape, chosen.shape), chosen.dtype)


def _where_gradient(g: Any, node: Any, index: int) -> Any:
    if index == 0:
        return None
    condition, x = node.inputs[0], node.inputs[index]
    first = index == 1 and node.attrs["input"] is None
    # Chosen, not multiplied by 0: what was not chosen may be infinite.
    return sum_to(g.where(condition if first else ~condition, 0), x.shape)


def _masked_fill(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x, mask = inputs
    if mask.dtype != "bool":
        raise DTypeError(f"masked_fill only supports boolean masks, but got mask with dtype {mask.dtype}")
    return Spec(shapes.broadcast(x.shape, mask.shape), x.dtype)


def _binary(name: str, infer: Infer, spelling: str = "") -> Row:
    operator = f"operator.{spelling or name}"
    return Row(name, "BinaryOp", infer, engines(operator, operator))


def _test(name: str) -> Row:
    return Row(name, "UnaryOp", truth, engines(f"torch.{name}", f"numpy.{name}"))


ROWS = [
    _binary("gt", compare),
    _binary("ge", compare),
    _binary("lt", compare),
    _binary("le", compare),
    _binary("eq", compare),
    _binary("ne", compare),
    _binary("and", only("bitwise_and", "bool int", broadcast), "and_"),
    _binary("or", only("bitwise_or", "bool int", broadcast), "or_"),
    _binary("xor", only("bitwise_xor", "bool int", broadcast)),
    _binary("lshift", only("lshift", "int", broadcast)),
    _binary("rshift", only("rshift", "int", broadcast)),
    Row(
        "invert",
        "UnaryOp",
        only("bitwise_not", "bool int", same),
        engines("torch.bitwise_not", "numpy.invert"),
    ),
    *(
        Row(name, "BinaryOp", compare, engines(f"torch.{name}", f"numpy.{name}"))
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    _test("logical_not"),
    _test("isnan"),
    _test("isinf"),
    _test("isfinite"),
    Row(
        "where",
        "TernaryOp",
        _where,
        engines("logic.where", "logic.where"),
        grad_of_each=_where_gradient,
    ),
    Row(
        "masked_fill",
        "TernaryOp",
        _masked_fill,
        engines("torch.masked_fill", "logic.masked_fill"),
        (lambda g, n: sum_to(g.masked_fill(n.inputs[1], 0), n.inputs[0].shape), None),
    ),
]
