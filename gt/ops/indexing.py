"""Ops that read or write elements by index.

A basic index is a list with an entry for each of the first dimensions: an integer takes one slice and drops
the dimension, `[start, stop, step]` takes several, and None makes a new dimension. An index by arrays names,
in `dims`, the dimension that each of them selects from. Both are normalized: no entry is negative or open,
except the elements of arrays.
"""

from collections.abc import Sequence
from typing import Any

from gt.errors import DimensionError, DTypeError, ShapeError
from gt.ops import shapes
from gt.ops.engines import Functions
from gt.ops.row import Infer, Row, Spec
from gt.ops.rules import given_shape, sum_to
from gt.ops.sharding import indexing as sharding
from gt.ops.sharding.elementwise import pointwise
from gt.ops.sharding.reductions import along

# --- results ---


def region(shape: tuple[int, ...], index: Sequence[Any]) -> tuple[int, ...]:
    """The shape of the result of a basic index.

    >>> region((4, 5, 6), [2, None, [0, 5, 2]])
    (1, 3, 6)
    """
    result, axis = [], 0
    for entry in index:
        if entry is None:
            result.append(1)
            continue
        if not isinstance(entry, int):
            result.append(len(range(*entry)))
        axis += 1
    return (*result, *shape[axis:])


def array_region(shape: tuple[int, ...], dims: Sequence[int], picks: Sequence[Spec]) -> tuple[int, ...]:
    """The result's shape for index arrays: theirs replaces the dimensions, or is in front if these are apart.

    >>> i = Spec((7,), "int64")
    >>> array_region((4, 5, 6), [1, 2], [i, i]), array_region((4, 5, 6), [0, 2], [i, i])
    ((4, 7), (7, 5))
    """
    for pick in picks:
        if pick.dtype not in ("int32", "int64"):
            raise DimensionError("tensors used as indices must be long, int, byte or bool tensors")
    picked: tuple[int, ...] = ()
    for pick in picks:
        try:
            picked = shapes.broadcast(picked, pick.shape)
        except ShapeError:
            all_shapes = ", ".join(str(list(p.shape)) for p in picks)
            raise DimensionError(
                f"shape mismatch: indexing tensors could not be broadcast together with shapes {all_shapes}"
            ) from None
    first, last = dims[0], dims[-1]
    rest = tuple(n for axis, n in enumerate(shape) if axis not in dims)
    place = first if last - first == len(dims) - 1 else 0
    return rest[:place] + picked + rest[place:]


