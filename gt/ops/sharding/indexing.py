"""The sharding rules of indexing: by integers and slices, and by tensors of indices."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gt.ops.row import Spec
from gt.ops.sharding.products import with_output_shape
from gt.ops.sharding.split import Attrs, Shard, Split, Step, linear, replaced, with_shape

Specs = tuple[Spec, ...]

# --- by integers and slices ---


class _Entry(NamedTuple):
    """The entry of an index for one axis, and the axis of the result that it makes."""

    place: int
    """The number of the entry in the index; -1 if the index has none for this axis."""
    entry: Any
    out: int
    """The axis of the result; -1 if it is dropped."""


def _entries(shape: tuple[int, ...], index: Sequence[Any]) -> list[_Entry]:
    found, out = [], 0
    for place, entry in enumerate(index):
        if entry is None:
            out += 1
            continue
        number = isinstance(entry, int)
        found.append(_Entry(place, entry if number else tuple(entry), -1 if number else out))
        out += not number
    for _ in range(len(found), len(shape)):
        found.append(_Entry(-1, None, out))
        out += 1
    return found


def _is_all(entry: _Entry, n: int) -> bool:
    return entry.place < 0 or entry.entry == (0, n, 1)


def _picked(entry: tuple[int, int, int], start: int, size: int) -> tuple[int, int, int]:
    """The part of a slice that is in the shard that begins at `start`, with local indices."""
    first, _, step = entry
    count = len(range(*entry))
    i = min(max(-((first - start) // step), 0), count)
    j = min(max(-((first - start - size) // step), 0), count)
    if j <= i:
        return 0, 0, 1
    begin = first + step * i - start
    return begin, begin + step * (j - i - 1) + 1, step


def _indexed(place: int, entry: Any) -> Callable[[Attrs], Attrs]:
    """The index with one entry replaced."""

    def change(attrs: Attrs) -> Attrs:
        index = list(attrs["index"])
        index[place] = entry
        return {**attrs, "index": index}

    return change


def _full(entry: _Entry, size: int, attrs: Attrs) -> Attrs:
    """An index that selects a whole shard."""
    return attrs if entry.place < 0 else _indexed(entry.place, (0, size, 1))(attrs)


def getitem(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis: each shard has its part of a slice; one worker selects an integer's
    element."""
    shape = inputs[0].shape
    splits = [linear(1, 0)]
    for axis, entry in enumerate(_entries(shape, attrs["index"])):
        n = shape[axis]
        if n < 2:
            continue
        if entry.out < 0:

            def pick(op: str, given: Attrs, shard: Shard, entry: _Entry = entry) -> list[Step]:
                return [(op, _indexed(entry.place, entry.entry - shard.start)(given))]

            splits.append(Split((axis,), "owner", n, pick, position=entry.entry))
            continue

        def cut(op: str, given: Attrs, shard: Shard, entry: _Entry = entry, n: int = n) -> list[Step]:
            if _is_all(entry, n):
                return [(op, _full(entry, shard.size, given))]
            return [(op, _indexed(entry.place, _picked(entry.entry, shard.start, shard.size))(given))]

        def sizes(parts: tuple[int, ...], entry: _Entry = entry, n: int = n) -> tuple[int, ...]:
            if _is_all(entry, n):
                return parts
            starts = [sum(parts[:i]) for i in range(len(parts))]
            return tuple(
                len(range(*_picked(entry.entry, start, size)))
                for start, size in zip(starts, parts, strict=True)
            )

        splits.append(Split((axis,), entry.out, n, cut, sizes))
    return splits


