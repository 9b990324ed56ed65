"""The memory a kernel may touch: its arguments' storages. Maps raw addresses back to tensors."""

import numpy as np

from triton_viz.core.data import TensorInfo
from triton_viz.errors import AccessError


class Memory:
    """The tensors of one launch, sorted by address."""

    def __init__(self, tensors: list[TensorInfo]):
        self.tensors = sorted(tensors, key=lambda tensor: tensor.address)

    def locate(
        self, addresses: np.ndarray, mask: np.ndarray, width: int
    ) -> tuple[TensorInfo | None, np.ndarray]:
        """The tensor that holds these addresses, and the distance of each from its first element.

        An access is `width` bytes wide. Only addresses where the mask is true count; where none does, there
        is no tensor.
        """
        addresses = addresses.astype(np.int64)
        used = addresses[mask]
        if used.size == 0:
            return None, np.zeros(addresses.shape, np.int64)
        low, high = int(used.min()), int(used.max()) + width
        tensor = self._holding(low, high)
        if tensor is None:
            raise AccessError(self._explain(low, high, used, width))
        return tensor, (addresses - tensor.address) // tensor.itemsize

    def _holding(self, low: int, high: int) -> TensorInfo | None:
        """The tensor between whose first and last element all of this lies, or else whose storage does.

        Of several views of one storage it is the last that starts at or before the address. A kernel may
        reach past its view: what belongs to the same storage is its caller's to give.
        """
        for begin_and_end in (_elements, lambda tensor: tensor.storage):
            for tensor in reversed(self.tensors):
                begin, end = begin_and_end(tensor)
                if begin <= low and high <= end:
                    return tensor
        return None

    def _explain(self, low: int, high: int, used: np.ndarray, width: int) -> str:
        # Every address, not only the first and the last: what runs past one tensor may end in the next.
        reached = {
            tensor.name: (used >= tensor.storage[0]) & (used + width <= tensor.storage[1])
            for tensor in self.tensors
        }
        if reached and np.logical_or.reduce(list(reached.values())).all():
            names = " and ".join(sorted(name for name, held in reached.items() if held.any()))
            return (
                f"one op reaches into {names} at once, which cannot be traced: use one op for each. "
                "Is a mask missing?"
            )
        known = "; ".join(f"{t.name} is at {t.storage[0]:#x} to {t.storage[1]:#x}" for t in self.tensors)
        return (
            f"addresses {low:#x} to {high:#x} do not lie in the memory of one of its tensors "
            f"({known or 'it has none'}). Is a mask missing?"
        )


def _elements(tensor: TensorInfo) -> tuple[int, int]:
    """From the address of a tensor's first element to the end of its last."""
    if 0 in tensor.shape:
        return tensor.address, tensor.address
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True))
    return tensor.address, tensor.address + (last + 1) * tensor.itemsize
