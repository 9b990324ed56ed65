"""Converts a caller's arguments to a kernel's, and a kernel's result to its caller's types."""

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np

from triton_viz.dsls.nki.dtypes import TYPES
from triton_viz.dsls.nki.storage import Storage
from triton_viz.dsls.nki.tensor import Tensor
from triton_viz.errors import HardwareError, UnsupportedError

_AS_BITS = {
    "bfloat16": ("int16", ml_dtypes.bfloat16),
    "float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
}
"""The torch dtypes that NumPy lacks, with the integer dtype of the same width, and ml_dtypes' dtype."""


def is_tensor(value: Any) -> bool:
    """Whether an argument becomes a tensor in HBM: a NumPy or JAX array, or a torch tensor."""
    return (
        isinstance(value, np.ndarray)
        or hasattr(value, "untyped_storage")
        or hasattr(value, "__jax_array__")
        or (
            hasattr(value, "__array__")
            and hasattr(value, "shape")
            and not isinstance(value, np.generic | Tensor)
        )
    )


def as_array(value: Any) -> np.ndarray:
    """A caller's tensor as an array that shares its memory."""
    if isinstance(value, np.ndarray):
        return value
    if not hasattr(value, "untyped_storage"):
        return np.array(value)  # JAX arrays are read-only
    import torch

    tensor = value.detach()
    if tensor.device.type != "cpu":
        raise UnsupportedError(f"a tensor on {tensor.device}: move it to the CPU first (.cpu())")
    name = str(tensor.dtype).removeprefix("torch.")
    if name in _AS_BITS:
        bits, dtype = _AS_BITS[name]
        return tensor.view(getattr(torch, bits)).numpy().view(dtype)
    return tensor.numpy()


def as_argument(name: str, value: Any) -> Any:
    """A caller's argument, converted for the kernel: tensors are in HBM, other objects are unchanged."""
    if is_tensor(value):
        array = as_array(value)
        if array.dtype.kind not in "biuf" and array.dtype not in TYPES.values():
            raise UnsupportedError(f"argument {name!r}: a kernel cannot be given an array of {array.dtype}")
        storage = Storage(array, "HBM", name, None)
        storage.argument = value
        return Tensor(storage)
    if isinstance(value, tuple | list):
        members = [as_argument(f"{name}[{at}]", member) for at, member in enumerate(value)]
        return type(value)(members) if not hasattr(value, "_fields") else type(value)(*members)
    if isinstance(value, dict):
        return {key: as_argument(f"{name}[{key!r}]", member) for key, member in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            f.name: as_argument(f"{name}.{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **fields)
    return value


def tensors_of(name: str, value: Any) -> list[tuple[str, Tensor]]:
    """The tensors in an argument of the kernel."""
    if isinstance(value, Tensor):
        return [(value.name, value)]
    if isinstance(value, tuple | list):
        return [pair for member in value for pair in tensors_of(name, member)]
    if isinstance(value, dict):
        return [pair for member in value.values() for pair in tensors_of(name, member)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [pair for f in dataclasses.fields(value) for pair in tensors_of(name, getattr(value, f.name))]
    return []


def as_result(value: Any, in_torch: bool) -> Any:
    """A kernel's result, converted for its caller: to arrays, or to torch tensors if the arguments were."""
    if isinstance(value, Tensor):
        if value.memory != "HBM":
            raise HardwareError(
                f"the kernel returns {value.name}, which is in {value.memory}: store it in a tensor in HBM "
                "(buffer=nl.shared_hbm), and return that"
            )
        if value.whole and value.storage.argument is not None:
            return value.storage.argument
        array, _ = value.read()
        return _as_torch(array) if in_torch else array
    if isinstance(value, tuple | list):
        members = [as_result(member, in_torch) for member in value]
        return type(value)(members) if not hasattr(value, "_fields") else type(value)(*members)
    if isinstance(value, dict):
        return {key: as_result(member, in_torch) for key, member in value.items()}
    return value


def _as_torch(array: np.ndarray) -> Any:
    import torch

    for name, (bits, dtype) in _AS_BITS.items():
        if array.dtype == dtype:
            return torch.from_numpy(np.ascontiguousarray(array).view(bits)).view(getattr(torch, name))
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    return torch.from_numpy(array)
