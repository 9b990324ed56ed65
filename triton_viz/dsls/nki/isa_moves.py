"""Instructions of `nki.isa` that move, fill and gather. Each takes its destination first."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from triton_viz.dsls.nki import nki_machine, nki_ops
from triton_viz.dsls.nki.dtypes import as_dtype
from triton_viz.dsls.nki.functions import function_of
from triton_viz.dsls.nki.isa_enums import dge_mode, engine_name, oob_mode, word
from triton_viz.dsls.nki.isa_operands import writes
from triton_viz.dsls.nki.nki_ops import as_mask, computing, finish, free_elements, operand
from triton_viz.dsls.nki.tensor import Tensor, as_value
from triton_viz.errors import KernelError, UnsupportedError

# --- DMA ---


def dma_copy(
    dst: Tensor,
    src: Tensor,
    priority: Any = None,
    oob_mode: Any = oob_mode.error,
    dge_mode: Any = dge_mode.unknown,
    engine: Any = None,
    name: str | None = None,
    *,
    mask: Any = None,
    dst_rmw_op: Any = None,
) -> None:
    """Copy elements of HBM or SBUF to another tensor in HBM or SBUF."""
    here = nki_machine.current()
    for tensor in (src, dst):
        if tensor.memory == "PSUM":
            here.report(
                "memory",
                f"dma_copy {'reads' if tensor is src else 'writes'} {tensor.name}, which is in PSUM: DMA "
                "engines move between HBM and SBUF",
                tensor=tensor.name,
                suggestion="copy it to SBUF first (nisa.tensor_copy)",
            )
    if src.size != dst.size:
        raise KernelError(
            f"dma_copy: {src.name} of shape {src.shape} has {src.size:,} elements, and {dst.name} of shape "
            f"{dst.shape} has {dst.size:,}"
        )
    keep = mask
    if word(oob_mode) == "skip":
        for tensor in (src, dst):
            if tensor.picked is not None:
                inside = tensor.picked.inside(tensor.array.shape)
                keep = inside.reshape(src.shape) if keep is None else keep & inside.reshape(src.shape)
    if dst_rmw_op is not None:
        dma_compute(dst, [src, dst], dst_rmw_op)
    elif src.memory == "HBM" and dst.memory == "HBM":
        _between_hbm(dst, src, as_mask(keep, src.shape, src))
    elif src.memory == "HBM":
        nki_ops.load(src, dst.dtype, keep, dst)
    elif dst.memory == "HBM":
        nki_ops.store(dst, src, None if keep is None else as_mask(keep, src.shape, src).reshape(dst.shape))  # type: ignore[union-attr]
    else:
        nki_ops.copy(src, dst, None, keep, instruction="dma_copy")


def _between_hbm(dst: Tensor, src: Tensor, keep: np.ndarray | None) -> None:
    here = nki_machine.current()
    here.instruction("dma_copy", None, (src,), (dst,))
    value = here.builder.load(src, keep)
    undefined = nki_ops.undefined_of(src)
    if undefined is not None and (undefined if keep is None else undefined & keep).any():
        here.report_undefined(src, undefined, "as the source of a copy")
    there = None if keep is None else keep.reshape(dst.shape)
    here.builder.store(dst, as_value(value.data[0].reshape(dst.shape)), there)
    nki_ops.define(dst, there)
    here.moved("HBM", "HBM", src.size * src.itemsize)


def dma_transpose(
    dst: Tensor | None,
    src: Tensor,
    axes: Any = None,
    priority: Any = None,
    dge_mode: Any = dge_mode.unknown,
    oob_mode: Any = oob_mode.error,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """Elements with their axes in another order: (1, 0), (2, 1, 0) or (3, 1, 2, 0)."""
    known = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
    order = known.get(src.ndim) if axes is None else tuple(axes)
    if order is None or order != known.get(src.ndim):
        raise KernelError(f"dma_transpose has no axes {axes} for {src.name}, of shape {src.shape}")
    return nki_ops.load_transposed(src, order, dtype, mask, dst)


def dma_compute(
    dst: Tensor,
    srcs: Sequence[Tensor],
    reduce_op: Any,
    scales: Any = None,
    unique_indices: bool = True,
    oob_mode: Any = oob_mode.error,
    name: str | None = None,
) -> None:
    """The sum of several tensors, computed by DMA engines."""
    row = function_of(reduce_op, "nisa.dma_compute")
    here = nki_machine.current()
    total: np.ndarray | None = None
    for src in srcs:
        if src.memory == "HBM":
            values = here.builder.load(src, None).data[0]
        else:
            values = operand(src).values
        part = computing(values).reshape(dst.shape)
        total = part if total is None else nki_ops.apply(row, total, part)
        here.moved(src.memory, dst.memory, src.size * src.itemsize)
    if total is None:
        raise KernelError("dma_compute takes at least one source")
    here.instruction("dma_compute", None, tuple(srcs), (dst,), flops=dst.size * (len(srcs) - 1))
    if dst.memory == "HBM":
        here.builder.store(dst, as_value(total), None)
        nki_ops.define(dst, None)
    else:
        finish(dst, total, None, dst.dtype, None)


# --- on the chip ---


def tensor_copy(
    dst: Tensor | None,
    src: Tensor,
    engine: Any = None,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """A copy of a tile."""
    return nki_ops.copy(src, dst, dtype, mask, engine=engine_name(engine))


def tensor_copy_predicated(
    dst: Tensor,
    src: Any,
    predicate: Tensor,
    reverse_pred: bool = False,
    name: str | None = None,
    *,
    mask: Any = None,
) -> Tensor:
    """Elements copied where a predicate is true; the others stay as they are."""
    true = computing(operand(predicate).values) != 0
    keep = true.reshape(dst.shape) != reverse_pred
    given = as_mask(mask, dst.shape, dst)
    keep = keep if given is None else keep & given
    x = operand(src)
    reads = tuple(tensor for tensor in (x.tensor, predicate) if tensor is not None)
    nki_machine.current().instruction(
        "tensor_copy_predicated", None, reads, (dst,), elements=free_elements(dst.shape)
    )
    values = np.broadcast_to(x.values, dst.shape) if x.values.ndim == 0 else x.values.reshape(dst.shape)
    undefined = (
        None if x.undefined is None else np.broadcast_to(x.undefined, x.values.shape).reshape(dst.shape)
    )
    return finish(dst, values, undefined, dst.dtype, keep)


def memset(dst: Tensor, value: Any, engine: Any = None, name: str | None = None) -> Tensor:
    """Fill a tile with one value."""
    nki_machine.current().instruction(
        "memset", engine_name(engine), (), (dst,), elements=free_elements(dst.shape)
    )
    return finish(dst, np.full(dst.shape, value), None, dst.dtype, None)


def affine_values(
    pattern: Sequence[Sequence[int]], offset: int, channel_multiplier: int, shape: tuple[int, ...], of: str
) -> np.ndarray:
    """`offset + partition * channel_multiplier + sum(index * step)` for each element of a tile."""
    count = math.prod(int(n) for _, n in pattern)
    if count != free_elements(shape):
        raise KernelError(
            f"{of}: a pattern of {count} numbers for a tile of shape {shape}, which has "
            f"{free_elements(shape)} elements in each partition"
        )
    flat = np.zeros(1, np.int64)
    for step, n in pattern:
        flat = (flat[:, None] + np.arange(int(n)) * int(step)).reshape(-1)
    channels = np.arange(shape[0]) * int(channel_multiplier)
    return (int(offset) + channels[:, None] + flat[None, :]).reshape(shape)


def iota(
    dst: Tensor,
    pattern: Sequence[Sequence[int]],
    offset: int = 0,
    channel_multiplier: int = 0,
    name: str | None = None,
) -> Tensor:
    """Integers that follow a pattern."""
    values = affine_values(pattern, offset, channel_multiplier, dst.shape, "iota")
    nki_machine.current().instruction("iota", None, (), (dst,), elements=free_elements(dst.shape))
    return finish(dst, values, None, dst.dtype, None)


def affine_select(
    dst: Tensor | None,
    pattern: Sequence[Sequence[int]],
    channel_multiplier: int,
    on_true_tile: Tensor,
    on_false_value: float,
    cmp_op: Any = "equal",
    offset: int = 0,
    name: str | None = None,
) -> Tensor:
    """The elements of a tile where `value of the pattern <cmp_op> 0` is true, and a constant elsewhere."""
    if isinstance(on_true_tile, int):  # an older release had the offset there
        raise UnsupportedError("affine_select takes offset= as a keyword, after cmp_op")
    values = affine_values(pattern, offset, channel_multiplier, on_true_tile.shape, "affine_select")
    true = function_of(cmp_op, "nisa.affine_select").compute(values, 0)
    return select_affinely(dst, true, on_true_tile, on_false_value, None, None)


def select_affinely(
    dst: Tensor | None, true: np.ndarray, on_true: Tensor, on_false: float, dtype: Any, mask: Any
) -> Tensor:
    """The elements of a tile where a condition on their indices is true, and a constant elsewhere."""
    x = operand(on_true)
    true = np.broadcast_to(np.asarray(true, bool), x.values.shape)
    nki_machine.current().instruction(
        "affine_select", None, (on_true,), writes(dst), elements=free_elements(on_true.shape)
    )
    values = np.where(true, computing(x.values), np.float32(on_false))
    undefined = None if x.undefined is None else x.undefined & true
    return finish(dst, values, undefined, nki_ops.result_dtype(dtype, [x]), as_mask(mask, x.values.shape))


# --- gathering and shuffling ---


def nc_n_gather(dst: Tensor | None, data: Tensor, indices: Tensor, name: str | None = None) -> Tensor:
    """The elements at these indices, in each partition."""
    x = operand(data)
    positions = indices.as_index()
    flat = x.values.reshape(data.shape[0], -1)
    _check_indices(positions, flat.shape[1], data, "nc_n_gather")
    nki_machine.current().instruction(
        "nc_n_gather", None, (data, indices), writes(dst), elements=free_elements(indices.shape)
    )
    clipped = np.clip(positions.reshape(data.shape[0], -1), 0, flat.shape[1] - 1)
    values = np.take_along_axis(flat, clipped, axis=1).reshape(indices.shape)
    return finish(dst, values, None, data.dtype, None)


def _refuse_mask(name: str, mask: Any) -> None:
    if mask is not None and not np.asarray(mask, bool).all():
        raise UnsupportedError(f"nisa.{name} with a mask that leaves elements out cannot be run here")


def local_gather(
    dst: Tensor | None,
    src_buffer: Tensor,
    index: Tensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: str | None = None,
    *,
    mask: Any = None,
) -> Tensor:
    """The elements at indices that each group of 16 partitions shares."""
    _refuse_mask("local_gather", mask)
    x = operand(src_buffer)
    partitions = src_buffer.shape[0]
    if partitions % 16 or index.shape[0] != partitions:
        raise KernelError(
            f"local_gather: {src_buffer.name} and {index.name} need the same number of partitions, a "
            "multiple of 16"
        )
    positions = index.as_index().reshape(partitions, -1)
    flat = x.values.reshape(partitions, -1, num_elem_per_idx)
    nki_machine.current().instruction(
        "local_gather", None, (src_buffer, index), writes(dst), elements=index.size
    )
    groups = []
    for start in range(0, partitions, 16):
        chosen = positions[start : start + 16].T.reshape(-1)[:num_valid_indices]
        _check_indices(chosen, flat.shape[1], src_buffer, "local_gather")
        groups.append(flat[start : start + 16][:, np.clip(chosen, 0, flat.shape[1] - 1)])
    values = np.concatenate(groups).reshape(partitions, -1)
    return finish(dst, values, None, src_buffer.dtype, None)


def _check_indices(positions: np.ndarray, size: int, tensor: Tensor, of: str) -> None:
    bad = (positions < 0) | (positions >= size)
    if bad.any():
        outside = int(positions[bad].reshape(-1)[0])
        nki_machine.current().report(
            "out of bounds",
            f"{of} takes element {outside} of each partition of {tensor.name}, of shape {tensor.shape}, "
            f"which has {size}",
            tensor=tensor.name,
            index=(outside,),
        )


def nc_stream_shuffle(
    dst: Tensor,
    src: Tensor,
    shuffle_mask: Sequence[int],
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """In each group of 32 partitions, copies of other partitions; 255 leaves a partition unchanged."""
    _refuse_mask("nc_stream_shuffle", mask)
    if dtype is not None and as_dtype(dtype) != dst.dtype:
        raise UnsupportedError(f"nisa.nc_stream_shuffle: dtype={dtype} is not that of {dst.name}")
    x = operand(src)
    if len(shuffle_mask) != 32:
        raise KernelError(f"nc_stream_shuffle takes 32 indices, not {len(shuffle_mask)}")
    nki_machine.current().instruction(
        "nc_stream_shuffle", None, (src,), (dst,), elements=free_elements(src.shape)
    )
    values, undefined = dst.read()
    values = np.array(values)
    left = np.zeros(values.shape, bool) if undefined is None else np.array(undefined)
    for start in range(0, dst.shape[0], 32):
        for position, origin in enumerate(shuffle_mask):
            if int(origin) != 255 and start + position < dst.shape[0] and start + int(origin) < src.shape[0]:
                values[start + position] = x.values[start + int(origin)]
                left[start + position] = False if x.undefined is None else x.undefined[start + int(origin)]
    return finish(dst, values, left, dst.dtype, None)


def sequence_bounds(
    dst: Tensor | None,
    segment_ids: Tensor,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The start and end of each element's segment."""
    _refuse_mask("sequence_bounds", mask)
    ids = operand(segment_ids).values.reshape(-1).astype(np.int64)
    nki_machine.current().instruction("sequence_bounds", None, (segment_ids,), writes(dst), elements=ids.size)
    n = ids.size
    begins, ends = np.full(n, n), np.full(n, -1)
    for segment in np.unique(ids[ids != 0]):
        at = np.flatnonzero(ids == segment)
        begins[at], ends[at] = at[0], at[-1] + 1
    values = np.stack([begins, ends])[None]
    return finish(dst, values, None, as_dtype(dtype) if dtype is not None else segment_ids.dtype, None)


