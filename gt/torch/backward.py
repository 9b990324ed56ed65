"""Backward passes run in the thread that asks for them.

PyTorch's autograd engine has a thread for each device that was there at the first backward pass of the
process. A device that comes later has none, and that pass would fail. In the caller's thread it works at any
time, needs no hand-over between threads, and instructions are attributed to the user's line.
"""

import functools
from typing import Any

import torch
from torch.autograd import graph

from gt.torch.buffers import is_on_device


def stay_in_thread() -> None:
    """Have backward passes that begin at tensors of the device run in the calling thread."""
    original = graph._engine_run_backward

    @functools.wraps(original)
    def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(map(is_on_device, outputs)):
            return original(outputs, *args, **kwargs)
        with torch.autograd.set_multithreading_enabled(False):
            return original(outputs, *args, **kwargs)

    graph._engine_run_backward = run
    torch.autograd._engine_run_backward = run  # type: ignore[attr-defined] - imported by name
