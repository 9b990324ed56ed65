"""A touch: one access at one line of source, of all programs that ran it together."""

import dataclasses
import enum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from triton_viz.core.data import Site
from triton_viz.core.records.accesses import reach
from triton_viz.core.records.columns import Programs
from triton_viz.executor.affine import Affine, Box
from triton_viz.executor.memory import Mask
from triton_viz.executor.value import Value

if TYPE_CHECKING:
    from triton_viz.clients.race_detector.shadow import Shadow


class TouchKind(enum.Enum):
    """How a touch accesses memory."""

    READ = "reads"
    WRITE = "writes"
    UPDATE = "updates atomically"
    LOCAL_UPDATE = 'updates with scope="cta"'
    """An atomic that is one step in its own program only."""
    WAIT = "reads atomically"
    """A volatile or atomic load, by which a program may wait for another program."""
    SIGNAL = "writes atomically"

    @property
    def atomic(self) -> bool:
        """Whether the access is atomic."""
        return self in (TouchKind.UPDATE, TouchKind.WAIT, TouchKind.SIGNAL)

    @property
    def writes(self) -> bool:
        """Whether the access may change memory."""
        return self in (TouchKind.WRITE, TouchKind.UPDATE, TouchKind.LOCAL_UPDATE, TouchKind.SIGNAL)


def conflict(one: "Touch | Shadow", other: "Touch | Shadow") -> bool:
    """Whether accesses of these kinds and widths to the same bytes are a race if nothing orders them.

    Two atomics of one width are not: hardware runs one after the other. It does not for different widths: an
    atomic is atomic only to those that access exactly the same bytes. (Atomics are aligned, or the sanitizer
    reports them: so of one width they access the same bytes or none in common.) A plain store to an element
    that other programs read by volatile loads sets a flag, and is not a race.
    """
    if not (one.kind.writes or other.kind.writes):
        return False
    if one.width != other.width:
        return True
    if one.kind.atomic and other.kind.atomic:
        return False
    return {one.kind, other.kind} != {TouchKind.WRITE, TouchKind.WAIT}


@dataclasses.dataclass(frozen=True)
class Touch:
    """The elements that one op accessed."""

    kind: TouchKind
    path: tuple[Site, ...]
    programs: Programs
    pointers: Value
    mask: Mask
    width: int
    time: int
    """The op's index among all ops of the launch, in execution order."""
    values: np.ndarray | None = None
    """The stored values, of shape (L, *shape) or broadcast to it."""
    acquires: bool = False
    releases: bool = False

    @property
    def lanes(self) -> int:
        """The number of programs in the columns."""
        return self.programs.lanes

    @cached_property
    def order(self) -> np.ndarray:
        """Each lane's linear program id."""
        return self.programs.order.all()

    @property
    def form(self) -> Affine | None:
        """The addresses, in compact form."""
        return self.pointers.numbers

    @property
    def nbytes(self) -> int:
        """The memory that the touch uses, in bytes."""
        arrays: list[np.ndarray] = [] if self.values is None else [self.values]
        arrays.append(self.pointers.data if self.form is None else self.form.base)
        if isinstance(self.mask, Box):
            arrays += [bound for bounds in self.mask.bounds if bounds is not None for bound in bounds]
        elif self.mask is not None:
            arrays.append(self.mask)
        return sum(array.nbytes for array in arrays) + 512

    @cached_property
    def spans(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each lane: the lowest address, the end of the highest, and whether it accesses any."""
        form = self.form
        if form is not None:
            low, high, used = reach(form, self.mask, self.width)
        else:
            rows = self.pointers.data.reshape(len(self.pointers.data), -1)
            mask = self.mask.data() if isinstance(self.mask, Box) else self.mask
            if mask is None:
                low, high, used = rows.min(axis=1), rows.max(axis=1) + self.width, np.ones(1, bool)
            else:
                kept = mask.reshape(len(mask), -1)
                low = np.where(kept, rows, np.iinfo(np.int64).max).min(axis=1)
                high, used = np.where(kept, rows, 0).max(axis=1) + self.width, kept.any(axis=1)
        whole = (self.lanes,)
        used = np.broadcast_to(used, whole)
        if self.programs.active is not None:
            used = used & self.programs.active
        return np.broadcast_to(low, whole), np.broadcast_to(high, whole), used

    @cached_property
    def extent(self) -> tuple[int, int] | None:
        """The lowest address and the end of the highest; None if no element was accessed."""
        low, high, used = self.spans
        return (int(low[used].min()), int(high[used].max())) if used.any() else None

    def alignment(self, start: int) -> int:
        """The largest power of two, up to its width, that divides all distances from `start`."""
        form = self.form
        if form is not None:
            bits = int(np.bitwise_or.reduce(form.base - start))
            for step, size in zip(form.steps, form.shape, strict=True):
                bits |= step if size > 1 else 0
        else:
            bits = int(np.bitwise_or.reduce(self.flat()[0] - start, initial=0))
        bits |= self.width
        return bits & -bits

    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """For every accessed element: the address, the program, and the stored value."""
        whole = (self.lanes, *self.pointers.shape)
        ones = (-1, *(1,) * len(self.pointers.shape))
        mask = self.mask.data() if isinstance(self.mask, Box) else self.mask
        if self.programs.active is not None:
            active = self.programs.active.reshape(ones)
            mask = active if mask is None else mask & active
        columns = [self.pointers.data, self.order.reshape(ones)]
        if self.values is not None:
            columns.append(self.values)
        if mask is None:
            taken = [np.broadcast_to(column, whole).reshape(-1) for column in columns]
        else:
            kept = np.broadcast_to(mask, whole)
            taken = [np.broadcast_to(column, whole)[kept] for column in columns]
        return taken[0].astype(np.int64, copy=False), taken[1], taken[2] if len(taken) > 2 else None
