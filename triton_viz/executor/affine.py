"""Compact forms of values: indices that are linear in a block's axes, and masks that are boxes.

Most index arithmetic of a kernel is `base + i * step`. Keeping that form instead of a million numbers is what
makes loads strided copies, and traces small. Both forms are immutable, and so are the arrays they hold.
"""

from functools import reduce

import numpy as np

Bounds = tuple[np.ndarray, np.ndarray] | None
"""The bounds of a box along one axis: start and end (exclusive), each of shape (L,)."""


class Affine:
    """Integers, one block per lane: `base[lane] + sum(index[axis] * steps[axis])`.

    The base is int64 and wraps around, while `low` and `high` are exact Python integers. An integer result is
    correct only if `exact`; pointers may wrap around.
    """

    __slots__ = ("_lane_step", "base", "high", "low", "shape", "steps")

    def __init__(self, base: np.ndarray, steps: tuple[int, ...], shape: tuple[int, ...], low: int, high: int):
        self.base, self.steps, self.shape = base, steps, shape
        self.low, self.high = low, high
        """Bounds of all values, not necessarily tight."""
        self._lane_step: int | bool | None = False

    @classmethod
    def of_scalar(cls, values: np.ndarray) -> "Affine":
        """Scalars of integers, one per lane."""
        base = values.astype(np.int64, copy=False)
        if base.size == 1:
            low = high = int(base[0])
        else:
            low, high = int(base.min()), int(base.max())
        return cls(base, (), (), low, high)

    @property
    def exact(self) -> bool:
        """Whether all values fit into int64, so that none has wrapped around."""
        return self.low >= -(2**63) and self.high < 2**63

    @property
    def lane_step(self) -> int | None:
        """The distance between the bases of neighbouring lanes; None if it is not constant."""
        if self._lane_step is False:
            self._lane_step = lane_step(self.base)
        return self._lane_step

    @property
    def constant(self) -> bool:
        """Whether all elements of each lane's block are equal."""
        return not any(self.steps)

    def exact_range(self) -> tuple[int, int]:
        """The smallest and the largest value; None if a value may have wrapped around."""
        below, above = spread(self.steps, self.shape)
        return int(self.base.min()) + below, int(self.base.max()) + above

    def data(self) -> np.ndarray:
        """All values, as int64, of shape (L, *shape)."""
        result = self.base.reshape(-1, *(1,) * len(self.shape))
        for axis, step in enumerate(self.steps):
            if step:
                size = self.shape[axis]
                if -(2**62) < size * step < 2**62:
                    index = np.arange(0, size * step, step, dtype=np.int64)
                else:  # beyond every address; the sum wraps around
                    index = np.arange(size, dtype=np.int64) * wrapped(step)
                result = result + index.reshape(-1, *(1,) * (len(self.shape) - axis - 1))
        return np.broadcast_to(result, (len(self.base), *self.shape))

    def at(self, lane: int) -> np.ndarray:
        """The values of one lane."""
        first = lane if len(self.base) > 1 else 0
        return Affine(self.base[first : first + 1], self.steps, self.shape, self.low, self.high).data()[0]

    def with_base(self, base: np.ndarray) -> "Affine":
        """The same block at other bases."""
        return Affine(base, self.steps, self.shape, self.low, self.high)

    # --- arithmetic; None where the result is not affine ---

    def add(self, other: "Affine") -> "Affine":
        """The sum of two of one shape."""
        steps = tuple(a + b for a, b in zip(self.steps, other.steps, strict=True))
        return Affine(self.base + other.base, steps, self.shape, self.low + other.low, self.high + other.high)

    def negate(self) -> "Affine":
        """Each number with the other sign."""
        return Affine(-self.base, tuple(-s for s in self.steps), self.shape, -self.high, -self.low)

    def multiply(self, other: "Affine") -> "Affine | None":
        """The product, if one factor is constant in each lane."""
        if other.constant and len(other.base) == 1:
            return self.scale(int(other.base[0]))
        if self.constant and len(self.base) == 1:
            return other.scale(int(self.base[0]))
        if self.constant and other.constant:
            ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
            return Affine(self.base * other.base, self.steps, self.shape, min(ends), max(ends))
        return None

    def scale(self, by: int) -> "Affine":
        """All values multiplied by a constant."""
        low, high = sorted((self.low * by, self.high * by))
        return Affine(self.base * by, tuple(s * by for s in self.steps), self.shape, low, high)

    def expand_dims(self, axis: int) -> "Affine":
        """With an axis of length one."""
        return Affine(
            self.base,
            (*self.steps[:axis], 0, *self.steps[axis:]),
            (*self.shape[:axis], 1, *self.shape[axis:]),
            self.low,
            self.high,
        )

    def broadcast(self, shape: tuple[int, ...]) -> "Affine":
        """Repeated along its axes of length one; a scalar, along all."""
        if self.shape:
            steps = tuple(0 if n == 1 else step for step, n in zip(self.steps, self.shape, strict=True))
        else:
            steps = (0,) * len(shape)
        return Affine(self.base, steps, shape, self.low, self.high)

    def transpose(self, order: tuple[int, ...]) -> "Affine":
        """With its axes in another order."""
        steps, shape = (tuple(x[axis] for axis in order) for x in (self.steps, self.shape))
        return Affine(self.base, steps, shape, self.low, self.high)

    def below_zero(self) -> "Box | None":
        """The mask of negative values, if it is a box that follows from the bases and steps."""
        if not self.exact:
            return None
        if self.high < 0:
            return Box((None,) * len(self.shape), self.shape)
        axes = [axis for axis, step in enumerate(self.steps) if step and self.shape[axis] > 1]
        if len(axes) > 1 or not self.shape:
            return None
        if not axes:
            if self.exact_range()[1] < 0:
                return Box((None,) * len(self.shape), self.shape)
            # The comparison is constant in each lane: bounds of the first axis are (0, 0) or (0, size).
            size = self.shape[0]
            bounds = (np.zeros_like(self.base), np.where(self.base < 0, size, 0))
            return Box((bounds, *(None,) * (len(self.shape) - 1)), self.shape)
        (axis,) = axes
        step, size = self.steps[axis], self.shape[axis]
        if abs(step) >= 2**63:
            return None
        if step > 0:  # base + i * step < 0 up to (not including) ceil(-base / step)
            end = -np.clip(self.base // step, -size, 0)
            if end.min() == size:
                bounds = None
            else:
                bounds = (np.zeros_like(end), end)
        else:  # from the first i with i * -step > base
            start = np.clip(self.base // -step, -1, size - 1) + 1
            bounds = None if start.max() == 0 else (start, np.full_like(start, size))
        return Box(tuple(bounds if a == axis else None for a in range(len(self.shape))), self.shape)


class Box:
    """A mask, one block per lane: true between bounds along each axis. Bounds are within the block."""

    __slots__ = ("bounds", "shape")

    def __init__(self, bounds: tuple[Bounds, ...], shape: tuple[int, ...]):
        self.bounds, self.shape = bounds, shape

    @property
    def full(self) -> bool:
        """Whether it is true everywhere."""
        return all(b is None for b in self.bounds)

    @property
    def lanes(self) -> int:
        """The length of the lane axis: 1 if all lanes have the same bounds."""
        return max((len(b[0]) for b in self.bounds if b is not None), default=1)

    def data(self) -> np.ndarray:
        """As booleans, of shape (L, *shape)."""
        parts = []
        rank = len(self.shape)
        for axis, bounds in enumerate(self.bounds):
            if bounds is not None:
                index = np.arange(self.shape[axis])
                start, end = bounds[0][:, None], bounds[1][:, None]
                inside = index < end if not start.any() else (index >= start) & (index < end)
                parts.append(inside.reshape(len(inside), *(1,) * axis, -1, *(1,) * (rank - axis - 1)))
        inside = reduce(np.logical_and, parts, np.True_)
        return np.broadcast_to(inside, (self.lanes, *self.shape))

    def intersect(self, other: "Box") -> "Box":
        """Where both are true."""
        pairs = zip(self.bounds, other.bounds, strict=True)
        return Box(tuple(_both(a, b) for a, b in pairs), self.shape)

    def expand_dims(self, axis: int) -> "Box":
        """With an axis of length one."""
        return Box(
            (*self.bounds[:axis], None, *self.bounds[axis:]),
            (*self.shape[:axis], 1, *self.shape[axis:]),
        )

    def broadcast(self, shape: tuple[int, ...]) -> "Box":
        """Repeated along its axes of length one."""
        bounds: list[Bounds] = []
        for now, after, old in zip(self.shape, shape, self.bounds, strict=True):
            if old is None or now == after:
                bounds.append(old)
            else:  # of length one: empty or full
                bounds.append((np.zeros_like(old[0]), np.where(old[1] > old[0], after, 0)))
        return Box(tuple(bounds), shape)

    def transpose(self, order: tuple[int, ...]) -> "Box":
        """With its axes in another order."""
        return Box(tuple(self.bounds[a] for a in order), tuple(self.shape[a] for a in order))

    def of_lanes(self, active: np.ndarray) -> "Box":
        """False in the lanes that are not active."""
        first = self.bounds[0]
        start, end = first if first is not None else (np.zeros(1, np.int64), np.array([self.shape[0]]))
        return Box(
            ((np.broadcast_to(start, active.shape), np.where(active, end, 0)), *self.bounds[1:]), self.shape
        )

    def limits(self, lanes: int) -> tuple[np.ndarray, np.ndarray]:
        """The starts and the ends, as two arrays of shape (lanes, rank)."""
        rank = len(self.shape)
        start, end = np.zeros((lanes, rank), np.int64), np.empty((lanes, rank), np.int64)
        for axis, bounds in enumerate(self.bounds):
            if bounds is None:
                end[:, axis] = self.shape[axis]
            else:
                start[:, axis], end[:, axis] = bounds
        return start, end

    def at(self, lane: int) -> np.ndarray:
        """One lane's mask."""
        inside = np.ones(self.shape, bool)
        for axis, bounds in enumerate(self.bounds):
            if bounds is not None:
                start, end = (int(b[lane if len(b) > 1 else 0]) for b in bounds)
                index = np.arange(self.shape[axis])
                along = (index >= start) & (index < end)
                inside &= along.reshape(-1, *(1,) * (len(self.shape) - axis - 1))
        return inside


def lane_step(base: np.ndarray) -> int | None:
    """The constant distance between neighbours, None if it varies; 0 for a single lane."""
    if len(base) == 1:
        return 0
    step = int(base[1] - base[0])
    if len(base) == 2 or (
        int(base[-1] - base[0]) == step * (len(base) - 1) and (base[1:] - base[:-1] == step).all()
    ):
        return step
    return None


def spread(steps: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, int]:
    """The extent of a block below and above its base."""
    ends = [step * (size - 1) for step, size in zip(steps, shape, strict=True)]
    return sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)


def wrapped(number: int) -> int:
    """An integer, wrapped around to int64."""
    return (number + 2**63) % 2**64 - 2**63


def apart(steps: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether all elements have different addresses: each step exceeds the extent of all smaller ones."""
    reach = 0
    for step, size in sorted((abs(step), size) for step, size in zip(steps, shape, strict=True) if size > 1):
        if step <= reach:
            return False
        reach += step * (size - 1)
    return True


def _both(a: Bounds, b: Bounds) -> Bounds:
    if a is None or b is None:
        return b if a is None else a
    return np.maximum(a[0], b[0]), np.minimum(a[1], b[1])
