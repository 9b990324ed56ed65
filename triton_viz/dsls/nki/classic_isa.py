"""`nki.isa` of the classic `neuronxcc.nki`, whose instructions return their results, and take masks."""

from typing import Any

import numpy as np

from triton_viz.dsls.nki import isa, isa_enums, isa_moves, keywords, nki_machine, nki_ops
from triton_viz.dsls.nki.dtypes import as_dtype
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


globals().update(
    {name: keywords.without_first(getattr(isa, name), f"nisa.{name}") for name in _RETURN_THEIR_RESULT}
)
globals().update({name: getattr(isa, name) for name in _SAME})


def memset(shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = None) -> Tensor:
    """A new tile filled with one value."""
    if mask is None:
        return isa.memset(nki_ops.allocate(shape, dtype), value, engine)
    values = np.full(shape, value)
    nki_machine.current().instruction(
        "memset", isa_enums.engine_name(engine), elements=nki_ops.free_elements(values.shape)
    )
    return nki_ops.finish(None, values, None, as_dtype(dtype), nki_ops.as_mask(mask, values.shape))


def iota(expr: Any, dtype: Any, *, mask: Any = None) -> Tensor:
    """A new tile with the values of an index expression, such as `nl.arange(512)[None, :]`."""
    values = np.asarray(expr)
    nki_machine.current().instruction("iota", elements=nki_ops.free_elements(values.shape))
    return nki_ops.finish(None, values, None, as_dtype(dtype), nki_ops.as_mask(mask, values.shape, values))


def affine_select(
    pred: Any, on_true_tile: Tensor, on_false_value: float, *, mask: Any = None, dtype: Any = None
) -> Tensor:
    """The elements of a tile where an index expression is true, and a constant elsewhere."""
    return isa_moves.select_affinely(None, pred, on_true_tile, on_false_value, dtype, mask)


def select_reduce(
    *, dst: Tensor, predicate: Tensor, on_true: Tensor, on_false: Any, **options: Any
) -> Tensor:
    """As `nki.isa` has it, with every argument by its name."""
    return isa.select_reduce(dst, predicate, on_true, on_false, **options)


def tensor_copy_predicated(*, src: Any, dst: Tensor, predicate: Tensor, **options: Any) -> Tensor:
    """As `nki.isa` has it, with every argument by its name."""
    return isa.tensor_copy_predicated(dst, src, predicate, **options)


def nc_stream_shuffle(src: Tensor, dst: Tensor, shuffle_mask: Any, **options: Any) -> Tensor:
    """The function of `nki.isa`, with the source as the first argument."""
    return isa.nc_stream_shuffle(dst, src, shuffle_mask, **options)


_DEFINED_HERE = (
    *("memset", "iota", "affine_select", "select_reduce", "tensor_copy_predicated", "nc_stream_shuffle"),
)
globals().update(keywords.strict("nisa", globals(), _DEFINED_HERE))
