"""Device functions that kernels of other files call, and that call each other across files."""

import triton
import triton.language as tl

from tests.triton_viz.corpus import deeper

SCALE: tl.constexpr = tl.constexpr(3)


@triton.jit
def scaled(v, by=2):
    return v * by * SCALE


@triton.jit
def loaded_row(x, row, stride, columns, BLOCK: tl.constexpr, fill: tl.constexpr = 0.0):
    at = tl.arange(0, BLOCK)
    return tl.load(x + row * stride + at, mask=at < columns, other=fill)


@triton.jit
def polynomial(v, DEGREE: tl.constexpr):
    """A function that calls itself through another file, to a depth known when compiling."""
    if DEGREE == 0:
        return v * 0 + 1
    else:
        return deeper.times(v, polynomial(v, DEGREE - 1)) + 1


@triton.jit
def store_twice(out, at, v, mask):
    """Returns nothing."""
    tl.store(out + at * 2, v, mask=mask)
    tl.store(out + at * 2 + 1, deeper.times(v, v), mask=mask)
