"""Reductions and scans: in NumPy for Triton's own combining functions, otherwise by calling the function.

In Triton, a combining function takes scalars. Here each pair of elements is a separate lane, so that one call
combines all pairs, and functions with branches work.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from triton_viz.dsls.triton.ops.types import NARROW, compute_dtype
from triton_viz.executor.value import Value
from triton_viz.numerics import floats

Apply = Callable[..., Any]
"""Calls a function of the language with scalars of a number of lanes: `apply(function, lanes, *args)`."""


def _named(*names: str) -> list[Any]:
    return [getattr(tl.standard, name) for name in names if hasattr(tl.standard, name)]


_REDUCED: dict[Any, np.ufunc] = {
    **dict.fromkeys(_named("_sum_combine"), np.add),
    **dict.fromkeys(_named("_prod_combine"), np.multiply),
    **dict.fromkeys(_named("_elementwise_max"), np.fmax),
    **dict.fromkeys(_named("_elementwise_min"), np.fmin),
    **dict.fromkeys(_named("_xor_combine"), np.bitwise_xor),
    **dict.fromkeys(_named("_or_combine"), np.bitwise_or),
}
_PICKED: dict[Any, tuple[Callable[..., np.ndarray], float]] = {
    **dict.fromkeys(
        _named("_argmax_combine_tie_break_left", "_argmax_combine_tie_break_fast"), (np.argmax, -np.inf)
    ),
    **dict.fromkeys(
        _named("_argmin_combine_tie_break_left", "_argmin_combine_tie_break_fast"), (np.argmin, np.inf)
    ),
}
"""Triton's argmax and argmin as NumPy functions, and the value that replaces NaN, which they ignore."""


def reduce(inputs: tuple[Value, ...], axis: int | None, combine: Any, apply: Apply) -> tuple[Value, ...]:
    """Each lane's blocks with one axis (None: all) combined away."""
    arrays = [value.data for value in inputs]
    if axis is None:
        arrays = [array.reshape(len(array), -1) for array in arrays]
        axis = 0
    types = [value.dtype.scalar for value in inputs]
    if combine in _REDUCED:
        return (_reduced(arrays[0], axis + 1, _REDUCED[combine], types[0]),)
    if combine in _PICKED and len(arrays) == 2:
        return tuple(
            Value(array, type) for array, type in zip(_picked(arrays, axis + 1, combine), types, strict=True)
        )
    arrays = [np.moveaxis(array, axis + 1, -1) for array in _aligned(arrays)]
    while arrays[0].shape[-1] > 1:  # neighbours, so that the order is kept
        arrays = _combined(
            combine, types, [a[..., 0::2] for a in arrays], [a[..., 1::2] for a in arrays], apply
        )
    return tuple(Value(array[..., 0], type) for array, type in zip(arrays, types, strict=True))


def scan(
    inputs: tuple[Value, ...], axis: int, combine: Any, reverse: bool, apply: Apply
) -> tuple[Value, ...]:
    """Each lane's running combination along an axis."""
    arrays = [np.moveaxis(array, axis + 1, -1) for array in _aligned([value.data for value in inputs])]
    types = [value.dtype.scalar for value in inputs]
    if reverse:
        arrays = [array[..., ::-1] for array in arrays]
    ufunc = _REDUCED.get(combine)
    if ufunc in (np.add, np.multiply) and types[0] not in NARROW:
        arrays = [ufunc.accumulate(arrays[0], axis=-1, dtype=arrays[0].dtype)]
    else:
        # Each step doubles the number of elements that a result combines.
        reach = 1
        while reach < arrays[0].shape[-1]:
            early, late = [a[..., :-reach] for a in arrays], [a[..., reach:] for a in arrays]
            joined = _combined(combine, types, early, late, apply)
            arrays = [
                np.concatenate([a[..., :reach], b], axis=-1) for a, b in zip(arrays, joined, strict=True)
            ]
            reach *= 2
    if reverse:
        arrays = [array[..., ::-1] for array in arrays]
    return tuple(
        Value(np.moveaxis(array, -1, axis + 1), type) for array, type in zip(arrays, types, strict=True)
    )