# --- random numbers ---


def rng(dst: Tensor, engine: Any = None, name: str | None = None) -> Tensor:
    """Random bits."""
    here = nki_machine.current()
    here.instruction("rng", engine_name(engine), (), (dst,), elements=free_elements(dst.shape))
    bits = here.random.integers(0, 2**32, dst.shape, dtype=np.uint64)
    width = dst.dtype.itemsize * 8
    return finish(
        dst,
        (bits & np.uint64(2**width - 1)).astype(f"u{dst.dtype.itemsize}").view(dst.dtype),
        None,
        dst.dtype,
        None,
    )


def set_rng_seed(src_seeds: Tensor, name: str | None = None) -> None:
    """Seed the random numbers."""
    nki_machine.current().random = np.random.default_rng(abs(int(src_seeds.as_index().reshape(-1)[0])))


# --- registers ---


class VirtualRegister:
    """A register of a core: an integer that a kernel can use as a loop bound."""

    def __init__(self, state: int | None = None):
        self.state = state

    def value_of_register(self) -> int:
        """The integer in the register."""
        if self.state is None:
            raise KernelError("a register is read before it was loaded")
        return self.state

    def __index__(self) -> int:
        return self.value_of_register()

    def __bool__(self) -> bool:
        return self.value_of_register() != 0


