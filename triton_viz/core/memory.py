"""The memory a kernel may touch: its arguments' tensors. Maps raw addresses back to them."""

import numpy as np

from triton_viz.core.data import TensorInfo
from triton_viz.errors import AccessError


class Memory:
    """The tensors of one launch, sorted by address."""

    def __init__(self, tensors: list[TensorInfo]):
        self.tensors = sorted(tensors, key=lambda tensor: tensor.address)
        self._starts = np.array([tensor.address for tensor in self.tensors], np.int64)
        self._ends = np.array([tensor.address + _extent(tensor) for tensor in self.tensors], np.int64)

    def locate(self, addresses: np.ndarray, mask: np.ndarray) -> tuple[TensorInfo | None, np.ndarray]:
        """The tensor that holds these addresses, and the distance of each from its first element.

        Only addresses where the mask is true count; where none does, there is no tensor.
        """
        addresses = addresses.astype(np.int64)
        used = addresses[mask]
        if used.size == 0:
            return None, np.zeros(addresses.shape, np.int64)
        low, high = int(used.min()), int(used.max())
        # The last tensor that starts at or before the lowest address, and reaches past the highest.
        for position in range(int(np.searchsorted(self._starts, low, side="right")) - 1, -1, -1):
            if high < self._ends[position]:
                tensor = self.tensors[position]
                return tensor, (addresses - tensor.address) // tensor.itemsize
        raise AccessError(self._explain(low, high))

    def _explain(self, low: int, high: int) -> str:
        known = "; ".join(
            f"{tensor.name} is {tensor.address:#x} to {end:#x}"
            for tensor, end in zip(self.tensors, self._ends, strict=True)
        )
        return (
            f"addresses {low:#x} to {high:#x} do not lie in one of the kernel's tensors "
            f"({known or 'it has none'}). Is a mask missing?"
        )


def _extent(tensor: TensorInfo) -> int:
    """The bytes from a tensor's first element to the end of its last."""
    if 0 in tensor.shape:
        return 0
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True))
    return (last + 1) * tensor.itemsize
