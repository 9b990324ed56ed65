"""The description of a tensor: its name, address, shape, strides and dtype, without its data."""

import math
from typing import Any

import msgspec
import numpy as np

from triton_viz.core.records.columns import (
    LARGEST,
    check_sizes,
)


class TensorInfo(msgspec.Struct, frozen=True):
    """A tensor argument: its name in the kernel, and where its elements are."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements, as in PyTorch."""
    dtype: str
    address: int
    """Of its first element."""
    itemsize: int
    storage: tuple[int, int]
    """The start and end address of the memory that it is a view of."""

    @classmethod
    def of(cls, name: str, tensor: Any) -> "TensorInfo":
        """The description of a torch tensor or a NumPy array."""
        if isinstance(tensor, np.ndarray):
            return cls(
                name=name,
                shape=tensor.shape,
                strides=tuple(stride // max(tensor.itemsize, 1) for stride in tensor.strides),
                dtype=tensor.dtype.name,
                address=tensor.__array_interface__["data"][0],
                itemsize=tensor.itemsize,
                storage=np.lib.array_utils.byte_bounds(tensor),
            )
        storage = tensor.untyped_storage()
        return cls(
            name=name,
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            dtype=str(tensor.dtype).removeprefix("torch."),
            address=tensor.data_ptr(),
            itemsize=tensor.element_size(),
            storage=(storage.data_ptr(), storage.data_ptr() + storage.nbytes()),
        )

    @property
    def is_contiguous(self) -> bool:
        """Whether elements are in row-major order without gaps."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    def check(self) -> None:
        """Raise a ValueError if these are not a tensor's, as those of a damaged file may be."""
        check_sizes(self.shape, "a tensor")
        if len(self.strides) != len(self.shape) or not 0 <= self.itemsize <= LARGEST:
            raise ValueError(f"a tensor of shape {self.shape} and strides {self.strides}")
        reach = sum(
            abs(stride) * max(size - 1, 0) for stride, size in zip(self.strides, self.shape, strict=True)
        )
        if reach * max(self.itemsize, 1) > LARGEST:
            raise ValueError(f"a tensor with strides of {self.strides}")
        if any(abs(address) > 2**64 for address in (self.address, *self.storage)):
            raise ValueError(f"a tensor at {self.address}")

    def elements(self, offsets: np.ndarray) -> np.ndarray:
        """The row-major index of the element at each distance from the first; -1 where there is none.

        Dividing by the largest stride first is exact for transposes, slices and steps. Where strides overlap,
        several elements have the same distance, and the result is one of them.
        """
        left = offsets.astype(np.int64)
        position = np.zeros_like(left)
        inside = np.ones(left.shape, bool)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] and self.shape[axis] > 1:
                # Where a smaller stride overlaps, the excess of this one is left to that one.
                index = np.minimum(left // self.strides[axis], self.shape[axis] - 1)
                left = left - index * self.strides[axis]
                inside &= index >= 0
                position += index * math.prod(self.shape[axis + 1 :])
        return np.where(inside & (left == 0), position, -1)
