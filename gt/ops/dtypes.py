"""Dtypes, and PyTorch's rules for mixing them.

A dtype is its name. That is all that needs to travel.
"""

DTYPES = ("bool", "int32", "int64", "float16", "float32", "float64")

_CATEGORY = {name: 0 if name == "bool" else 1 if name.startswith("int") else 2 for name in DTYPES}
_DEFAULT = {0: "bool", 1: "int64", 2: "float32"}


def is_float(dtype: str) -> bool:
    """Whether a dtype holds fractions, and so can have a gradient."""
    return _CATEGORY[dtype] == 2


def of_scalar(value: bool | int | float) -> str:
    """The dtype a Python number has when it stands alone."""
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"


def promote(left: str, right: str, left_rank: int = 1, right_rank: int = 1) -> str:
    """The dtype of an operation over two tensors; one of rank 0 changes it only by category.

    >>> promote("int32", "float32"), promote("bool", "int64"), promote("float16", "float32")
    ('float32', 'int64', 'float32')
    >>> promote("int32", "int64", 1, 0), promote("int32", "float64", 1, 0)
    ('int32', 'float64')
    """
    if left_rank and not right_rank and _CATEGORY[right] <= _CATEGORY[left]:
        return left
    if right_rank and not left_rank and _CATEGORY[left] <= _CATEGORY[right]:
        return right
    # DTYPES is in ascending order, so the later of the two holds both.
    return max(left, right, key=DTYPES.index)


def promote_scalar(tensor: str, value: bool | int | float) -> str:
    """The dtype of an operation over a tensor and a Python number: the number changes it only by category.

    >>> promote_scalar("float16", 2.5), promote_scalar("int32", 2.5), promote_scalar("bool", 1)
    ('float16', 'float32', 'int64')
    """
    category = _CATEGORY[of_scalar(value)]
    return tensor if category <= _CATEGORY[tensor] else _DEFAULT[category]