def map_elements(
    inputs: tuple[Value, ...], function: Any, pack: int, active: np.ndarray | None, apply: Apply
) -> list[Value]:
    """Apply a function of scalars to each element of the active lanes, or to each `pack` neighbours.

    The function is not called for inactive lanes: a loop in it might not end for their values.
    """
    arrays = _aligned([value.data for value in inputs])
    if active is not None and len(arrays[0]) > 1:
        own = [Value(a[active], value.dtype.scalar) for a, value in zip(arrays, inputs, strict=True)]
        return [_spread(value, active) for value in map_elements(tuple(own), function, pack, None, apply)]
    shape = arrays[0].shape
    columns = [
        Value(array.reshape(-1, pack)[:, position], value.dtype.scalar)
        for array, value in zip(arrays, inputs, strict=True)
        for position in range(pack)
    ]
    lanes = len(columns[0].data)
    results = _as_tuple(apply(function, lanes, *columns))
    found = []
    for first in range(0, len(results), pack):
        parts = [np.broadcast_to(r.handle.data, (lanes,)) for r in results[first : first + pack]]
        found.append(Value(np.stack(parts, axis=-1).reshape(shape), results[first].handle.dtype))
    return found


def _spread(value: Value, active: np.ndarray) -> Value:
    """Extend a value of the active lanes to all lanes; the others hold zeros."""
    data = np.zeros((len(active), *value.shape), value.data.dtype)
    data[active] = value.data
    return Value(data, value.dtype)


def _reduced(array: np.ndarray, axis: int, ufunc: np.ufunc, type: Any) -> Value:
    np_dtype = compute_dtype(type)
    if np_dtype == np.float16 and ufunc in (np.add, np.multiply):
        return Value(ufunc.reduce(array, axis=axis, dtype=np.float32).astype(np_dtype), type)
    result = np.asarray(ufunc.reduce(array, axis=axis, dtype=None if np_dtype.kind == "b" else np_dtype))
    if np_dtype.kind == "b":
        result = result.astype(bool)
    return Value(floats.round_to(result, NARROW[type]) if type in NARROW else result, type)


def _picked(arrays: list[np.ndarray], axis: int, combine: Any) -> list[np.ndarray]:
    values, indices = _aligned(arrays)
    pick, instead = _PICKED[combine]
    at = pick(values, axis=axis)
    if values.dtype.kind == "f" and (missing := np.isnan(values)).any():
        compared = np.where(missing, values.dtype.type(instead), values)
        at = pick(compared, axis=axis)
        # The infinity that replaces NaN must not be chosen over an infinite element.
        best = np.take_along_axis(compared, np.expand_dims(at, axis), axis)
        real = ~missing & (compared == best)
        at = np.where(real.any(axis=axis), real.argmax(axis=axis), at)
    at = np.expand_dims(at, axis)
    return [np.take_along_axis(array, at, axis).squeeze(axis) for array in (values, indices)]


def _combined(
    combine: Any, types: list[Any], left: list[np.ndarray], right: list[np.ndarray], apply: Apply
) -> list[np.ndarray]:
    """Combine all pairs of elements, each pair in its own lane."""
    shape = left[0].shape
    pairs = [
        Value(np.ascontiguousarray(array).reshape(-1), type)
        for array, type in zip([*left, *right], [*types, *types], strict=True)
    ]
    results = _as_tuple(apply(combine, len(pairs[0].data), *pairs))
    return [
        np.broadcast_to(
            result.handle.data.astype(compute_dtype(type), copy=False), pairs[0].data.shape
        ).reshape(shape)
        for result, type in zip(results, types, strict=True)
    ]


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return (result,) if isinstance(result, tl.tensor) else tuple(result)


def _aligned(arrays: list[np.ndarray]) -> list[np.ndarray]:
    lanes = max(len(array) for array in arrays)
    return [np.broadcast_to(array, (lanes, *array.shape[1:])) for array in arrays]
