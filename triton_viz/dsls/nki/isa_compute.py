"""Instructions of `nki.isa` that compute. Each takes its destination first; None allocates a new tile.

The classic `neuronxcc.nki` has no destinations, but dtypes and masks, which these functions take as keywords.
"""

from typing import Any

import numpy as np

from triton_viz.dsls.nki import nki_machine, nki_ops
from triton_viz.dsls.nki.dtypes import is_float
from triton_viz.dsls.nki.functions import Function, function_of
from triton_viz.dsls.nki.isa_enums import engine_name, matmul_perf_mode, reduce_cmd, word
from triton_viz.dsls.nki.isa_operands import FLOAT, not_both_in_psum, per_partition, result, writes
from triton_viz.dsls.nki.nki_ops import (
    Operand,
    apply,
    as_mask,
    computing,
    either,
    finish,
    free_elements,
    masked,
    operand,
)
from triton_viz.dsls.nki.tensor import Tensor
from triton_viz.errors import KernelError, UnsupportedError


def _two(row: Function, a: np.ndarray, b: np.ndarray, reverse: bool) -> np.ndarray:
    if row.operands == 1:
        return apply(row, a)
    return apply(row, b, a) if reverse else apply(row, a, b)


def _wide(values: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Values in the dtype in which engines compute: float32, unless all operands are integers."""
    return computing(values) if not any(is_float(o.dtype) for o in others) else values.astype(np.float32)


# --- the tensor engine ---


def nc_matmul(
    dst: Tensor | None,
    stationary: Tensor,
    moving: Tensor,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: Any = (),
    tile_size: Any = (),
    perf_mode: Any = matmul_perf_mode.none,
    name: str | None = None,
    *,
    mask: Any = None,
) -> Tensor:
    """`stationary.T @ moving`, in PSUM: the first product overwrites an element, later ones are added."""
    return nki_ops.matmul(stationary, moving, dst, accumulate, mask)


def nc_transpose(
    dst: Tensor | None,
    data: Tensor,
    engine: Any = None,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """A tile with its partitions as columns."""
    return nki_ops.transpose(data, dst, dtype, mask, engine_name(engine))


# --- the scalar engine ---


def activation(
    dst: Tensor | None,
    op: Any,
    data: Tensor,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Tensor | None = None,
    reduce_cmd: Any = reduce_cmd.idle,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
    instruction: str = "activation",
) -> Tensor:
    """`op(data * scale + bias)`, and optionally the sum of each partition."""
    row = function_of(op, "nisa.activation")
    if row.operands != 1:
        raise UnsupportedError(f"nisa.activation takes a function of one operand, not {row.name}")
    x, keep = masked(data, mask)
    bias = 0.0 if bias is None else bias
    sides = [per_partition(side, data.ndim, "nisa.activation", data.shape[0]) for side in (scale, bias)]
    scaled, shifted = (isinstance(side, Tensor) or side != same for side, same in ((scale, 1.0), (bias, 0.0)))
    reads = tuple(side.tensor for side in (x, *sides) if side.tensor is not None)
    nki_machine.current().instruction(
        instruction,
        None,
        reads,
        writes(dst, reduce_res),
        elements=free_elements(data.shape),
        flops=data.size * (1 + scaled + shifted),
    )
    values = x.values.astype(np.float32)
    if scaled:
        values = apply(function_of("multiply", ""), values, sides[0].values.astype(np.float32))
    if shifted:
        values = apply(function_of("add", ""), values, sides[1].values.astype(np.float32))
    values = apply(row, values)
    undefined = either(x.undefined, sides[0].undefined, sides[1].undefined)
    accumulate("scalar", values, undefined, reduce_op, reduce_res, reduce_cmd, keep, data)
    return result(dst, values, undefined, dtype, [x], keep)


def activation_reduce(
    dst: Tensor | None,
    op: Any,
    data: Tensor,
    reduce_op: Any,
    reduce_res: Tensor | None,
    bias: Any = None,
    scale: Any = 1.0,
    name: str | None = None,
    *,
    reduce_cmd: Any = reduce_cmd.reset_reduce,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """`activation`, with the sum of each partition in `reduce_res`."""
    options = {"dtype": dtype, "mask": mask, "instruction": "activation_reduce"}
    return activation(dst, op, data, bias, scale, reduce_op, reduce_res, reduce_cmd, **options)


def accumulate(
    engine: str,
    values: np.ndarray,
    undefined: np.ndarray | None,
    reduce_op: Any,
    reduce_res: Tensor | None,
    command: Any,
    mask: np.ndarray | None,
    data: Tensor | None,
    initial: Any = None,
) -> None:
    """Combine each partition's results into the engine's accumulators, and read the accumulators."""
    registers = nki_machine.current().registers
    what = word(command)
    if what in ("reset",):
        registers[engine] = np.zeros((values.shape[0], 1), np.float32)
    if what in ("reset_reduce", "reduce", "load_reduce") and reduce_op is not None:
        row = function_of(reduce_op, "a reduction")
        axes = tuple(range(1, values.ndim))
        total, _ = nki_ops.reduced(
            row.name,
            Operand(
                values, None if undefined is None else np.broadcast_to(undefined, values.shape), FLOAT, data
            ),
            axes or (0,),
            False,
            mask,
        )
        column = total.reshape(values.shape[0], 1).astype(np.float32)
        before = registers.get(engine)
        if what == "load_reduce":
            before = np.broadcast_to(operand(initial).values.astype(np.float32), column.shape)
        if what != "reset_reduce" and before is not None:
            column = row.compute(before, column)
        registers[engine] = column
    if reduce_res is not None:
        if engine not in registers:
            raise KernelError("reduce_res reads accumulators that are empty: give a reduce_cmd")
        nki_machine.current().use(reduce_res)
        finish(reduce_res, registers[engine], None, reduce_res.dtype, None)


# --- the vector engine ---


def tensor_tensor(
    dst: Tensor | None,
    data1: Tensor,
    data2: Tensor,
    op: Any,
    engine: Any = None,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """`data1 <op> data2`, element by element."""
    row = function_of(op, "nisa.tensor_tensor")
    keep = as_mask(mask, data1.shape, data1)
    a, b = operand(data1, keep), operand(data2, keep)
    not_both_in_psum("tensor_tensor", data1, data2)
    _same_tiles("tensor_tensor", data1, data2)
    asked = engine_name(engine) or ("gpsimd" if row.name == "power" else None)
    nki_machine.current().instruction(
        *("tensor_tensor", asked, (data1, data2), writes(dst)),
        elements=free_elements(data1.shape),
        flops=data1.size,
    )
    other = b.values if b.values.size != a.values.size else b.values.reshape(a.values.shape)
    missing = (
        b.undefined
        if b.undefined is None
        else np.broadcast_to(b.undefined, b.values.shape).reshape(other.shape)
    )
    values = apply(row, _wide(a.values, other), _wide(other, a.values))
    return result(dst, values, either(a.undefined, missing), dtype, [a, b], keep)


def _same_tiles(name: str, a: Tensor, b: Tensor) -> None:
    try:
        fits = a.size == b.size or np.broadcast_shapes(a.shape, b.shape) in (a.shape, b.shape)
    except ValueError:
        fits = False
    if not fits or a.shape[:1] != b.shape[:1]:
        raise KernelError(
            f"{name}: {a.name} of shape {a.shape} and {b.name} of shape {b.shape} have to have the same "
            "number of partitions, and of elements in each"
        )


def tensor_scalar(
    dst: Tensor | None,
    data: Tensor,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    engine: Any = None,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
    instruction: str = "tensor_scalar",
) -> Tensor:
    """`(data <op0> operand0) <op1> operand1`, each operand a scalar or a value for each partition."""
    keep = as_mask(mask, data.shape, data)
    values, undefined, sides = stages(
        data,
        keep,
        [(op0, operand0, reverse0), (op1, operand1, reverse1)],
        instruction,
        engine_name(engine),
        writes(dst),
    )
    return result(dst, values, undefined, dtype, sides[:1], keep)


def stages(
    data: Tensor,
    keep: np.ndarray | None,
    functions: list[tuple[Any, Any, bool]],
    instruction: str,
    engine: str | None,
    writes: tuple[Tensor, ...],
) -> tuple[np.ndarray, np.ndarray | None, list[Operand]]:
    """Apply functions one after the other, each with an operand for each partition."""
    x = operand(data, keep)
    wanted = [
        (function_of(op, f"nisa.{instruction}"), with_, back)
        for op, with_, back in functions
        if op is not None
    ]
    wanted = [stage for stage in wanted if stage[0].name not in ("bypass", "copy")]
    sides = [
        per_partition(0 if w is None else w, data.ndim, instruction, data.shape[0]) for _, w, _ in wanted
    ]
    reads = tuple(side.tensor for side in (x, *sides) if side.tensor is not None)
    nki_machine.current().instruction(
        instruction, engine, reads, writes, elements=free_elements(data.shape), flops=data.size * len(wanted)
    )
    values, undefined = computing(x.values), x.undefined
    for (row, _, back), side in zip(wanted, sides, strict=True):
        other = side.values
        if not is_float(values.dtype) and other.dtype.kind in "iu" and side.dtype is None:
            other = other.astype(values.dtype) if values.dtype.kind in "iu" else other
        values = _two(row, _wide(values, other), _wide(other, values), back)
        undefined = either(undefined, side.undefined)
    return values, undefined, [x, *sides]


def tensor_scalar_reduce(
    dst: Tensor | None,
    data: Tensor,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: Tensor | None,
    reverse0: bool = False,
    reduce_cmd: Any = reduce_cmd.reset_reduce,
    reduce_init: Any = None,
    name: str | None = None,
    *,
    reduce_res_negate: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """`data <op0> operand0`, and its reduction in each partition in `reduce_res`."""
    keep = as_mask(mask, data.shape, data)
    only = [(op0, operand0, reverse0)]
    values, undefined, sides = stages(data, keep, only, "tensor_scalar_reduce", None, writes(dst, reduce_res))
    accumulate("vector", values, undefined, reduce_op, reduce_res, reduce_cmd, keep, data, reduce_init)
    if reduce_res_negate and reduce_res is not None:
        total, missing = reduce_res.read()
        reduce_res.write(-total, missing)
    return result(dst, values, undefined, dtype, sides[:1], keep)


def scalar_tensor_tensor(
    dst: Tensor | None,
    data: Tensor,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: Tensor,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """`(data <op0> operand0) <op1> operand1`, the first operand for each partition, the second a tile."""
    not_both_in_psum("scalar_tensor_tensor", data, operand1)
    _same_tiles("scalar_tensor_tensor", data, operand1)
    keep = as_mask(mask, data.shape, data)
    values, undefined, sides = stages(
        data, keep, [(op0, operand0, reverse0)], "scalar_tensor_tensor", None, writes(dst)
    )
    nki_machine.current().use(operand1)
    other = operand(operand1, keep)
    tile = other.values if other.values.size != values.size else other.values.reshape(values.shape)
    values = _two(
        function_of(op1, "nisa.scalar_tensor_tensor"), _wide(values, tile), _wide(tile, values), reverse1
    )
    return result(dst, values, either(undefined, other.undefined), dtype, [sides[0], other], keep)


def tensor_reduce(
    dst: Tensor | None,
    op: Any,
    data: Tensor,
    axis: Any,
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """A reduction along free axes."""
    row = function_of(op, "nisa.tensor_reduce")
    return nki_ops.reduce_tile(row.name, data, axis, dst, dtype, mask, keepdims, negate)


def tensor_partition_reduce(
    dst: Tensor | None,
    op: Any,
    data: Tensor,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """A reduction over the partitions, on the gpsimd engine."""
    row = function_of(op, "nisa.tensor_partition_reduce")
    x, keep = masked(data, mask)
    nki_machine.current().instruction(
        *("tensor_partition_reduce", None, (data,), writes(dst)),
        elements=data.size,
        flops=data.size,
    )
    turned = Operand(
        np.moveaxis(computing(x.values), 0, -1),
        None if x.undefined is None else np.moveaxis(np.broadcast_to(x.undefined, x.values.shape), 0, -1),
        x.dtype,
        None,
    )
    shape = turned.values.shape
    flat = Operand(
        turned.values.reshape(1, *shape),
        None if turned.undefined is None else turned.undefined.reshape(1, *shape),
        *(turned.dtype, None),
    )
    values, undefined = nki_ops.reduced(
        row.name, flat, len(shape), False, None if keep is None else np.moveaxis(keep, 0, -1)[None]
    )
    return finish(dst, values, undefined, nki_ops.result_dtype(dtype, [x]), None)
