"""A traced NKI kernel."""

from collections.abc import Sequence
from typing import Any

from triton_viz.core.client import Client
from triton_viz.core.trace import KernelTrace


class NKITrace(KernelTrace):
    """An NKI kernel that appends a `Launch` each time it runs."""

    def __init__(self, kernel: Any, clients: Sequence[Client], grid: Any = None):
        super().__init__(kernel, clients, "nki", grid)
