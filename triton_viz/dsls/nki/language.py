"""`nki.language` of both packages: creation, moves, functions of tiles, loops, constants.

Elementwise functions come from the table in `functions.py`.
"""

import inspect
import math
from typing import Any

import numpy as np

from triton_viz.dsls.nki import buffers, keywords, nki_machine, nki_ops
from triton_viz.dsls.nki.dtypes import TYPES, as_dtype, is_float
from triton_viz.dsls.nki.functions import FUNCTIONS
from triton_viz.dsls.nki.indexing import GridIndex
from triton_viz.dsls.nki.language_limits import (  # noqa: F401 - names of `nki.language`
    NKIObject,
    finfo,
    is_hbm,
    is_on_chip,
    is_psum,
    is_sbuf,
    tile_size,
)
from triton_viz.dsls.nki.nki_loops import Range
from triton_viz.dsls.nki.tensor import Tensor
from triton_viz.errors import KernelError, UnsupportedError

MemoryRegion = buffers.MemoryRegion
sbuf, psum = buffers.sbuf, buffers.psum
hbm, private_hbm, shared_hbm = buffers.hbm, buffers.private_hbm, buffers.shared_hbm
par_dim = nki_ops.PartitionDim
"""Marks the partition axis in a shape whose first axes count blocks."""

# --- elementwise functions, from the table ---


def _function(name: str) -> Any:
    if FUNCTIONS[name].operands == 1:

        def one(x: Any, dtype: Any = None, *, mask: Any = None) -> Tensor:
            return nki_ops.elementwise(name, x, dtype=dtype, mask=mask)

        made: Any = one
    else:

        def two(x: Any, y: Any, dtype: Any = None, *, mask: Any = None) -> Tensor:
            return nki_ops.elementwise(name, x, y, dtype=dtype, mask=mask)

        made = two
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"`{name}` of each element."
    return made


FUNCTIONS_OF_ELEMENTS = {name: _function(name) for name in FUNCTIONS if name not in ("copy", "bypass")}
globals().update(FUNCTIONS_OF_ELEMENTS)
bool_ = TYPES["bool_"]
globals().update(TYPES)


def bypass(x: Any) -> Any:
    """The identity, as the op of an unused stage of an instruction."""
    return x


# --- creation ---


def ndarray(shape: Any, dtype: Any, buffer: Any = None, name: str = "", address: Any = None) -> Tensor:
    """A new tensor, whose elements are undefined. An `address` is ignored."""
    return nki_ops.allocate(shape, dtype, buffer, name)


def zeros(shape: Any, dtype: Any, buffer: Any = None, name: str = "") -> Tensor:
    """A new tensor of zeros."""
    return full(shape, 0, dtype, buffer, name)


def ones(shape: Any, dtype: Any, buffer: Any = None, name: str = "") -> Tensor:
    """A new tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def full(shape: Any, fill_value: Any, dtype: Any, buffer: Any = None, name: str = "") -> Tensor:
    """A new tensor filled with one value."""
    made = nki_ops.allocate(shape, dtype, buffer, name, fill=fill_value)
    if made.memory != "HBM":
        nki_machine.current().instruction(
            "memset", None, (), (made,), elements=nki_ops.free_elements(made.shape)
        )
    return made


def zeros_like(x: Tensor, dtype: Any = None, buffer: Any = None, name: str = "") -> Tensor:
    """Zeros in another tensor's shape."""
    return zeros(x.shape, x.dtype if dtype is None else dtype, buffer or x.buffer, name)


def empty_like(x: Tensor, dtype: Any = None, buffer: Any = None, name: str = "") -> Tensor:
    """A new tensor with another tensor's shape."""
    return ndarray(x.shape, x.dtype if dtype is None else dtype, buffer or x.buffer, name)


def shared_constant(constant: Any, dtype: Any = None) -> Tensor:
    """A tensor in HBM with these values."""
    values = np.asarray(constant)
    element_dtype = values.dtype if dtype is None else as_dtype(dtype)
    return nki_ops.allocate(values.shape, element_dtype, shared_hbm, "constant", fill=values)


