"""The base class of the symbolic builder's groups of ops."""

from collections.abc import Callable
from typing import Any, Protocol

from triton_viz.dsls.triton.symbolic.expression import Reason, unknown
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.nodes import Cond, Sum
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic, indices, integer_type, unknown_node


class Note(Protocol):
    """Called with each access."""

    def __call__(self, kind: str, pointers: Symbolic, mask: Cond, masked: bool = False, /) -> None:
        """A load, store, atomic or descriptor; where the mask is true; whether there is one in the source."""


class Stopped(Exception):
    """The analysis cannot continue."""


class Ops:
    """A builder without ops."""

    def __init__(self, grid: tuple[int, int, int]):
        self.grid = grid
        self.scope: Callable[[], tuple[Sum, ...]] = lambda: ()
        """The counters of the loops around: what is not known may differ from iteration to iteration."""
        self.note: Note = lambda kind, pointers, mask, masked=False: None
        self.inline: Callable[..., Any] = lambda *_: None
        """Calls a function of scalars for each element of a block; the flow's."""

    def open_value(
        self,
        dtype: Any,
        shape: tuple[int, ...],
        text: str,
        origin: Origin,
        bounds: tuple[int, int] | None = None,
    ) -> Symbolic:
        """A value that is known only when the kernel runs. The text describes it."""
        dtype = dtype.scalar
        args = (*indices(shape), *self.scope())
        if bounds is not None and not dtype.is_floating() and not dtype.is_bool():
            kind = integer_type(dtype)
            if kind.low <= bounds[0] and bounds[1] <= kind.high:
                return Symbolic(unknown(*bounds, Reason(text), args), dtype, shape, origin)
        return Symbolic(unknown_node(dtype, Reason(text), args), dtype, shape, origin)
