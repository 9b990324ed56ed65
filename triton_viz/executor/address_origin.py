"""The origin of an address: the integers in memory that a pointer was computed from.

A kernel may use a pointer that it has loaded (a grouped matmul reads its matrices' addresses from a tensor).
Such a pointer may access the storage of the tensor that starts at the loaded address, and no other. So a
value that depends on loaded 64-bit integers has references to them (its origin), which arithmetic, casts and
changes of shape propagate. The executor looks up whether one of them is a tensor's address when the pointer
is used.
"""

from collections.abc import Callable

import numpy as np

LEAST_ADDRESS = 1 << 22
"""The lowest address of a tensor: executables are loaded here or above."""


class Origin:
    """The loaded integers that a value depends on; a value without any has no Origin.

    Each array of `roots` has the shape (K, L, *block): K integers for each element, padded with 0. L and any
    axis of the block may be 1 where all agree.
    """

    __slots__ = ("roots",)

    def __init__(self, roots: tuple[np.ndarray, ...]):
        self.roots = roots

    @classmethod
    def loaded(cls, data: np.ndarray, keep: np.ndarray | None) -> "Origin | None":
        """The origin of loaded 64-bit integers (where `keep`); None if none of them can be an address."""
        if data.size == 0 or int(data.max()) < LEAST_ADDRESS:
            return None
        bits = data.view(np.int64)
        return cls((bits[None] if keep is None else np.where(keep, bits, 0)[None],))

    @property
    def numbers(self) -> int:
        """The number of integers that it holds."""
        return sum(root.size for root in self.roots)

    @property
    def per_lane(self) -> bool:
        """Whether all elements of a lane have the same origin."""
        return all(root[0, 0].size == 1 for root in self.roots)

    def of_lanes(self) -> "Origin":
        """The origin of each lane; None if the elements of a lane have different origins."""
        return Origin(tuple(root.reshape(root.shape[:2]) for root in self.roots))

    def of_rank(self, rank: int) -> "Origin":
        """A scalar's origin, broadcast to a block with `rank` axes; a block's origin is unchanged."""
        return Origin(
            tuple(
                root if root.ndim == rank + 2 else root.reshape(*root.shape[:2], *(1,) * rank)
                for root in self.roots
            )
        )

    def picked(self, keep: np.ndarray) -> "Origin":
        """The origins of the elements where a mask of shape (L, *block) is true, as a flat list."""
        return Origin(
            tuple(
                root.reshape(len(root), 1)
                if root[0].size == 1
                else np.broadcast_to(root, (len(root), *keep.shape))[:, keep]
                for root in self.roots
            )
        )

    def moved(self, shape: tuple[int, ...], move: Callable[[np.ndarray], np.ndarray]) -> "Origin":
        """The origin after a change of shape: `move` rearranges elements of shape (L, *shape)."""
        moved = []
        for root in self.roots:
            whole = np.broadcast_to(root, (*root.shape[:2], *shape))
            moved.append(np.stack([move(one) for one in whole]))
        return Origin(tuple(moved))

    def mixed(self, rank: int) -> "Origin":
        """The origin after an op that may move elements within a lane: each element has those of its lane."""
        roots = []
        for root in self.roots:
            numbers = root.reshape(*root.shape[:2], -1)
            numbers = np.moveaxis(numbers, -1, 0).reshape(-1, root.shape[1])
            roots.append(numbers.reshape(*numbers.shape, *(1,) * rank))
        return Origin(tuple(roots))


def joined(*origins: Origin | None) -> Origin | None:
    """The origin of a value that depends on values with these origins, which have equal ranks."""
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
