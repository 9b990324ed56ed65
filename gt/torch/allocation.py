"""New tensors of the device: their storages have a size and a unique address, but no memory.

PyTorch makes such a tensor in one call from a DLPack description, in half the time that an empty tensor and
`set_` take, which are used for dtypes that DLPack does not have.
"""

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import torch

DEVICE = torch.device("privateuseone:0")
"""The device; `gt.torch.device` renames it to "tapestry"."""

CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
set_storage: Any = torch.ops.aten.set_.source_Storage_storage_offset._handle.redispatch_boxed
"""`Tensor.set_`, by PyTorch's own kernel: called with CPU_KEYS and the arguments."""

_addresses = itertools.count(1 << 60, 1 << 32)
"""Addresses of storages, which libraries compare to find shared tensors. There is no memory at them."""
_create_empty = torch._C._acc.create_empty_tensor  # type: ignore[attr-defined]
_from_dlpack = torch._C._from_dlpack
_new_capsule: Any = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

_EXTENSION_DEVICE = 12
"""DLPack's number for devices such as PyTorch's PrivateUse1."""
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}
"""DLPack's numbers for kinds of elements."""


class _Description(ctypes.Structure):
    """DLPack's `DLManagedTensor`, without a deleter."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager_context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


def create_storage(nbytes: int) -> Any:
    """A new storage with a unique address."""
    return torch._C._construct_storage_from_data_pointer(next(_addresses), DEVICE, nbytes)


def tensor_in(
    storage: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int, dtype: torch.dtype
) -> torch.Tensor:
    """A tensor in a storage."""
    return set_storage(CPU_KEYS, _create_empty((0,), dtype), storage, offset, size, stride)


def allocator(
    size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, nbytes: int
) -> Callable[[], torch.Tensor]:
    """A function that makes tensors of a size, strides and dtype, each with a storage of its own."""

    def from_storage() -> torch.Tensor:
        return tensor_in(create_storage(nbytes), size, stride, 0, dtype)

    kind = str(dtype).removeprefix("torch.").rstrip("0123456789")
    if kind not in _CODES or not nbytes:
        return from_storage
    dims = ctypes.c_int64 * len(size)
    shape, strides = dims(*size), dims(*stride)
    description = _Description(
        device_type=_EXTENSION_DEVICE,
        ndim=len(size),
        code=_CODES[kind],
        bits=8 * dtype.itemsize,
        lanes=1,
        shape=ctypes.addressof(shape),
        strides=ctypes.addressof(strides),
    )
    address = ctypes.addressof(description)
    data = ctypes.c_uint64.from_address(address)

    def from_description(alive: Any = (description, shape, strides)) -> torch.Tensor:
        capsule, start = _new_capsule(address, b"dltensor", None), next(_addresses)
        # The interpreter does not switch threads between this assignment and the call in the next line.
        data.value = start
        return _from_dlpack(capsule)

    return from_description
