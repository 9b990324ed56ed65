"""Dtypes, and PyTorch's rules for mixing them.

A dtype is represented by its name.
"""

from typing import Any


class DType(str):
    """A dtype's name that prints as users type it: `gt.float32`. It equals the plain name."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"gt.{self}"

    @property
    def is_floating_point(self) -> bool:
        """Whether its dtype is a floating point dtype."""
        return is_float(self)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return ITEMSIZE[self]


# In ascending order within a category.
DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
)
NAMED: dict[str, DType] = {name: DType(name) for name in DTYPES}
ITEMSIZE: dict[str, int] = dict(zip(DTYPES, (1, 1, 1, 2, 4, 8, 2, 2, 4, 8), strict=True))

SIZES: dict[str, int] = ITEMSIZE | {
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), 1),
}
"""The size of an element in bytes, of all dtypes that a value on a worker can have: PyTorch has more."""

HALF = ("float16", "bfloat16")
"""The dtypes of half precision."""

LARGEST: dict[str, float] = {
    "float16": 65504.0,
    "bfloat16": (2 - 2**-7) * 2.0**127,
    "float32": (2 - 2**-23) * 2.0**127,
    "float64": (2 - 2**-52) * 2.0**1023,
}
"""The largest number of each floating point dtype."""

PRECISION: dict[str, int] = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
"""The bits of each floating point dtype's significand, the implicit leading one included."""

_CATEGORY = {name: 0 if name == "bool" else 2 if "float" in name else 1 for name in DTYPES}
_DEFAULT = {0: "bool", 1: "int64", 2: "float32"}
_TITLES = ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double")
TITLE: dict[str, str] = dict(zip(DTYPES, _TITLES, strict=True))
"""The names of dtypes in PyTorch's error messages."""
# If neither dtype can represent the other's values, a third one is the result.
_NEITHER = {
    frozenset(("uint8", "int8")): "int16",
    frozenset(("float16", "bfloat16")): "float32",
}
_PYTHON = {bool: "bool", int: "int64", float: "float32"}


def is_float(dtype: str) -> bool:
    """Whether a dtype is a floating point dtype, and so can have a gradient."""
    return _CATEGORY[dtype] == 2


def category(dtype: str) -> str:
    """The category of a dtype: "bool", "int" or "float".

    >>> category("uint8"), category("bfloat16")
    ('int', 'float')
    """
    return ("bool", "int", "float")[_CATEGORY[dtype]]


def fits(dtype: str, into: str) -> bool:
    """Whether a result of one dtype may be written into a tensor of another: floats not into integers.

    >>> fits("float64", "float16"), fits("float32", "int64"), fits("int64", "float16")
    (True, False, True)
    """
    return _CATEGORY[dtype] <= _CATEGORY[into]


_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool_": "bool",
    # PyTorch's tensor types, as in x.type("torch.LongTensor").
    **{f"{title}Tensor": name for name, title in TITLE.items()},
}


def find(dtype: Any) -> str | None:
    """The name of a dtype given as one of ours, NumPy's or PyTorch's, a name, or a Python type.

    >>> find("float32"), find(float), find("torch.int64"), find("quaternion")
    ('float32', 'float32', 'int64', None)
    """
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.rpartition(".")[2]
    name = _ALIASES.get(name, name)
    return name if name in _CATEGORY else None


def of_scalar(value: bool | int | float) -> str:
    """The dtype of a tensor made of a Python number."""
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"


def promote(left: str, right: str, left_rank: int = 1, right_rank: int = 1) -> str:
    """The dtype of an operation over two tensors; one of rank 0 changes it only by category.

    >>> promote("int32", "float32"), promote("bool", "int64"), promote("float16", "float32")
    ('float32', 'int64', 'float32')
    >>> promote("int32", "int64", 1, 0), promote("int32", "float64", 1, 0)
    ('int32', 'float64')
    """
    if left == right:
        return left
    if left_rank and not right_rank and _CATEGORY[right] <= _CATEGORY[left]:
        return left
    if right_rank and not left_rank and _CATEGORY[left] <= _CATEGORY[right]:
        return right
    return _NEITHER.get(frozenset((left, right))) or max(left, right, key=DTYPES.index)


def promote_scalar(tensor: str, value: bool | int | float) -> str:
    """The dtype of an operation over a tensor and a Python number: the number changes it only by category.

    >>> promote_scalar("float16", 2.5), promote_scalar("int32", 2.5), promote_scalar("bool", 1)
    ('float16', 'float32', 'int64')
    """
    category = _CATEGORY[of_scalar(value)]
    return tensor if category <= _CATEGORY[tensor] else _DEFAULT[category]
