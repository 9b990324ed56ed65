"""Functions that make tensors.

Each takes PyTorch's `device` and `pin_memory`, and ignores them: the server decides where a tensor is.
"""

import math
from typing import Any

import numpy as np

from gt.client.session import current
from gt.errors import ArgumentError, DTypeError
from gt.ops import dtypes
from gt.tensors.base import Number, check_dtype, check_number, create, leaf, upload
from gt.tensors.methods.shaping import Size, as_shape
from gt.tensors.numpy_names import with_numpy_names
from gt.tensors.tensor import Tensor
from gt.transport.arrays import numpy_dtype

__all__ = [
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tensor",
    "zeros",
    "zeros_like",
]

# --- of data ---


def tensor(
    data: Any,
    dtype: Any = None,
    requires_grad: bool = False,
    *,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """A tensor of this data: numbers, nested lists, an array, a tensor of GT's or PyTorch's.

    As in PyTorch, Python floats become float32. With `requires_grad`, so do integers.
    """
    if isinstance(data, Tensor):
        x = data._value.tensor() if dtype is None else data._value.tensor().to(dtype)
        x._edge = leaf(x._value.spec.dtype, requires_grad)
        return x
    array, name = _as_array(data)
    if dtype is not None:
        name = check_dtype(dtype)
    elif requires_grad and name in dtypes.DTYPES and not dtypes.is_float(name):
        name = "float32"
    if array.dtype.name == check_dtype(name) and array.dtype.isnative:
        return upload(current(), array, requires_grad, owned=array is not data and array.base is None)
    with np.errstate(all="ignore"):  # what is too large is infinite, as in PyTorch
        cast = array.astype(numpy_dtype(name), order="C")
    return upload(current(), cast, requires_grad, owned=True)


def _as_array(data: Any) -> tuple[np.ndarray, str]:
    """The data as an array, and the dtype of the tensor."""
    if type(data).__module__.partition(".")[0] == "torch":
        # Recognized by its module's name, so that the client does not import torch.
        name = check_dtype(data.dtype)
        data = data.detach().cpu()
        return (data.float() if name == "bfloat16" else data).numpy(), name
    if hasattr(data, "dtype"):
        array = np.asarray(data)
        return array, array.dtype.name
    found: list[str] = []
    try:
        array = np.asarray(_without_tensors(data, found))
    except ValueError:
        raise ValueError(_ragged(data)) from None
    name = array.dtype.name
    if array.dtype == object:
        raise TypeError(f"gt.tensor() takes numbers, arrays and lists of them, not {_culprit(data)}")
    if name == "float64" and "float64" not in found:
        name = "float32"
    return array, name


def _without_tensors(data: Any, found: list[str]) -> Any:
    """Nested lists with tensors replaced by their values; the dtypes in them are appended to `found`."""
    if isinstance(data, list | tuple):
        return [_without_tensors(item, found) for item in data]
    if isinstance(data, Tensor):
        found.append(data.dtype)
        return data._fetch()
    if isinstance(data, np.ndarray | np.generic):
        found.append(data.dtype.name)
    return data


def _ragged(data: Any) -> str:
    """PyTorch's error message for lists of unequal lengths."""
    dim, level = 0, [data]
    while level and all(isinstance(item, list | tuple) for item in level):
        lengths = [len(item) for item in level]
        for n in lengths:
            if n != lengths[0]:
                return f"expected sequence of length {lengths[0]} at dim {dim} (got {n})"
        level = [item for row in level for item in row]
        dim += 1
    return f"expected numbers at dim {dim}, but some are sequences"


def _culprit(data: Any) -> str:
    while isinstance(data, list | tuple) and data:
        data = next((item for item in data if not isinstance(item, Number)), data[0])
    return f"{data!r}, a {type(data).__name__}"


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The tensor itself if it is one, with its gradient; else as `tensor`."""
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return tensor(data, dtype)


asarray = as_tensor


def scalar_tensor(
    s: Number,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """A tensor of one number, without dimensions."""
    return full((), s, "float32" if dtype is None else dtype, requires_grad)


def from_numpy(array: np.ndarray, requires_grad: bool = False) -> Tensor:
    """A tensor of an array's data, in the array's dtype. A copy: the array may change afterwards."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy() takes an array, not {type(array).__name__}; use gt.tensor()")
    return tensor(array, requires_grad=requires_grad)


