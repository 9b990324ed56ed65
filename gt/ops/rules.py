"""Rules that several rows share: the result's shape and dtype, and parts of gradients."""

from collections.abc import Callable
from typing import Any

from gt.errors import DTypeError
from gt.ops import dtypes, shapes
from gt.ops.row import Gradient, Infer, Spec

# --- results: shape and dtype ---


def same(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """The spec of the first input."""
    return inputs[0]


def floating(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """The spec of the first input; integers and bools become float32."""
    first = inputs[0]
    return first if dtypes.is_float(first.dtype) else Spec(first.shape, "float32")


def given_shape(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """The shape in the attributes, with the dtype of the first input: as for the gradient of a part."""
    return Spec(tuple(attrs["shape"]), inputs[0].dtype)


def truth(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """The shape of the first input, as bool."""
    return Spec(inputs[0].shape, "bool")


def broadcast(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """Two inputs, or one and a number, broadcast and promoted."""
    if len(inputs) == 1:
        return Spec(inputs[0].shape, dtypes.promote_scalar(inputs[0].dtype, attrs["scalar"]))
    a, b = inputs
    dtype = dtypes.promote(a.dtype, b.dtype, len(a.shape), len(b.shape))
    return Spec(shapes.broadcast(a.shape, b.shape), dtype)


def divide(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """As `broadcast`, with a floating point result."""
    return floating((broadcast(inputs, attrs),), attrs)


def compare(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """As `broadcast`, as bool."""
    return Spec(broadcast(inputs, attrs).shape, "bool")


def no_bool(what: str, infer: Infer) -> Infer:
    """As `infer`, but bools are refused, as in PyTorch."""

    def checked(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        if any(x.dtype == "bool" for x in inputs) or isinstance(attrs.get("scalar"), bool):
            raise DTypeError(f"{what} with a bool tensor is not supported. Convert it first: x.to('int64')")
        return infer(inputs, attrs)

    return checked


def only(what: str, categories: str, infer: Infer) -> Infer:
    """As `infer`, but a result of another category is refused: "int float" refuses bools."""
    allowed = categories.split()

    def checked(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        spec = infer(inputs, attrs)
        if dtypes.category(spec.dtype) not in allowed:
            raise DTypeError(f'"{what}" not implemented for {dtypes.TITLE[spec.dtype]!r}')
        return spec

    return checked


# --- gradients: from the output's gradient g ---


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of a tensor of this shape that was broadcast: the sum over each element's copies."""
    if g.shape == shape:
        return g
    new = g.ndim - len(shape)
    if g.shape[new:] == shape:  # a bias: there is nothing to reshape
        return g.sum(dim=tuple(range(new)))
    copied = tuple(axis for axis, n in enumerate(g.shape) if axis < new or shape[axis - new] != n)
    return g.sum(dim=copied, keepdim=True).reshape(shape)


def zeros(g: Any, *_: Any) -> Any:
    """The gradient of a function with derivative 0, such as `floor`. Not `g * 0`: infinity times 0 is NaN."""
    return g.new_zeros(g.shape)


def partials(
    left: Callable[[Any, Any, Any], Any], right: Callable[[Any, Any, Any], Any]
) -> tuple[Gradient, Gradient]:
    """The gradients of `a op b` from its two partial derivatives; a or b may be a number, which has none."""

    def of_first(g: Any, node: Any) -> Any:
        if len(node.inputs) == 2:
            a, b = node.inputs
            return sum_to(left(g, a, b), a.shape)
        (x,), number = node.inputs, node.attrs["scalar"]
        return right(g, number, x) if node.attrs["reflected"] else left(g, x, number)

    def of_second(g: Any, node: Any) -> Any:
        a, b = node.inputs
        return sum_to(right(g, a, b), b.shape)

    return of_first, of_second
