"""The memory of a tensor: an array in HBM, or a buffer in SBUF or PSUM with its lifetime."""

import math
from typing import Any

import numpy as np

from triton_viz.core.data import Site
from triton_viz.core.records.tensor_info import TensorInfo


class Storage:
    """The memory of a tensor."""

    __slots__ = (
        *(
            "argument",
            "array",
            "assigned",
            "born",
            "info",
            "last",
            "memory",
            "name",
            "path",
            "position",
            "iterations",
        ),
        *("made", "masked", "partition_axis", "undefined", "used"),
    )

    def __init__(
        self, array: np.ndarray, memory: str, name: str, undefined: np.ndarray | None, partition_axis: int = 0
    ):
        self.array, self.memory, self.name = array, memory, name
        self.undefined = undefined
        """Which elements are undefined; None if there are none."""
        self.masked: np.ndarray | None = None
        """The mask of the instruction that made this tile, if it masked elements off."""
        self.partition_axis = partition_axis
        self.argument: Any = None
        """The caller's array or tensor, if this is an argument."""
        self.info: TensorInfo | None = None
        self.path: tuple[Site, ...] = ()
        """The source lines of its allocation."""
        self.iterations: tuple[tuple[int, int], ...] = ()
        self.position = 0
        """Its index among the buffers of its program."""
        self.born = self.last = 0
        """The first and the last instruction that use it."""
        self.used = False
        self.made = 0
        """The instruction whose result it is; 0 if it was allocated without one."""
        self.assigned: list[int] = []
        """The instructions whose results were assigned to parts of it, which they wrote directly."""

    def use(self, tick: int) -> None:
        """Note that the current instruction uses it."""
        if not self.used:
            self.used, self.born = True, tick
        self.last = tick

    @property
    def bytes_per_partition(self) -> int:
        """Its size in bytes of each partition."""
        shape = self.array.shape
        others = [n for axis, n in enumerate(shape) if axis != self.partition_axis]
        return math.prod(others) * self.array.itemsize
