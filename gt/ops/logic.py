"""Comparisons, logical and bitwise ops, and ops that select elements by a condition."""

from typing import Any

from gt.errors import DTypeError
from gt.ops import dtypes, shapes
from gt.ops.engines import Functions
from gt.ops.method import Method, Samples
from gt.ops.row import Infer, Row, Spec
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
    # Selected, not multiplied by 0: an element that was not selected may be infinite.
    return sum_to(g.where(condition if first else ~condition, 0), x.shape)


def _masked_fill(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x, mask = inputs
    if mask.dtype != "bool":
        raise DTypeError(f"masked_fill only supports boolean masks, but got mask with dtype {mask.dtype}")
    return Spec(shapes.broadcast(x.shape, mask.shape), x.dtype)


def _operator(name: str, infer: Infer, method: Method, samples: str, function: str = "") -> Row:
    """One of Python's own operators."""
    called = f"operator.{function or name}"
    return Row(
        name,
        "BinaryOp",
        infer,
        Functions(called, called),
        methods=(method,),
        operator=name,
        samples=Samples(samples),
    )


def _comparison(names: str, sign: str) -> Row:
    name = names.partition(" ")[0]
    return _operator(name, compare, Method(names, f"`self {sign} other`."), "comparison")


def _bits(name: str, method: str, sign: str, categories: str = "bool int", function: str = "") -> Row:
    called = Method(method, f"`self {sign} other`.", in_place=True, number_first=True)
    refused = method if "shift" not in name else name
    return _operator(name, only(refused, categories, broadcast), called, "bits", function)


def _logical(name: str, doc: str) -> Row:
    return Row(
        name,
        "BinaryOp",
        compare,
        Functions(f"torch.{name}", f"numpy.{name}"),
        methods=(Method(name, doc, "tensor", in_place=True),),
        samples=Samples("logical"),
    )


def _test(name: str, doc: str, in_place: bool = False) -> Row:
    return Row(
        name,
        "UnaryOp",
        truth,
        Functions(f"torch.{name}", f"numpy.{name}"),
        methods=(Method(name, doc, in_place=in_place),),
        samples=Samples("test"),
    )


ROWS = [
    _comparison("gt greater", ">"),
    _comparison("ge greater_equal", ">="),
    _comparison("lt less", "<"),
    _comparison("le less_equal", "<="),
    _comparison("eq", "=="),
    _comparison("ne not_equal", "!="),
    _bits("and", "bitwise_and", "&", function="and_"),
    _bits("or", "bitwise_or", "|", function="or_"),
    _bits("xor", "bitwise_xor", "^"),
    _bits("lshift", "bitwise_left_shift", "<<", "int"),
    _bits("rshift", "bitwise_right_shift", ">>", "int"),
    Row(
        "invert",
        "UnaryOp",
        only("bitwise_not", "bool int", same),
        Functions("torch.bitwise_not", "numpy.invert"),
        methods=(Method("bitwise_not", "`~self`.", in_place=True),),
    ),
    _logical("logical_and", "Whether both elements are not 0."),
    _logical("logical_or", "Whether at least one of two elements is not 0."),
    _logical("logical_xor", "Whether exactly one of two elements is not 0."),
    _test("logical_not", "Whether each element is 0.", in_place=True),
    _test("isnan", "Whether each element is NaN."),
    _test("isinf", "Whether each element is infinite."),
    _test("isfinite", "Whether each element is neither infinite nor NaN."),
    Row(
        "where",
        "TernaryOp",
        _where,
        Functions("logic.where", "logic.where"),
        grad_of_each=_where_gradient,
    ),
    Row(
        "masked_fill",
        "TernaryOp",
        _masked_fill,
        Functions("torch.masked_fill", "logic.masked_fill"),
        (lambda g, n: sum_to(g.masked_fill(n.inputs[1], 0), n.inputs[0].shape), None),
    ),
]
