"""What all parts of the symbolic builder share."""

from collections.abc import Callable
from typing import Any

from triton_viz.clients.sanitizer.symbolic.expression import Cond, Reason, Sum, unknown
from triton_viz.clients.sanitizer.symbolic.origin import Origin
from triton_viz.clients.sanitizer.symbolic.value import Symbolic, indices, kind_of, unknown_node

Note = Callable[[str, Symbolic, Cond], None]
"""Hears of an access: load, store, atomic or descriptor; the pointers; and where the mask is true."""


class Stopped(Exception):
    """The analysis cannot go on: what follows is not known."""


class Ops:
    """A builder without ops."""

    def __init__(self, grid: tuple[int, int, int]):
        self.grid = grid
        self.scope: Callable[[], tuple[Sum, ...]] = lambda: ()
        """The counters of the loops around: what is not known may differ from iteration to iteration."""
        self.note: Note = lambda kind, pointers, mask: None
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
        """A value that only running the kernel tells. The text says what it is."""
        dtype = dtype.scalar
        args = (*indices(shape), *self.scope())
        if bounds is not None and not dtype.is_floating() and not dtype.is_bool():
            kind = kind_of(dtype)
            if kind.low <= bounds[0] and bounds[1] <= kind.high:
                return Symbolic(unknown(*bounds, Reason(text), args), dtype, shape, origin)
        return Symbolic(unknown_node(dtype, Reason(text), args), dtype, shape, origin)
