"""The conversion of a launch's arguments to symbolic values: tensors to base addresses, numbers to
constants."""

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.jit import TensorWrapper
from triton.tools.tensor_descriptor import TensorDescriptor

from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.triton import compat
from triton_viz.dsls.triton.symbolic.expression import FALSE, TRUE, base, number
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.integers import wrap
from triton_viz.dsls.triton.symbolic.symbolic_ops import Stopped
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic, integer_type


def as_symbolic(
    argument: Any, name: str, tensors: dict[str, TensorInfo], semantic: Any, annotated: Any = None
) -> Any:
    """An argument as a symbolic value; other objects than tensors and numbers are unchanged.

    An annotated type takes precedence.
    """
    if isinstance(argument, tl.constexpr):
        return argument.value
    if isinstance(argument, np.generic):
        argument = argument.item()
    if annotated is not None and isinstance(argument, bool | int | float):
        return _annotated(argument, annotated, name)
    if isinstance(argument, bool):
        return _tensor(TRUE if argument else FALSE, tl.int1, name)
    if isinstance(argument, int):
        return _tensor(number(argument), _integer_type(argument), name)
    if isinstance(argument, float):
        return _tensor(argument, tl.float32, name)
    if isinstance(argument, tuple):
        members = [as_symbolic(m, f"{name}[{i}]", tensors, semantic) for i, m in enumerate(argument)]
        return compat.tuple_like(argument, members)
    if isinstance(argument, TensorDescriptor):
        return _descriptor(argument, name, tensors, semantic)
    if hasattr(argument, "data_ptr") or isinstance(argument, TensorWrapper):
        if name not in tensors:
            raise Stopped(f"the tensor {name} is unknown")
        pointer_type = compat.type_of(argument) if annotated is None or not annotated.is_ptr() else annotated
        return _tensor(base(name, tensors[name].address), pointer_type, name)
    return argument


def _annotated(argument: bool | int | float, dtype: Any, name: str) -> Any:
    if dtype.is_floating():
        return _tensor(float(argument), dtype, name)
    if dtype.is_bool():
        return _tensor(TRUE if argument else FALSE, dtype, name)
    return _tensor(wrap(number(int(argument)), integer_type(dtype)), dtype, name)


def _tensor(node: Any, dtype: Any, name: str) -> Any:
    return tl.tensor(Symbolic(node, dtype, (), Origin(name)), dtype)


def _integer_type(value: int) -> Any:
    if -(2**31) <= value < 2**31:
        return tl.int32
    return tl.int64 if value < 2**63 else tl.uint64


def _descriptor(argument: Any, name: str, tensors: dict[str, TensorInfo], semantic: Any) -> Any:
    def member(value: Any, of: str) -> Any:
        return as_symbolic(value, f"{name}.{of}", tensors, semantic)

    return semantic.make_tensor_descriptor(
        base=as_symbolic(argument.base, name, tensors, semantic),
        shape=[member(s, "shape") for s in argument.shape],
        strides=[*(member(s, "strides") for s in argument.strides[:-1]), tl.constexpr(1)],
        block_shape=[tl.constexpr(b) for b in argument.block_shape],
        padding_option=getattr(argument, "padding", "zero"),
    )
