"""Triton-Viz: run Triton (and NKI) kernels on any CPU, and see which elements they access.

    import triton_viz

    @triton_viz.trace("tracer")
    @triton.jit
    def kernel(...): ...

    kernel[grid](...)        # runs on the CPU, no GPU needed
    triton_viz.launch()      # opens a page that shows the launch

`trace` wraps a kernel; each run appends to `launches`. `save` and `load` keep a trace in one file.
This module is the public API, and nothing else; it never imports gt. Clients, NKI, and the page with its
server are imported when they are first used.
"""

from typing import TYPE_CHECKING

from triton_viz import errors
from triton_viz.core.client import Client, ForLoopCallbacks, OpCallbacks
from triton_viz.core.client_registry import register_client
from triton_viz.core.config import cfg as config
from triton_viz.core.lazy import lazy_exports
from triton_viz.core.trace import clear, launches, load, save, trace

if TYPE_CHECKING:
    from triton_viz.visualizer.interface import launch

__getattr__ = lazy_exports(__name__, "triton_viz.visualizer.interface:launch")

__all__ = [
    "Client",
    "ForLoopCallbacks",
    "OpCallbacks",
    "clear",
    "config",
    "errors",
    "launch",
    "launches",
    "load",
    "register_client",
    "save",
    "trace",
]