def shared_identity_matrix(n: int, dtype: Any = np.uint8) -> Tensor:
    """An identity matrix in HBM."""
    return shared_constant(np.eye(n), dtype)


def identity_matrix(n: int, dtype: Any = np.uint8) -> Tensor:
    """An identity matrix in SBUF."""
    return load(shared_identity_matrix(n, dtype))


def rand(shape: Any, dtype: Any = np.float32, buffer: Any = None, name: str = "") -> Tensor:
    """A tile of random numbers from 0 to 1."""
    here = nki_machine.current()
    sizes = tuple(int(n) for n in shape)
    here.instruction("rng", elements=nki_ops.free_elements(sizes))
    values = here.random.random(sizes, np.float32)
    if buffer is None and not name:
        return nki_ops.new_tile(values, None, as_dtype(dtype))
    return nki_ops.finish(nki_ops.allocate(sizes, dtype, buffer, name), values, None, as_dtype(dtype), None)


def random_seed(seed: Any, mask: Any = None) -> None:
    """Seed the random numbers."""
    number = seed.as_index().reshape(-1)[0] if isinstance(seed, Tensor) else seed
    nki_machine.current().random = np.random.default_rng(int(number) % 2**63)


# --- indices ---


def arange(*bounds: int) -> np.ndarray:
    """Integers for indexing: `arange(stop)` or `arange(start, stop)`."""
    return np.arange(*bounds, dtype=np.int64)


class _Grid(tuple):
    """The indices of a block: one array for each axis, also as .p, .x, .y, .z and .w."""

    __slots__ = ()
    p = property(lambda self: self[0])
    x = property(lambda self: self[1])
    y = property(lambda self: self[2])
    z = property(lambda self: self[3])
    w = property(lambda self: self[4])


class _MakeGrid:
    """`mgrid[0:128, 0:512]`: the indices of a block."""

    def __getitem__(self, key: Any) -> _Grid:
        entries = key if isinstance(key, tuple) else (key,)
        ranges = []
        for entry in entries:
            if not isinstance(entry, slice) or entry.stop is None:
                raise UnsupportedError(f"mgrid takes slices such as 0:128, not {entry!r}")
            ranges.append(np.arange(entry.start or 0, entry.stop, entry.step or 1, dtype=np.int64))
        rank = len(ranges)
        return _Grid(
            one.reshape(*(1,) * at, -1, *(1,) * (rank - at - 1)).view(GridIndex)
            for at, one in enumerate(ranges)
        )


mgrid = _MakeGrid()


def ds(start: Any, size: int) -> slice:
    """A slice of `size` elements that begins at `start`."""
    begin = int(start)
    return slice(begin, begin + int(size))


# --- loops ---

affine_range = sequential_range = static_range = dynamic_range = Range


# --- programs ---


def program_id(axis: int = 0) -> int:
    """The index of the program along an axis of the grid."""
    here = nki_machine.current()
    if not 0 <= int(axis) < (here.launched.axes or 1):
        grid = here.launched.grid[: here.launched.axes]
        raise KernelError(f"program_id({axis}): the grid {grid} has no axis {axis}")
    return here.program[int(axis)]


def num_programs(axes: Any = None) -> int:
    """The number of programs along some axes of the grid, or along all."""
    grid = nki_machine.current().launched.grid
    if axes is None:
        return math.prod(grid)
    return math.prod(grid[axis] for axis in (axes if isinstance(axes, tuple | list) else [axes]))


def program_ndim() -> int:
    """The number of axes of the grid."""
    return nki_machine.current().launched.axes


class nc(int):
    """A size of a grid along which programs run on different cores."""


class spmd_dim(int):
    """A size of a grid that is a product of others."""

    def __new__(cls, *sizes: int) -> "spmd_dim":
        """The product."""
        return super().__new__(cls, math.prod(int(n) for n in sizes))


# --- moves ---


def _in_hbm(tensor: Any, of: str) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise UnsupportedError(f"{of} takes a tensor, not {type(tensor).__name__}")
    if tensor.memory != "HBM":
        raise KernelError(f"{of}: {tensor.name} is in {tensor.memory}, not in HBM: use nl.copy on the chip")
    return tensor


