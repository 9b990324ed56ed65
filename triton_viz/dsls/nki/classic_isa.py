"""`nki.isa`, as the classic `neuronxcc.nki` spells it: instructions return their results, and take masks."""

import functools
from typing import Any

import numpy as np

from triton_viz.dsls.nki import isa, machine, ops
from triton_viz.dsls.nki.dtypes import as_dtype
from triton_viz.dsls.nki.isa_moves import select_affinely
from triton_viz.dsls.nki.tensor import Tensor

_RETURN_THEIR_RESULT = (
    *("nc_matmul", "nc_transpose", "activation", "activation_reduce", "tensor_tensor", "tensor_scalar"),
    *("tensor_scalar_reduce", "scalar_tensor_tensor", "tensor_reduce", "tensor_partition_reduce"),
    *("tensor_tensor_scan", "tensor_copy", "reciprocal", "bn_stats", "bn_aggr", "max8", "nc_find_index8"),
    *("nc_match_replace8", "range_select", "local_gather", "dropout", "dma_transpose", "sequence_bounds"),
)
_SAME = (
    *("engine", "reduce_cmd", "dge_mode", "oob_mode", "nc_version", "get_nc_version", "tensor_engine"),
    *("vector_engine", "scalar_engine", "gpsimd_engine", "unknown_engine", "dma_copy"),
)


def _without_destination(name: str) -> Any:
    instruction = getattr(isa, name)

    @functools.wraps(instruction)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        return instruction(None, *args, **kwargs)

    return call


globals().update({name: _without_destination(name) for name in _RETURN_THEIR_RESULT})
globals().update({name: getattr(isa, name) for name in _SAME})


def memset(shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = None, **_: Any) -> Tensor:
    """A new tile of one number."""
    return isa.memset(ops.allocate(shape, dtype), value, engine)


def iota(expr: Any, dtype: Any, *, mask: Any = None, **_: Any) -> Tensor:
    """A new tile of the numbers of an index expression, such as `nl.arange(512)[None, :]`."""
    values = np.asarray(expr)
    machine.current().instruction("iota", elements=ops.free_elements(values.shape))
    return ops.finish(None, values, None, as_dtype(dtype), ops.as_mask(mask, values.shape, values))


def affine_select(
    pred: Any, on_true_tile: Tensor, on_false_value: float, *, mask: Any = None, dtype: Any = None, **_: Any
) -> Tensor:
    """Elements of a tile where an index expression is true, and a number elsewhere."""
    return select_affinely(None, pred, on_true_tile, on_false_value, dtype, mask)


def select_reduce(
    *, dst: Tensor, predicate: Tensor, on_true: Tensor, on_false: Any, **options: Any
) -> Tensor:
    """As `nki.isa` has it, with every argument by its name."""
    return isa.select_reduce(dst, predicate, on_true, on_false, **options)


def tensor_copy_predicated(*, src: Any, dst: Tensor, predicate: Tensor, **options: Any) -> Tensor:
    """As `nki.isa` has it, with every argument by its name."""
    return isa.tensor_copy_predicated(dst, src, predicate, **options)


def nc_stream_shuffle(src: Tensor, dst: Tensor, shuffle_mask: Any, **options: Any) -> Tensor:
    """As `nki.isa` has it, with the source first."""
    return isa.nc_stream_shuffle(dst, src, shuffle_mask, **options)
