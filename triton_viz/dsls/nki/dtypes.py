"""Dtypes of elements: NumPy's, and those of ml_dtypes that NumPy lacks."""

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from triton_viz.errors import UnsupportedError
from triton_viz.numerics.floats import round_to_tf32

tfloat32 = np.dtype(np.float32, metadata={"nki": "tfloat32"})
"""float32 with ten bits of mantissa. In memory it is a float32."""

TYPES: dict[str, np.dtype] = {
    "bool_": np.dtype(bool),
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64")},
    **{name: np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
    "float16": np.dtype(np.float16),
    "float32": np.dtype(np.float32),
    "tfloat32": tfloat32,
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "float8_e8m0fnu": np.dtype(ml_dtypes.float8_e8m0fnu),
}
"""The dtypes by their names in `nki.language`."""

_SHORT = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3": "fp8e4",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e8m0fnu": "fp8e8",
    "bool": "int1",
}


class ElementType:
    """A dtype for clients, with the name that all backends use, such as fp32."""

    __slots__ = ("dtype", "name")

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self.name = _SHORT.get(dtype.name, dtype.name)

    @property
    def scalar(self) -> "ElementType":
        """The dtype of one element: itself."""
        return self

    def is_floating(self) -> bool:
        """Whether it is a floating-point dtype."""
        return is_float(self.dtype)

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ElementType) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


def as_dtype(given: Any) -> np.dtype:
    """A dtype from one of NumPy or `nki.language`, or from its name."""
    if isinstance(given, str):
        name = "bool_" if given == "bool" else given
        if name in TYPES:
            return TYPES[name]
    try:
        dtype = np.dtype(given)
    except TypeError:
        dtype = np.dtype(object)
    if given is None or dtype.kind not in "biufV" or dtype.names:
        raise UnsupportedError(
            f"{given!r} is not a dtype of elements: give one of nki.language, such as nl.float32"
        )
    return dtype


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype is floating-point."""
    return dtype.kind == "f" or dtype in _NARROW


_NARROW = {dtype for name, dtype in TYPES.items() if "float" in name and dtype.kind == "V"}


def promote(dtypes: Iterable[np.dtype]) -> np.dtype:
    """The dtype of a result: floats take precedence over integers, wide ones over narrow ones."""
    found = list(dtypes)
    floating = [dtype for dtype in found if is_float(dtype)]
    if not found:
        return np.dtype(np.float32)
    result = (floating or found)[0]
    for dtype in (floating or found)[1:]:
        if dtype == result:
            continue
        if floating and dtype.itemsize != result.itemsize:
            result = max(dtype, result, key=lambda d: d.itemsize)
        else:
            try:
                result = np.promote_types(dtype, result)
            except TypeError:  # two different 8-bit floats
                result = np.dtype(np.float32)
    return result


def cast(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values as another dtype: rounded to nearest even, and clipped to the range of an integer."""
    if dtype.metadata and dtype.metadata.get("nki") == "tfloat32":
        return round_to_tf32(np.asarray(values, np.float32))
    if values.dtype == dtype:
        return values
    if dtype.kind in "iu" and is_float(values.dtype):
        limits = np.iinfo(dtype)
        rounded = np.nan_to_num(np.rint(values.astype(np.float64)), nan=0.0)
        inside = np.clip(rounded, float(limits.min), float(limits.max))
        return np.where(inside >= float(limits.max), limits.max, inside.astype(dtype)).astype(dtype)
    if dtype.kind == "b":
        return values.astype(np.float32) != 0 if is_float(values.dtype) else values != 0
    if dtype in _NARROW and values.dtype.kind in "biu":
        values = values.astype(np.float32)
    return values.astype(dtype)