def _getitem(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(region(inputs[0].shape, attrs["index"]), inputs[0].dtype)


def _index(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x, *picks = inputs
    return Spec(array_region(x.shape, attrs["dims"], picks), x.dtype)


def _setitem(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    if len(inputs) == 2:
        shapes.expand(inputs[1].shape, region(inputs[0].shape, attrs["index"]))
    return inputs[0]


def _index_put(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x, *rest = inputs
    value = None if "value" in attrs else rest.pop(0)
    place = array_region(x.shape, attrs["dims"], rest)
    if value is not None:
        try:
            shapes.expand(value.shape, place)
        except ShapeError:
            raise ShapeError(
                f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing "
                f"result of shape {list(place)}"
            ) from None
    return x


def _check_index(name: str, index: Spec) -> None:
    if index.dtype not in ("int32", "int64"):
        raise DTypeError(f"{name}(): Expected dtype int32/int64 for index")


def _gather(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x, index = inputs
    _check_index("gather", index)
    if len(x.shape) != len(index.shape):
        raise ShapeError("Index tensor must have the same number of dimensions as input tensor")
    for axis, (n, size) in enumerate(zip(index.shape, x.shape, strict=True)):
        if axis != attrs["dim"] and n > size:
            raise ShapeError(
                f"Size does not match at dimension {axis} expected index {list(index.shape)} to be no larger "
                f"than self {list(x.shape)} apart from dimension {attrs['dim']}"
            )
    return Spec(index.shape, x.dtype)


def _scatter(name: str) -> Infer:
    def infer(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        x, index, *rest = inputs
        _check_index(name, index)
        source = rest[0] if rest else Spec(index.shape, x.dtype)
        if not len(x.shape) == len(index.shape) == len(source.shape):
            raise ShapeError(
                f"Index tensor must have the same number of dimensions as self and src tensor, got "
                f"{list(index.shape)}, {list(x.shape)} and {list(source.shape)}"
            )
        if source.dtype != x.dtype:
            raise DTypeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
        sizes = zip(index.shape, x.shape, source.shape, strict=True)
        if any(n > src or (axis != attrs["dim"] and n > size) for axis, (n, size, src) in enumerate(sizes)):
            raise ShapeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from "
                f"dimension {attrs['dim']} and to be no larger size than src {list(source.shape)}"
            )
        return x

    return infer


def _embedding(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    weight, index = inputs
    if len(weight.shape) != 2:
        raise ShapeError("'weight' must be 2-D")
    if index.dtype not in ("int32", "int64"):
        raise DTypeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {index.dtype} instead (while checking arguments for embedding)"
        )
    return Spec((*index.shape, weight.shape[1]), weight.dtype)


def _argsort(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(inputs[0].shape, "int64")


def _topk(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape, k, dim = inputs[0].shape, attrs["k"], attrs["dim"]
    if not 0 <= k <= (shape[dim] if shape else 1):
        raise ShapeError("selected index k out of range")
    return Spec((*shape[:dim], k, *shape[dim + 1 :]) if shape else (), "int64")


def _one_hot(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    if inputs[0].dtype != "int64":
        raise DTypeError("one_hot is only applicable to index tensor of type LongTensor.")
    if attrs["num_classes"] < 1:
        raise ShapeError("num_classes should be positive")
    return Spec((*inputs[0].shape, attrs["num_classes"]), "int64")


# --- gradients ---


def _getitem_gradient(g: Any, node: Any) -> Any:
    return g._apply("getitem_grad", index=node.attrs["index"], shape=node.inputs[0].shape)


def _index_gradient(g: Any, node: Any, which: int) -> Any:
    if which:
        return None
    x, *picks = node.inputs
    return g._apply("index_grad", *picks, dims=node.attrs["dims"], shape=x.shape)


def _setitem_gradient(g: Any, node: Any) -> Any:
    return g._apply("setitem", index=node.attrs["index"], value=0)


def _setitem_value_gradient(g: Any, node: Any) -> Any:
    return sum_to(g._apply("getitem", index=node.attrs["index"]), node.inputs[1].shape)


def _index_put_gradient(g: Any, node: Any, which: int) -> Any:
    number = "value" in node.attrs
    picks, dims = node.inputs[1 if number else 2 :], node.attrs["dims"]
    if which == 0:
        if node.attrs["accumulate"]:
            return g
        return g._apply("index_put", *picks, dims=dims, accumulate=False, value=0)
    if which == 1 and not number:
        return sum_to(g._apply("index", *picks, dims=dims), node.inputs[1].shape)
    return None


def _gather_gradient(g: Any, node: Any) -> Any:
    x, index = node.inputs
    return g._apply("gather_grad", index, dim=node.attrs["dim"], shape=x.shape)


def _source_gradient(g: Any, node: Any) -> Any:
    # The source may be larger than the index: elements that were not read have no gradient.
    index, source = node.inputs[1:]
    picked = g._apply("gather", index, dim=node.attrs["dim"])
    if index.shape == source.shape:
        return picked
    read = tuple((0, n, 1) for n in index.shape)
    return picked._apply("getitem_grad", index=read, shape=source.shape)


def _embedding_gradient(g: Any, node: Any) -> Any:
    weight, index = node.inputs
    return g._apply("embedding_grad", index, rows=weight.shape[0], padding_idx=node.attrs["padding_idx"])


def _row(name: str, infer: Infer, sharding: Any, *grads: Any, each: Any = None, **more: Any) -> Row:
    functions = Functions(f"indexing.{name}", f"indexing.{name}")
    return Row(name, "IndexOp", infer, functions, grads, each, sharding, **more)


ROWS = [
    _row(
        "getitem",
        _getitem,
        sharding.getitem,
        _getitem_gradient,
        view=True,
        put_back=lambda attrs, before, changed: ("setitem", (before, changed), attrs),
    ),
    _row("getitem_grad", given_shape, sharding.getitem_gradient),
    _row("setitem", _setitem, sharding.setitem, _setitem_gradient, _setitem_value_gradient),
    _row("index", _index, sharding.by_arrays, each=_index_gradient),
    _row("index_grad", given_shape, sharding.by_arrays_gradient),
    _row("index_put", _index_put, sharding.put_by_arrays, each=_index_put_gradient),
    _row("gather", _gather, sharding.gather, _gather_gradient, None),
    _row("gather_grad", given_shape, sharding.gather_gradient),
    _row(
        "scatter",
        _scatter("scatter"),
        sharding.along_dim,
        lambda g, n: g._apply("scatter", n.inputs[1], dim=n.attrs["dim"], value=0),
        None,
        _source_gradient,
    ),
    _row("scatter_add", _scatter("scatter_add"), sharding.along_dim, lambda g, n: g, None, _source_gradient),
    _row("embedding", _embedding, sharding.embedding, _embedding_gradient, None),
    _row(
        "embedding_grad",
        lambda s, attrs: Spec((attrs["rows"], s[0].shape[-1]), s[0].dtype),
        sharding.embedding_gradient,
    ),
    _row("argsort", _argsort, along()),
    _row("topk", _topk, along()),
    _row("one_hot", _one_hot, lambda inputs, attrs, out: pointwise(inputs, attrs, inputs[0])),
]
