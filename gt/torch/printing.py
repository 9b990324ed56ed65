"""`print(tensor)`: to format a tensor, PyTorch computes on it and reads single elements, from a worker.

Here what is shown is fetched once, and formatted in the program.
"""

import functools
from typing import Any

import torch
from torch import _tensor_str

from gt.torch.buffers import is_on_device


def patch_printing() -> None:
    """Have PyTorch format copies of the device's tensors."""
    _tensor_str._tensor_str = _formatting(_tensor_str._tensor_str)


def _formatting(own: Any) -> Any:
    @functools.wraps(own)
    def call(self: torch.Tensor, indent: int) -> str:
        if not is_on_device(self):
            return own(self, indent)
        options = _tensor_str.PRINT_OPTS
        if self.numel() <= options.threshold:
            return own(self.cpu(), indent)
        edge = int(options.edgeitems)
        for dim, n in enumerate(self.shape):
            if n > 2 * edge + 1:  # as many as are shown, and one more: then "..." is, too
                self = torch.cat((self.narrow(dim, 0, edge + 1), self.narrow(dim, n - edge, edge)), dim)
        with _tensor_str.printoptions(threshold=0):
            return own(self.cpu(), indent)

    return call