# --- of numbers ---


def full(
    size: Size,
    fill_value: Number,
    dtype: Any = None,
    requires_grad: bool = False,
    *,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """A tensor of one value everywhere."""
    name = check_dtype(dtypes.of_scalar(check_number(fill_value)) if dtype is None else dtype)
    value = _fitting(fill_value, name)
    return create(current(), "full", requires_grad, shape=as_shape((size,)), value=value, dtype=name)


def _fitting(value: Number, dtype: str) -> Number:
    """A number converted to this dtype."""
    if isinstance(value, float) and dtypes.category(dtype) == "int":
        if not math.isfinite(value):
            raise DTypeError(f"value cannot be converted to type {dtype} without overflow")
        return check_number(int(value))
    return check_number(value)


def zeros(
    *sizes: Size,
    size: Size | None = None,
    dtype: Any = "float32",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """A tensor of zeros."""
    return full(as_shape(sizes, size), 0, dtype or "float32", requires_grad)


def ones(
    *sizes: Size,
    size: Size | None = None,
    dtype: Any = "float32",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """A tensor of ones."""
    return full(as_shape(sizes, size), 1, dtype or "float32", requires_grad)


empty = zeros
"""A tensor of zeros: results must not depend on uninitialized memory."""


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = "float32",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Ones on the diagonal, and zeros elsewhere."""
    if n < 0 or (m is not None and m < 0):
        raise ArgumentError(f"n must be greater or equal to 0, got {n if n < 0 else m}")
    shape = (n, n if m is None else m)
    return create(current(), "eye", requires_grad, shape=shape, dtype=check_dtype(dtype or "float32"))


def arange(
    start: Number | None = None,
    end: Number | None = None,
    step: Number = 1,
    dtype: Any = None,
    requires_grad: bool = False,
    *,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Numbers from start (0 if only the end is given) up to, and without, end."""
    if end is None:
        start, end = 0, start
    elif start is None:
        start = 0
    if end is None:
        raise TypeError("arange() takes an end, or a start and an end")
    if step == 0:
        raise ArgumentError("step must be nonzero")
    if (end - start) * step < 0:
        raise ArgumentError("upper bound and lower bound inconsistent with step sign")
    whole = all(isinstance(check_number(n), int) for n in (start, end, step))
    name = check_dtype(dtype or ("int64" if whole else "float32"))
    start, step = check_number(start), check_number(step)
    # Integers are divided exactly: a float quotient of large ones would be rounded.
    count = -((start - end) // step) if whole else math.ceil((end - start) / step)
    return create(current(), "arange", requires_grad, shape=(int(count),), start=start, step=step, dtype=name)


def linspace(
    start: Number,
    end: Number,
    steps: int,
    *,
    dtype: Any = "float32",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """`steps` numbers, evenly spaced from start to end, both included."""
    if steps < 0:
        raise ArgumentError("number of steps must be non-negative")
    name, ends = check_dtype(dtype or "float32"), (check_number(float(start)), check_number(float(end)))
    return create(
        current(), "linspace", requires_grad, shape=(steps,), start=ends[0], end=ends[1], dtype=name
    )


def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = "float32",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Powers of a base, evenly spaced in their exponents."""
    powers = (base ** linspace(start, end, steps, dtype="float64")).to(dtype or "float32")
    return powers.requires_grad_() if requires_grad else powers


# --- in another's shape and dtype ---


@with_numpy_names
def full_like(
    input: Tensor,
    fill_value: Number,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """A tensor of one value, in another's shape and dtype."""
    return full(input.shape, fill_value, dtype or input.dtype, requires_grad)


@with_numpy_names
def zeros_like(
    input: Tensor,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Zeros in another's shape and dtype."""
    return full(input.shape, 0, dtype or input.dtype, requires_grad)


@with_numpy_names
def ones_like(
    input: Tensor,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Ones in another's shape and dtype."""
    return full(input.shape, 1, dtype or input.dtype, requires_grad)


empty_like = zeros_like
