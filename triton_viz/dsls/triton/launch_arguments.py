"""The conversion of a launch's arguments: tensors are moved to the host, then become pointers and scalars."""

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.jit import TensorWrapper
from triton.tools.tensor_descriptor import TensorDescriptor

from triton_viz.dsls.triton import compat
from triton_viz.dsls.triton.ops.types import COMPUTE_DTYPES, NARROW
from triton_viz.errors import UnsupportedError
from triton_viz.executor.value import Value
from triton_viz.numerics import floats


class HostCopies:
    """Arguments with every tensor in host memory. Tensors on a GPU are copied to the host, and back at the
    end."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[Any, Any]] = {}

    def of(self, argument: Any) -> Any:
        """An argument with its tensors on the host."""
        if isinstance(argument, tuple):
            return compat.tuple_like(argument, [self.of(member) for member in argument])
        if isinstance(argument, list):
            return [self.of(member) for member in argument]
        if isinstance(argument, TensorDescriptor):
            base = self.of(argument.base)
            return argument if base is argument.base else compat.with_base(argument, base)
        if isinstance(argument, TensorWrapper):
            base = self.of(argument.base)
            return argument if base is argument.base else TensorWrapper(base, argument.dtype)
        return self._tensor(argument) if hasattr(argument, "untyped_storage") else argument

    def _tensor(self, tensor: Any) -> Any:
        import torch

        if tensor.device.type == "cpu":
            if tensor.layout is not torch.strided:
                raise UnsupportedError(f"a kernel cannot take a tensor of layout {tensor.layout}")
            if type(tensor) is not torch.Tensor and tensor.numel() and not _has_memory(tensor):
                raise UnsupportedError(f"a kernel cannot take a {type(tensor).__name__}: it has no memory")
            return tensor
        if tensor.device.type not in ("cuda", "xpu", "mps", "hpu", "npu"):
            raise UnsupportedError(
                f"a kernel cannot run on a tensor of device {tensor.device}: move it to the CPU"
            )
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._storages:
            self._storages[storage.data_ptr()] = (storage, storage.cpu())
        copy = tensor.new_empty(0, device="cpu")
        _, on_host = self._storages[storage.data_ptr()]
        return copy.set_(on_host, tensor.storage_offset(), tensor.size(), tensor.stride())

    def write_back(self) -> None:
        """Copy tensors back to the GPU."""
        for there, here in self._storages.values():
            there.copy_(here)


def _has_memory(tensor: Any) -> bool:
    """Whether a tensor of a subclass has memory of its own: fake and wrapper tensors have none."""
    import torch

    if isinstance(tensor, torch._subclasses.FakeTensor):
        return False
    try:
        return tensor.data_ptr() != 0
    except RuntimeError:
        return False


def as_constant(argument: Any) -> Any:
    """An argument as a compile-time constant: a Python value."""
    if isinstance(argument, tl.constexpr):
        return argument.value
    return argument.item() if isinstance(argument, np.generic) else argument


def as_value(argument: Any, semantic: Any, annotated: Any = None) -> Any:
    """An argument as a kernel's value: a pointer, a scalar or a descriptor; other objects are unchanged.

    An annotated type takes precedence.
    """
    if argument is None or isinstance(argument, tl.constexpr):
        return None if argument is None else argument.value
    if isinstance(argument, np.generic):
        argument = argument.item()
    if annotated is not None and not isinstance(argument, tuple):
        return _annotated(argument, annotated)
    if isinstance(argument, bool):
        return _scalar(argument, tl.int1)
    if isinstance(argument, int):
        if not -(2**63) <= argument < 2**64:
            raise UnsupportedError(f"{argument} does not fit into 64 bits")
        return _scalar(argument, tl.int32 if -(2**31) <= argument < 2**31 else _wide(argument))
    if isinstance(argument, float):
        return _scalar(argument, tl.float32)
    if isinstance(argument, TensorDescriptor):
        return _descriptor(argument, semantic)
    if isinstance(argument, tuple):
        return compat.tuple_like(argument, [as_value(member, semantic) for member in argument])
    if hasattr(argument, "data_ptr"):
        return _pointer(argument.data_ptr(), _type_of(argument))
    if isinstance(argument, np.ndarray):
        raise UnsupportedError("a kernel takes torch tensors, not NumPy's arrays: give torch.from_numpy(...)")
    if isinstance(argument, list | dict | set):
        raise UnsupportedError(f"a kernel cannot take a {type(argument).__name__}: give a tuple")
    return argument


def _annotated(argument: Any, dtype: Any) -> Any:
    if hasattr(argument, "data_ptr"):
        return _pointer(argument.data_ptr(), dtype if dtype.is_ptr() else _type_of(argument))
    if not isinstance(argument, bool | int | float):
        raise UnsupportedError(f"{argument!r} is not of the annotated type, {dtype}")
    if dtype.is_ptr():
        return _pointer(int(argument), dtype)
    number = _converted(np.array([argument]), COMPUTE_DTYPES[dtype])
    if dtype in NARROW:
        return tl.tensor(Value(floats.round_to(number, NARROW[dtype]), dtype), dtype)
    return tl.tensor(Value(number, dtype), dtype)


def _type_of(tensor: Any) -> Any:
    try:
        return compat.type_of(tensor)
    except (KeyError, TypeError, AttributeError):
        raise UnsupportedError(f"a kernel cannot take a tensor of type {tensor.dtype}") from None


def _pointer(address: int, type: Any) -> Any:
    return tl.tensor(Value(np.array([address], np.uint64).view(np.int64), type), type)


def _scalar(number: Any, dtype: Any) -> Any:
    return tl.tensor(Value(_converted(np.array([number]), COMPUTE_DTYPES[dtype]), dtype), dtype)


def _converted(number: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A number converted to a dtype without a warning: a float that is too large becomes infinite."""
    with np.errstate(all="ignore"):
        return number.astype(dtype)


def _wide(number: int) -> Any:
    return tl.int64 if number < 2**63 else tl.uint64


def _descriptor(argument: TensorDescriptor, semantic: Any) -> Any:
    if argument.strides[-1] != 1:
        raise UnsupportedError("a tensor descriptor's last axis must be contiguous")
    strides = [*(as_value(s, semantic) for s in argument.strides[:-1]), tl.constexpr(1)]
    descriptor = semantic.make_tensor_descriptor(
        base=as_value(argument.base, semantic),
        shape=[as_value(s, semantic) for s in argument.shape],
        strides=strides,
        block_shape=[tl.constexpr(b) for b in argument.block_shape],
        padding_option=getattr(argument, "padding", "zero"),
    )
    descriptor.handle.round_f32_to_tf32 = getattr(argument, "round_f32_to_tf32", False)
    return descriptor
