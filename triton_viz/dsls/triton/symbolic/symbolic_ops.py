"""The base class of the symbolic builder's groups of ops."""

from collections.abc import Callable
from typing import Any, Protocol

from triton_viz.dsls.triton.symbolic.expression import Reason, unknown
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.nodes import Cond, Sum
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic, indices, integer_type, unknown_node


class Note(Protocol):
    """Called with each access."""

    def __call__(self, access: str, pointers: Symbolic, mask: Cond, masked: bool = False, /) -> None:
        """Note a load, store, atomic or descriptor with its mask, and whether the source has a mask."""


class Stopped(Exception):
    """The analysis cannot continue."""


class Ops:
    """A builder without ops."""

    def __init__(self, grid: tuple[int, int, int]):
        self.grid = grid
        self.scope: Callable[[], tuple[Sum, ...]] = lambda: ()
        """The counters of enclosing loops, on which unknown values depend."""
        self.note: Note = lambda access, pointers, mask, masked=False: None
        self.inline: Callable[..., Any] = lambda *_: None
        """The flow's `inline`: calls a function of scalars for each element of a block."""

    def open_value(
        self,
        dtype: Any,
        shape: tuple[int, ...],
        text: str,
        origin: Origin,
        bounds: tuple[int, int] | None = None,
    ) -> Symbolic:
        """An unknown value, known only when the kernel runs. `reason` describes it in messages."""
        dtype = dtype.scalar
        args = (*indices(shape), *self.scope())
        if bounds is not None and not dtype.is_floating() and not dtype.is_bool():
            type_ = integer_type(dtype)
            if type_.low <= bounds[0] and bounds[1] <= type_.high:
                return Symbolic(unknown(*bounds, Reason(text), args), dtype, shape, origin)
        return Symbolic(unknown_node(dtype, Reason(text), args), dtype, shape, origin)