def register_alloc(x: int | None = None) -> VirtualRegister:
    """A new register."""
    return VirtualRegister(None if x is None else int(x))


def register_move(dst: VirtualRegister, src: Any) -> None:
    """Set a register to an integer."""
    dst.state = int(src)


def register_load(dst: VirtualRegister, src: Tensor) -> None:
    """Load the only element of a tensor into a register."""
    values, undefined = src.read()
    if undefined is not None:
        nki_machine.current().report_undefined(src, undefined, "in a register")
    nki_machine.current().instruction("register", None, (src,))
    dst.state = int(values.reshape(-1)[0])


def register_store(dst: Tensor, src: VirtualRegister) -> None:
    """Store a register in the only element of a tensor."""
    nki_machine.current().instruction("register", None, (), (dst,))
    dst.write(np.full(dst.shape, int(src)))


def core_barrier(data: Tensor, cores: Any, engine: Any = None, name: str | None = None) -> None:
    """Does not wait: programs run one after the other, so stores of later programs are not visible here."""
    nki_machine.current().instruction("register", None, (data,))


def sendrecv(*_: Any, **__: Any) -> None:
    """Raises an UnsupportedError: cores run one after the other here, and cannot exchange tiles."""
    raise UnsupportedError("nisa.sendrecv is not interpreted: programs run one after the other")