def load(src: Any, dtype: Any = None, *, mask: Any = None) -> Tensor:
    """A new tile in SBUF with elements of HBM."""
    return nki_ops.load(_in_hbm(src, "nl.load"), dtype, mask)


def load_transpose2d(src: Any, dtype: Any = None, *, mask: Any = None) -> Tensor:
    """A new tile in SBUF with elements of HBM, its two axes exchanged."""
    source = _in_hbm(src, "nl.load_transpose2d")
    if source.ndim != 2:
        raise KernelError(f"nl.load_transpose2d: {source.name} has shape {source.shape}, not two axes")
    return nki_ops.load_transposed(source, (1, 0), dtype, mask)


def store(dst: Any, value: Any, *, mask: Any = None) -> None:
    """Write a tile to HBM."""
    nki_ops.store(_in_hbm(dst, "nl.store"), value, mask)


def atomic_rmw(dst: Any, value: Any, op: Any, *, mask: Any = None) -> None:
    """Add a tile to elements of HBM."""
    nki_ops.atomic(_in_hbm(dst, "nl.atomic_rmw"), value, op, mask)


def copy(src: Tensor, *, mask: Any = None, dtype: Any = None, buffer: Any = None) -> Tensor:
    """A copy of a tile, in SBUF."""
    region = sbuf if buffer is None else buffer
    return nki_ops.copy(src, None, dtype, mask, memory=region.memory)


def static_cast(arr: Any, dtype: Any) -> Any:
    """A tile or a scalar, converted to another dtype."""
    return copy(arr, dtype=dtype) if isinstance(arr, Tensor) else as_dtype(dtype).type(arr)


def expand_dims(data: Tensor, axis: Any) -> Tensor:
    """A view with axes of length one."""
    return data.expand_dims(axis)


def broadcast_to(src: Tensor, *, shape: Any) -> Tensor:
    """A view that is repeated along axes of length one."""
    return src.broadcast_to(shape)


# --- functions of tiles ---


def _reduction(name: str, combine: str, what: str, dtype: Any = None) -> Any:
    standard = dtype

    def reduction(
        x: Any, axis: Any, *, dtype: Any = standard, mask: Any = None, keepdims: bool = False
    ) -> Tensor:
        return nki_ops.reduce_tile(combine, x, axis, dtype=dtype, mask=mask, keepdims=keepdims)

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"{what} along axes."
    return reduction


sum = _reduction("sum", "add", "The sum")
prod = _reduction("prod", "multiply", "The product")
max = _reduction("max", "maximum", "The largest")
min = _reduction("min", "minimum", "The smallest")
all = _reduction("all", "logical_and", "Whether all are true", bool)
any = _reduction("any", "logical_or", "Whether one is true", bool)


def _count(x: Tensor, axis: Any, mask: Any) -> np.ndarray | int:
    """The number of elements that each result of a reduction combines."""
    axes = [int(a) % x.ndim for a in (axis if isinstance(axis, tuple | list) else [axis])]
    keep = nki_ops.as_mask(mask, x.shape, x)
    if keep is None:
        return math.prod(x.shape[a] for a in axes)
    return np.maximum(keep.sum(axis=tuple(axes), keepdims=True), 1)


def mean(x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False) -> Tensor:
    """The average along axes."""
    wide = np.float32
    total = sum(x, axis, dtype=wide, mask=mask, keepdims=True)
    element_dtype = dtype or (x.dtype if is_float(x.dtype) else wide)
    result = nki_ops.elementwise(
        "divide", total, np.asarray(_count(x, axis, mask), np.float32), dtype=element_dtype
    )
    return result if keepdims else _without(result, axis)


def var(x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False) -> Tensor:
    """The variance along axes."""
    centre = mean(x, axis, dtype=np.float32, mask=mask, keepdims=True)
    away = nki_ops.elementwise(
        "square", nki_ops.elementwise("subtract", x, centre, dtype=np.float32, mask=mask), mask=mask
    )
    element_dtype = dtype or (x.dtype if is_float(x.dtype) else np.float32)
    return mean(away, axis, dtype=element_dtype, mask=mask, keepdims=keepdims)