def getitem_gradient(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """The gradient of a slice: splits along every axis. The first and the last part are padded with zeros."""
    shape, dtype = out.shape, out.dtype
    splits = [linear(1, 0)]
    for axis, entry in enumerate(_entries(shape, attrs["index"])):
        n = shape[axis]
        if n < 2:
            continue
        if entry.out < 0:

            def put(
                op: str, given: Attrs, shard: Shard, axis: int = axis, entry: _Entry = entry
            ) -> list[Step]:
                part = replaced(shape, axis, shard.out_size)
                own = entry.entry - shard.out_start
                if not 0 <= own < shard.out_size:
                    return [("full", {"shape": part, "value": 0, "dtype": dtype})]
                return [(op, {**_indexed(entry.place, own)(given), "shape": part})]

            splits.append(Split((None,), axis, n, put))
        elif _is_all(entry, n):

            def spread(
                op: str, given: Attrs, shard: Shard, axis: int = axis, entry: _Entry = entry
            ) -> list[Step]:
                part = replaced(shape, axis, shard.out_size)
                return [(op, {**_full(entry, shard.out_size, given), "shape": part})]

            splits.append(Split((entry.out,), axis, n, spread))
        elif entry.entry[2] == 1 and len(range(*entry.entry)) > 1:
            first, last, _ = entry.entry

            def sizes(parts: tuple[int, ...], first: int = first, after: int = n - last) -> tuple[int, ...]:
                return (*_at_start(parts[:-1], first), parts[-1] + after + (first if len(parts) == 1 else 0))

            def place(
                op: str, given: Attrs, shard: Shard, axis: int = axis, entry: _Entry = entry
            ) -> list[Step]:
                begin = entry.entry[0] if shard.number == 0 else 0
                index = _indexed(entry.place, (begin, begin + shard.size, 1))(given)
                return [(op, {**index, "shape": replaced(shape, axis, shard.out_size)})]

            splits.append(Split((entry.out,), axis, last - first, place, sizes))
    return splits


def _at_start(parts: tuple[int, ...], more: int) -> tuple[int, ...]:
    return (parts[0] + more, *parts[1:]) if parts else ()


def setitem(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis that is selected whole; also along the others if the value is the same along
    them."""
    x, *value = inputs
    picked = sum(entry is None or not isinstance(entry, int) for entry in attrs["index"])
    taken = sum(entry is not None for entry in attrs["index"])
    rank = picked + len(x.shape) - taken
    splits = []
    for axis, entry in enumerate(_entries(x.shape, attrs["index"])):
        n = x.shape[axis]
        if n < 2:
            continue
        if entry.out >= 0 and _is_all(entry, n):
            own = [entry.out - (rank - len(y.shape)) for y in value]
            given = [a if a >= 0 and y.shape[a] == n else None for a, y in zip(own, value, strict=True)]

            def whole(op: str, attrs: Attrs, shard: Shard, entry: _Entry = entry) -> list[Step]:
                return [(op, _full(entry, shard.size, attrs))]

            splits.append(Split((axis, *given), axis, n, whole))
        elif all(_is_same_along(entry, attrs["index"], rank, y) for y in value):

            def cut(op: str, attrs: Attrs, shard: Shard, entry: _Entry = entry) -> list[Step]:
                if entry.out < 0:
                    own = entry.entry - shard.start
                    local: Any = own if 0 <= own < shard.size else (0, 0, 1)
                else:
                    local = _picked(entry.entry, shard.start, shard.size)
                return [(op, _indexed(entry.place, local)(attrs))]

            splits.append(Split((axis, *[None] * len(value)), axis, n, cut))
    return splits


def _is_same_along(entry: _Entry, index: Sequence[Any], rank: int, value: Spec) -> bool:
    """Whether a value can be put into the part of an axis that a shard has, which may be empty."""
    if entry.out >= 0:
        own = entry.out - (rank - len(value.shape))
        return own < 0 or value.shape[own] == 1
    # In a shard without the element, the integer becomes an empty slice: a first axis of the result.
    return all(isinstance(before, int) for before in index[: entry.place])


# --- by tensors of indices ---


def _array_axes(rank: int, dims: Sequence[int], picks: Sequence[Spec]) -> tuple[dict[int, int], int, int]:
    """The axes of the result by those of the input; the first axis of the indices, and how many they have."""
    picked = max(len(pick.shape) for pick in picks)
    together = dims[-1] - dims[0] == len(dims) - 1
    place = dims[0] if together else 0
    rest = [axis for axis in range(rank) if axis not in dims]
    return {axis: n if n < place else n + picked for n, axis in enumerate(rest)}, place, picked


def _of_picks(picks: Sequence[Spec], picked: int, axis: int, n: int) -> tuple[int | None, ...]:
    own = [axis - (picked - len(pick.shape)) for pick in picks]
    return tuple(a if a >= 0 and pick.shape[a] == n else None for a, pick in zip(own, picks, strict=True))


def by_arrays(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis that is not indexed, and along the indices."""
    x, *picks = inputs
    rest, place, picked = _array_axes(len(x.shape), attrs["dims"], picks)
    none = (None,) * len(picks)
    splits = [Split((axis, *none), to, x.shape[axis]) for axis, to in rest.items() if x.shape[axis] > 1]
    for axis in range(picked):
        n = out.shape[place + axis]
        if n > 1:
            splits.append(Split((None, *_of_picks(picks, picked, axis, n)), place + axis, n))
    return splits


def by_arrays_gradient(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """The gradient of `by_arrays`: along the indices, the parts are added up."""
    g, *picks = inputs
    rest, place, picked = _array_axes(len(out.shape), attrs["dims"], picks)
    none = (None,) * len(picks)
    splits = [
        Split((to, *none), axis, out.shape[axis], with_shape(out.shape, axis))
        for axis, to in rest.items()
        if out.shape[axis] > 1
    ]
    for axis in range(picked):
        n = g.shape[place + axis]
        if n > 1:
            splits.append(Split((place + axis, *_of_picks(picks, picked, axis, n)), "sum", n))
    return splits


def put_by_arrays(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis that is not indexed."""
    x, *others = inputs
    value = [] if "value" in attrs else [others.pop(0)]
    rest, _, picked = _array_axes(len(x.shape), attrs["dims"], others)
    rank = len(rest) + picked
    splits = []
    for axis, to in rest.items():
        n = x.shape[axis]
        own = [to - (rank - len(y.shape)) for y in value]
        given = [a if a >= 0 and y.shape[a] == n else None for a, y in zip(own, value, strict=True)]
        if n > 1:
            splits.append(Split((axis, *given, *[None] * len(others)), axis, n))
    return splits


# --- along one dimension ---


def embedding(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along the indices, and along the columns of the table."""
    weight, index = inputs
    splits = [Split((None, axis), axis, n) for axis, n in enumerate(index.shape) if n > 1]
    columns = weight.shape[1]
    return [*splits, *([Split((1, None), len(out.shape) - 1, columns)] if columns > 1 else [])]


def embedding_gradient(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along the columns; along the indices, the parts are added up."""
    g, index = inputs
    columns = [Split((len(g.shape) - 1, None), 1, out.shape[1])] if out.shape[1] > 1 else []
    return columns + [Split((axis, axis), "sum", n) for axis, n in enumerate(index.shape) if n > 1]


def along_dim(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Ops along `dim`: splits along every other axis that has the same size in all tensors."""
    dim = attrs["dim"] % max(len(out.shape), 1)
    shapes = [x.shape for x in inputs] + [out.shape]
    return [
        Split((axis,) * len(inputs), axis, n)
        for axis, n in enumerate(out.shape)
        if axis != dim and n > 1 and all(shape[axis] == n for shape in shapes)
    ]


def gather(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every other axis, and along the index."""
    dim = attrs["dim"] % max(len(out.shape), 1)
    splits = along_dim(inputs, attrs, out)
    return splits + ([Split((None, dim), dim, out.shape[dim])] if out.shape and out.shape[dim] > 1 else [])


def gather_gradient(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every other axis; along the index, the parts are added up."""
    dim, g = attrs["dim"] % max(len(out.shape), 1), inputs[0]
    splits = [with_output_shape(split, out) for split in along_dim(inputs, attrs, out)]
    return splits + ([Split((dim, dim), "sum", g.shape[dim])] if g.shape and g.shape[dim] > 1 else [])
