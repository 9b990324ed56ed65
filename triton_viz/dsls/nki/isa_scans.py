"""Instructions of `nki.isa` that carry a state along each partition, with the conventions of
`isa_compute`."""

from typing import Any

import numpy as np

from triton_viz.dsls.nki import nki_machine
from triton_viz.dsls.nki.functions import function_of, identity_of
from triton_viz.dsls.nki.isa_compute import stages
from triton_viz.dsls.nki.isa_enums import reduce_cmd, word
from triton_viz.dsls.nki.isa_operands import FLOAT, not_both_in_psum, per_partition, result, writes
from triton_viz.dsls.nki.nki_ops import as_mask, free_elements, operand
from triton_viz.dsls.nki.tensor import Tensor, as_value


def tensor_tensor_scan(
    dst: Tensor | None,
    data0: Tensor,
    data1: Tensor,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """Along each partition, `state = (data0[i] <op0> state) <op1> data1[i]`."""
    first, second = (function_of(op, "nisa.tensor_tensor_scan") for op in (op0, op1))
    keep = as_mask(mask, data0.shape, data0)
    a, b = operand(data0, keep), operand(data1, keep)
    begin = per_partition(initial, 2, "tensor_tensor_scan", data0.shape[0])
    not_both_in_psum("tensor_tensor_scan", data0, data1)
    nki_machine.current().instruction(
        *("tensor_tensor_scan", None, tuple(o.tensor for o in (a, b, begin) if o.tensor), writes(dst)),
        elements=2 * free_elements(data0.shape),
        flops=2 * data0.size,
    )
    left, right = (o.values.reshape(data0.shape[0], -1).astype(np.float32) for o in (a, b))
    start = np.broadcast_to(begin.values.astype(np.float32).reshape(-1), (data0.shape[0],))

    def step(state: np.ndarray | None, position: int) -> np.ndarray:
        now = start if state is None else state
        sides = (now, left[:, position]) if reverse0 else (left[:, position], now)
        middle = first.compute(*sides)
        return second.compute(*((right[:, position], middle) if reverse1 else (middle, right[:, position])))

    scanned = nki_machine.current().builder.scan((as_value(left),), 1, f"{first.name}, {second.name}", step)
    undefined = None
    if any(o.undefined is not None for o in (a, b, begin)):
        parts = [np.broadcast_to(o.undefined, data0.shape) for o in (a, b) if o.undefined is not None]
        flat = np.zeros(left.shape, bool)
        for part in parts:
            flat |= part.reshape(left.shape)
        undefined = np.logical_or.accumulate(flat, axis=1).reshape(data0.shape)
    return result(dst, scanned.data[0].reshape(data0.shape), undefined, dtype, [a, b], keep)


def tensor_scalar_cumulative(
    dst: Tensor | None,
    src: Tensor,
    op0: Any,
    op1: Any,
    imm0: Any,
    imm1: Any = None,
    reduce_cmd: Any = reduce_cmd.reset_reduce,
    name: str | None = None,
    *,
    dtype: Any = None,
) -> Tensor:
    """Along each partition, `state = (src[i] <op0> imm0) <op1> state`."""
    second = function_of(op1, "nisa.tensor_scalar_cumulative")
    values, undefined, sides = stages(
        src, None, [(op0, imm0, False)], "tensor_scalar_cumulative", None, writes(dst)
    )
    flat = values.reshape(src.shape[0], -1).astype(np.float32)
    registers = nki_machine.current().registers
    what = word(reduce_cmd)
    begin = np.full(src.shape[0], identity_of(second.name, FLOAT), np.float32)
    if what == "load_reduce":
        begin = np.broadcast_to(operand(imm1).values.astype(np.float32).reshape(-1), begin.shape)
    elif what == "reduce" and "vector" in registers:
        begin = registers["vector"].reshape(-1)

    def step(state: np.ndarray | None, position: int) -> np.ndarray:
        return second.compute(flat[:, position], begin if state is None else state)

    scanned = nki_machine.current().builder.scan((as_value(flat),), 1, second.name, step).data[0]
    registers["vector"] = scanned[:, -1:]
    return result(dst, scanned.reshape(src.shape), undefined, dtype, sides[:1], None)
