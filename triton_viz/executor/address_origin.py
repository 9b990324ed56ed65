"""The origin of an address: the numbers in memory that a pointer was computed from.

A kernel may follow a pointer that it has loaded (a grouped matmul reads its matrices' addresses from a
tensor), and from there it may reach the storage of the tensor that starts at that address, but no other. So a
value that depends on loaded 64-bit numbers carries them along, through arithmetic, casts and changes of
shape. Whether one of them is a tensor's address is looked up when a pointer with this origin is used.
"""

from collections.abc import Callable

import numpy as np

LEAST_ADDRESS = 1 << 22
"""No tensor is at a lower address: programs themselves are loaded there at the lowest."""


class Origin:
    """The loaded numbers that a value depends on; a value without any has no Origin.

    Each array of `roots` has the shape (K, L, *block): K numbers for each element, 0 where there is none. L
    and any axis of the block may be 1 where all agree.
    """

    __slots__ = ("roots",)

    def __init__(self, roots: tuple[np.ndarray, ...]):
        self.roots = roots

    @classmethod
    def loaded(cls, data: np.ndarray, keep: np.ndarray | None) -> "Origin | None":
        """The origin of 64-bit numbers that were loaded (where `keep`), unless none can be an address."""
        if data.size == 0 or int(data.max()) < LEAST_ADDRESS:
            return None
        bits = data.view(np.int64)
        return cls((bits[None] if keep is None else np.where(keep, bits, 0)[None],))

    @property
    def numbers(self) -> int:
        """How many numbers it holds."""
        return sum(root.size for root in self.roots)

    @property
    def per_lane(self) -> bool:
        """Whether all elements of a lane have the same one."""
        return all(root[0, 0].size == 1 for root in self.roots)

    def of_lanes(self) -> "Origin":
        """That of each lane, if all elements of a lane have the same one."""
        return Origin(tuple(root.reshape(root.shape[:2]) for root in self.roots))

    def of_rank(self, rank: int) -> "Origin":
        """A scalar's origin for a block of so many axes; a block's is unchanged."""
        return Origin(
            tuple(
                root if root.ndim == rank + 2 else root.reshape(*root.shape[:2], *(1,) * rank)
                for root in self.roots
            )
        )

    def picked(self, keep: np.ndarray) -> "Origin":
        """That of the elements where a mask of shape (L, *block) is true, one after the other."""
        return Origin(
            tuple(
                root.reshape(len(root), 1)
                if root[0].size == 1
                else np.broadcast_to(root, (len(root), *keep.shape))[:, keep]
                for root in self.roots
            )
        )

    def moved(self, shape: tuple[int, ...], move: Callable[[np.ndarray], np.ndarray]) -> "Origin":
        """After a change of shape: `move` does it to elements of shape (L, *shape)."""
        moved = []
        for root in self.roots:
            whole = np.broadcast_to(root, (*root.shape[:2], *shape))
            moved.append(np.stack([move(one) for one in whole]))
        return Origin(tuple(moved))

    def mixed(self, rank: int) -> "Origin":
        """After an op that may move any element of a lane anywhere: each element has all of its lane's."""
        roots = []
        for root in self.roots:
            numbers = root.reshape(*root.shape[:2], -1)
            numbers = np.moveaxis(numbers, -1, 0).reshape(-1, root.shape[1])
            roots.append(numbers.reshape(*numbers.shape, *(1,) * rank))
        return Origin(tuple(roots))


def joined(*origins: Origin | None) -> Origin | None:
    """The origin of what depends on all of these values, which have the same number of axes."""
    found: list[np.ndarray] = []
    for origin in origins:
        for root in () if origin is None else origin.roots:
            if not any(root is other for other in found):
                found.append(root)
    return Origin(tuple(found)) if found else None


def selected(condition: np.ndarray, a: Origin | None, b: Origin | None) -> Origin | None:
    """The origin of `where(condition, x, y)`, given those of x and y."""
    if a is None and b is None:
        return None

    def where(condition: np.ndarray, origin: Origin | None) -> tuple[np.ndarray, ...]:
        return () if origin is None else tuple(np.where(condition, root, 0) for root in origin.roots)

    if a is not None and b is not None and len(a.roots) == len(b.roots) == 1:
        (x,), (y,) = a.roots, b.roots
        if x is y:
            return a
        if len(x) == len(y):
            return Origin((np.where(condition, x, y),))
    return Origin((*where(condition, a), *where(~condition, b)))
