"""Operands and results that the compute instructions of `nki.isa` share."""

from typing import Any

import numpy as np

from triton_viz.dsls.nki import nki_machine, nki_ops
from triton_viz.dsls.nki.nki_ops import (
    Operand,
    finish,
    operand,
)
from triton_viz.dsls.nki.tensor import Tensor
from triton_viz.errors import KernelError

FLOAT = np.dtype(np.float32)
"""The dtype that engines compute in."""


def writes(*tensors: Tensor | None) -> tuple[Tensor, ...]:
    """The given tensors, without None."""
    return tuple(tensor for tensor in tensors if tensor is not None)


def per_partition(x: Any, rank: int, of: str, partitions: int) -> Operand:
    """An operand that is a scalar, or a tile with one value per partition, broadcast over the free axes."""
    op = operand(x)
    if op.values.ndim == 0:
        return op
    if op.values.size not in (1, partitions) and op.values.shape[0] != partitions:
        raise KernelError(
            f"{of}: an operand of shape {op.values.shape} for a tile of {partitions} partitions"
        )
    if op.values.size == op.values.shape[0]:
        shape = (op.values.shape[0],) + (1,) * (rank - 1)
        undefined = (
            None if op.undefined is None else np.broadcast_to(op.undefined, op.values.shape).reshape(shape)
        )
        return Operand(op.values.reshape(shape), undefined, op.dtype, op.tensor)
    return op


def not_both_in_psum(name: str, a: Any, b: Any) -> None:
    """Report two operands in PSUM, which the vector engine cannot read at once."""
    both = [x for x in (a, b) if isinstance(x, Tensor) and x.memory == "PSUM"]
    if len(both) == 2 and both[0].storage is not both[1].storage:
        nki_machine.current().report(
            "memory",
            f"{name} reads {both[0].name} and {both[1].name}, which are both in PSUM: one of them has to be "
            "in SBUF",
            tensor=both[0].name,
            suggestion="copy one of them to SBUF first (nisa.tensor_copy)",
        )


def result(
    dst: Tensor | None,
    values: np.ndarray,
    undefined: np.ndarray | None,
    dtype: Any,
    ops_of: list[Operand],
    mask: np.ndarray | None,
) -> Tensor:
    """The result of an instruction, in the given dtype."""
    if undefined is not None:
        undefined = np.broadcast_to(undefined, values.shape)
    element_dtype = nki_ops.result_dtype(dtype, ops_of)
    if values.dtype.kind == "b" and dtype is None:
        element_dtype = element_dtype if dst is not None else np.dtype(np.uint8)
    return finish(dst, values, undefined, element_dtype if dst is None else dst.dtype, mask)
