"""The tensor engine: products and transposes of tiles."""

from typing import Any

import numpy as np

from triton_viz.dsls.nki import hardware, nki_machine
from triton_viz.dsls.nki.tensor import Tensor, as_value
from triton_viz.dsls.nki.tiles import (
    as_mask,
    finish,
    operand,
    result_dtype,
    whole_or_none,
)
from triton_viz.errors import KernelError


def matmul(
    stationary: Tensor,
    moving: Tensor,
    dst: Tensor | None = None,
    accumulate: bool | None = None,
    mask: Any = None,
    name: str = "nc_matmul",
) -> Tensor:
    """`stationary.T @ moving` on the tensor engine, in PSUM."""
    here = nki_machine.current()
    left, right = operand(stationary), operand(moving)
    for which, tile in (("stationary", stationary), ("moving", moving)):
        if tile.memory != "SBUF":
            here.report(
                "memory",
                f"{name} reads its {which} tile {tile.name} from {tile.memory}: the tensor engine reads SBUF",
                tensor=tile.name,
                suggestion="copy it to SBUF first (nisa.tensor_copy, nl.copy)",
            )
    if dst is not None and dst.memory != "PSUM":
        here.report(
            "memory",
            f"{name} writes {dst.name}, which is in {dst.memory}: the tensor engine writes PSUM",
            tensor=dst.name,
            suggestion="allocate it with buffer=nl.psum, and copy the result to SBUF",
        )
    a, b = (op.values.reshape(op.values.shape[0], -1) for op in (left, right))
    _check_tiles(name, stationary, moving, a.shape, b.shape)
    slow = 4 if left.values.dtype.itemsize == 4 else 1
    flops = 2 * a.shape[0] * a.shape[1] * b.shape[1]
    writes = () if dst is None else (dst,)
    here.instruction(
        "nc_matmul", None, (stationary, moving), writes, elements=b.shape[1], flops=flops, slow=slow
    )
    product = here.builder.dot(as_value(a.T, left.dtype), as_value(b, right.dtype)).data[0]
    product = product.reshape(a.shape[1], *right.values.shape[1:])
    undefined = None
    if left.undefined is not None or right.undefined is not None:
        rows = np.zeros(a.shape[1], bool)
        columns = np.zeros(b.shape[1], bool)
        if left.undefined is not None:
            missing = np.broadcast_to(left.undefined, left.values.shape)
            rows = whole_or_none(missing.reshape(a.shape), 0, stationary, missing, "in a product")
        if right.undefined is not None:
            missing = np.broadcast_to(right.undefined, right.values.shape)
            columns = whole_or_none(missing.reshape(b.shape), 0, moving, missing, "in a product")
        undefined = (rows[:, None] | columns[None, :]).reshape(product.shape)
    keep = as_mask(mask, product.shape, product)
    if dst is None:
        return finish(None, product, undefined, np.dtype(np.float32), keep, "PSUM")
    if accumulate is not False:
        before, never = dst.read()
        old = before.reshape(product.shape).astype(np.float32)
        if accumulate and never is not None:
            here.report_undefined(dst, never, "to accumulate on")
        # Undefined elements are overwritten.
        product = product + (old if never is None else np.where(never.reshape(product.shape), 0, old))
    return finish(dst, product, undefined, dst.dtype, keep)


def _check_tiles(
    name: str, stationary: Tensor, moving: Tensor, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    here = nki_machine.current()
    if a[0] != b[0]:
        raise KernelError(
            f"{name}: the stationary tile {stationary.name} of shape {stationary.shape} and the moving tile "
            f"{moving.name} of shape {moving.shape} have {a[0]} and {b[0]} partitions: they are summed over, "
            "and have to be equal"
        )
    rules = (
        (
            a[0],
            hardware.PARTITIONS,
            f"{stationary.name} and {moving.name} have {a[0]} partitions",
            "nl.tile_size.pmax",
        ),
        (
            *(a[1], hardware.STATIONARY_FREE),
            f"the stationary tile {stationary.name} of shape {stationary.shape} has {a[1]} columns",
            "nl.tile_size.gemm_stationary_fmax",
        ),
        (
            *(b[1], hardware.MOVING_FREE),
            f"the moving tile {moving.name} of shape {moving.shape} has {b[1]} columns",
            "nl.tile_size.gemm_moving_fmax",
        ),
    )
    for size, limit, said, constant in rules:
        if size > limit:
            here.report(
                "matmul tile",
                f"{name}: {said}, and the tensor engine takes at most {limit}",
                tensor=stationary.name,
                suggestion=f"take tiles of {limit} in a loop ({constant})",
            )
    if (stationary.dtype == np.float32) != (moving.dtype == np.float32):
        here.report(
            "matmul type",
            f"{name}: {stationary.name} is {stationary.dtype.name} and {moving.name} is {moving.dtype.name}: "
            "if one is float32, both have to be",
            suggestion="convert one of them (nl.copy(..., dtype=...))",
        )


def transpose(
    data: Tensor,
    dst: Tensor | None = None,
    dtype: Any = None,
    mask: Any = None,
    engine: str | None = None,
) -> Tensor:
    """A tile with its partitions as columns."""
    here = nki_machine.current()
    op = operand(data)
    flat = op.values.reshape(op.values.shape[0], -1)
    size = max(flat.shape)
    if engine is None:
        engine = "vector" if dst is not None and dst.memory == "SBUF" and size <= 32 else "tensor"
    limit = hardware.VECTOR_TRANSPOSE if engine == "vector" else hardware.PARTITIONS
    if size > limit:
        here.report(
            "transpose tile",
            f"nc_transpose on the {engine} engine takes tiles of at most {limit} by {limit}, and {data.name} "
            f"is of shape {data.shape}",
            tensor=data.name,
            suggestion=f"transpose parts of {limit} by {limit}, in a loop",
        )
    here.instruction("nc_transpose", engine, (data,), () if dst is None else (dst,), elements=flat.shape[1])
    memory = "PSUM" if engine == "tensor" else "SBUF"
    destination = memory if dst is None else dst.memory
    here.builder.transfer(as_value(flat.T, data.dtype), data.memory, destination, data.name)
    here.moved(data.memory, destination, data.size * data.itemsize)
    undefined = None
    if op.undefined is not None:
        undefined = np.broadcast_to(op.undefined, op.values.shape).reshape(flat.shape).T
    keep = as_mask(mask, flat.shape[::-1])
    return finish(dst, flat.T, undefined, result_dtype(dtype, [op]), keep, memory)
