"""Shape arithmetic that rows share, with PyTorch's error messages."""

import math
from collections.abc import Sequence

from gt.errors import DimensionError, ShapeError

Shape = tuple[int, ...]


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape that two shapes broadcast to."""
    if a == b:
        return a
    rank = max(len(a), len(b))
    left = (1,) * (rank - len(a)) + a
    right = (1,) * (rank - len(b)) + b
    for axis, (m, n) in enumerate(zip(left, right, strict=True)):
        if m != n and m != 1 and n != 1:
            raise ShapeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) "
                f"at non-singleton dimension {axis}"
            )
    return tuple(n if m == 1 else m for m, n in zip(left, right, strict=True))


def normalize_dim(dim: int, rank: int) -> int:
    """A dimension counted from the front."""
    low, high = -max(rank, 1), max(rank, 1) - 1
    if not low <= dim <= high:
        raise DimensionError(
            f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
        )
    return dim % max(rank, 1)


def reduce(shape: Shape, dims: Sequence[int] | None, keepdim: bool) -> Shape:
    """The shape after a reduction of these dimensions (of all for None)."""
    gone = set(range(len(shape)) if dims is None else dims)
    if keepdim:
        return tuple(1 if axis in gone else n for axis, n in enumerate(shape))
    return tuple(n for axis, n in enumerate(shape) if axis not in gone)


def matmul(a: Shape, b: Shape) -> Shape:
    """The shape of a matrix product: of vectors, matrices, or batches of matrices that broadcast."""
    if not a or not b:
        raise ShapeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D"
        )
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        raise ShapeError(_cannot_multiply(a, b))
    batch = broadcast(a[:-2], b[:-2])
    return batch + a[-2:-1] + (b[-1:] if len(b) > 1 else ())


def _cannot_multiply(a: Shape, b: Shape) -> str:
    rows = math.prod(a[:-1])
    if len(a) == len(b) == 1:
        return (
            f"inconsistent tensor size, expected tensor {list(a)} and src {list(b)} to have the same number "
            f"of elements, but got {a[0]} and {b[0]} elements respectively"
        )
    if len(b) == 1:
        return f"size mismatch, got input ({rows}), mat ({rows}x{a[-1]}), vec ({b[0]})"
    if len(b) == 2:
        return f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {b[0]}x{b[1]})"
    batch = math.prod(broadcast(a[:-2], b[:-2]))
    return (
        f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {a[-1]}] "
        f"but got: [{batch}, {b[-2]}]."
    )


def reshape(shape: Shape, to: Shape) -> Shape:
    """`to` with its -1, if any, filled in."""
    total, known = math.prod(shape), math.prod(n for n in to if n != -1)
    free = to.count(-1)
    if free > 1:
        raise ShapeError("only one dimension can be inferred")
    if min(to, default=0) < -1:
        raise ShapeError(f"invalid shape dimension {min(to)}")
    if free and not known and not total:
        raise ShapeError(
            f"cannot reshape tensor of 0 elements into shape {list(to)} because the unspecified dimension "
            "size -1 can be any value and is ambiguous"
        )
    if free and known and total % known == 0:
        return tuple(total // known if n == -1 else n for n in to)
    if free or known != total:
        raise ShapeError(f"shape '{list(to)}' is invalid for input of size {total}")
    return to


def expand(shape: Shape, to: Shape) -> Shape:
    """`to`, if broadcasting `shape` alone gives it; -1 keeps a size."""
    if len(to) < len(shape):
        raise ShapeError(
            f"expand: the number of sizes provided ({len(to)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(shape)})"
        )
    padded = (1,) * (len(to) - len(shape)) + shape
    new = len(to) - len(shape)
    result = []
    for axis, (have, want) in enumerate(zip(padded, to, strict=True)):
        if want == -1 and axis < new:
            raise ShapeError(f"expand: -1 is not allowed in the new dimension {axis}; give its size")
        if want not in (-1, have) and have != 1:
            raise ShapeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) "
                f"at non-singleton dimension {axis}"
            )
        result.append(have if want == -1 else want)
    return tuple(result)
