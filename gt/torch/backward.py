"""Backward passes run in the calling thread.

PyTorch's autograd engine starts a thread for each device that exists at the first backward pass of the
process. A device that is registered later has none, and its backward passes would fail. In the caller's
thread they work at any time, do not switch threads, and instructions are attributed to the user's line.
"""

import functools
from typing import Any

import torch
from torch.autograd import graph

from gt.torch.buffers import DEVICE
from gt.torch.scopes import backward_pass


def _is_elsewhere(output: Any) -> bool:
    """Whether a tensor is on a third device, from which a backward pass does not reach this one."""
    return isinstance(output, torch.Tensor) and output.device.type not in (DEVICE.type, "cpu")


def patch_backward() -> None:
    """Make backward passes that may reach tensors of the device run in the calling thread."""
    original = graph._engine_run_backward

    @functools.wraps(original)
    def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if all(map(_is_elsewhere, outputs)):
            return original(outputs, *args, **kwargs)
        with torch.autograd.set_multithreading_enabled(False):
            return backward_pass(original, outputs, *args, **kwargs)

    graph._engine_run_backward = run
    torch.autograd._engine_run_backward = run  # type: ignore[attr-defined] - imported by name