def _without(x: Tensor, axis: Any) -> Tensor:
    axes = {int(a) % x.ndim for a in (axis if isinstance(axis, tuple | list) else [axis])}
    return x.reshape([n for at, n in enumerate(x.shape) if at not in axes])


def softmax(x: Any, axis: Any, *, dtype: Any = None, compute_dtype: Any = None, mask: Any = None) -> Tensor:
    """Exponentials along axes, divided by their sum."""
    largest = max(x, axis, dtype=np.float32, mask=mask, keepdims=True)
    shifted = nki_ops.elementwise("subtract", x, largest, dtype=np.float32, mask=mask)
    raised = nki_ops.elementwise("exp", shifted, mask=mask)
    total = sum(raised, axis, dtype=np.float32, mask=mask, keepdims=True)
    return nki_ops.elementwise("divide", raised, total, dtype=dtype or compute_dtype or x.dtype, mask=mask)


def rms_norm(
    x: Any,
    w: Any,
    axis: Any,
    n: Any,
    epsilon: float = 1e-6,
    *,
    dtype: Any = None,
    compute_dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """A tile divided by its root mean square along axes, times weights."""
    squares = nki_ops.elementwise("square", x, dtype=np.float32, mask=mask)
    total = sum(squares, axis, dtype=np.float32, mask=mask, keepdims=True)
    average = nki_ops.elementwise("add", nki_ops.elementwise("multiply", total, 1.0 / n), epsilon)
    scaled = nki_ops.elementwise(
        "multiply", x, nki_ops.elementwise("rsqrt", average), dtype=np.float32, mask=mask
    )
    return nki_ops.elementwise("multiply", scaled, w, dtype=dtype or compute_dtype or x.dtype, mask=mask)


def dropout(x: Any, rate: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """A tile, with a share of its elements set to zero."""
    return nki_ops.dropout(x, rate, None, dtype, mask)


def where(condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Elements of one tile where a condition is true, and of another where it is not."""
    return nki_ops.select(condition, x, y, None, dtype, mask)


def matmul(x: Tensor, y: Tensor, *, transpose_x: bool = False, mask: Any = None) -> Tensor:
    """The product of two tiles, in PSUM."""
    if transpose_x:
        return nki_ops.matmul(x, y, mask=mask, name="nl.matmul")
    turned = nki_ops.copy(nki_ops.transpose(x))
    return nki_ops.matmul(turned, y, mask=mask, name="nl.matmul")


def transpose(x: Tensor, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """A tile with its partitions as columns."""
    return nki_ops.transpose(x, None, dtype, mask)


def loop_reduce(x: Any, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Raises an UnsupportedError: a reduction over the iterations of loops is not interpreted."""
    raise UnsupportedError("nl.loop_reduce is not interpreted: write tile[...] = nl.add(tile, x) instead")


def all_reduce(x: Any, op: Any, program_axes: Any) -> Tensor:
    """A reduction over programs. With more than one program an UnsupportedError: they run one after the
    other."""
    if num_programs(program_axes) == 1:
        return copy(x)
    raise UnsupportedError(
        "nl.all_reduce over several programs is not interpreted: programs run one after the other"
    )


def device_print(prefix: Any, x: Any = None, *, mask: Any = None) -> None:
    """Print a tile."""
    if isinstance(x, Tensor):
        x = x.read()[0]
    print(prefix, x)


# --- constants ---


fp32 = finfo(np.float32)
NkiTensor = Tensor

# --- keywords ---

_FUNCTIONS = [
    name
    for name, value in globals().items()
    if inspect.isfunction(value)
    and value.__module__ in (__name__, finfo.__module__)
    and not name.startswith("_")
]
_LOOPS = ["affine_range", "sequential_range", "static_range", "dynamic_range"]
globals().update(keywords.strict("nl", globals(), [*_FUNCTIONS, *_LOOPS]))
