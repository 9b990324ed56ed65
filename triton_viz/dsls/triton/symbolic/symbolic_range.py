"""Ranges whose bounds may be expressions, and the request to run the kernel again with a loop unrolled."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import triton.language as tl

from triton_viz.dsls.triton.symbolic.expression import (
    ONE,
    ZERO,
    add,
    less,
    maximum,
    multiply,
    negate,
    number,
    subtract,
)
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.integers import divide, wrap
from triton_viz.dsls.triton.symbolic.nodes import Cond, Sum
from triton_viz.dsls.triton.symbolic.symbolic_ops import Stopped
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic, integer_type

if TYPE_CHECKING:
    from triton_viz.dsls.triton.symbolic.symbolic_flow import SymbolicFlow


LONGEST = 1024
"""The most iterations that are unrolled."""


_ENDLESS = 1 << 31


Key = tuple[str, int]
"""A loop: its file and line."""


class Restart(Exception):
    """Run the kernel again, and treat this loop in another way: "unroll" or "summarize"."""

    def __init__(self, key: Key, mode: str):
        super().__init__(f"the loop in line {key[1]}: {mode}")
        self.key, self.mode = key, mode


class SymbolicRange:
    """`range` with symbolic bounds."""

    def __init__(self, flow: "SymbolicFlow", start: Any, stop: Any, step: Any):
        self.flow = flow
        values = [flow.tensor(bound) for bound in (start, stop, step)]
        for value in values:
            if not isinstance(value, tl.tensor) or not value.dtype.is_int():
                raise TypeError("the bounds of a range must be integers")
        promote = flow.semantic.integer_promote_impl
        self.dtype = promote(promote(values[0].dtype, values[1].dtype), values[2].dtype)
        self.start, self.stop, self.step = (flow.scalar(value).sum for value in values)
        if self.step.low <= 0 <= self.step.high:
            raise Stopped("a range's step may be zero")
        if self.step.low > 0:
            distance = subtract(self.stop, self.start)
            step = self.step
        else:
            distance, step = subtract(self.start, self.stop), negate(self.step)
        self.count = divide(maximum(ZERO, subtract(add(distance, step), ONE)), step)
        """The number of iterations."""

    def holds(self, k: Sum) -> Cond:
        """The condition under which iteration k exists."""
        here = add(self.start, multiply(k, self.step))
        return less(here, self.stop) if self.step.low > 0 else less(self.stop, here)

    def at(self, k: Sum) -> tl.tensor:
        """The loop variable."""
        here = wrap(add(self.start, multiply(k, self.step)), integer_type(self.dtype))
        return tl.tensor(Symbolic(here, self.dtype, (), Origin("the loop's variable")), self.dtype)

    def __len__(self) -> int:
        return self.flow.as_int(self.count, "a range's length")

    def __iter__(self) -> Iterator[tl.tensor]:
        # Reached outside of a `for` statement, as in a comprehension.
        return (self.at(number(k)) for k in range(len(self)))
