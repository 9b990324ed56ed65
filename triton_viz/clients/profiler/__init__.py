"""The profiler: counts the memory traffic and arithmetic of a kernel, and suggests changes."""

from typing import TYPE_CHECKING

from triton_viz.core.client_registry import register_client
from triton_viz.core.lazy import lazy_exports

if TYPE_CHECKING:
    from triton_viz.clients.profiler.devices import DEVICES, Device
    from triton_viz.clients.profiler.kernel_profile import Report
    from triton_viz.clients.profiler.profiler import Profiler

__all__ = ["DEVICES", "Device", "Profiler", "Report"]
__getattr__ = lazy_exports(
    __name__,
    "triton_viz.clients.profiler.kernel_profile:Report",
    "triton_viz.clients.profiler.devices:DEVICES",
    "triton_viz.clients.profiler.devices:Device",
    "triton_viz.clients.profiler.profiler:Profiler",
)

register_client(
    "profiler",
    "triton_viz.clients.profiler.profiler:Profiler",
    command="triton_viz.clients.profiler.profiler_command:main",
    records=[
        "triton_viz.clients.profiler.kernel_profile:Advice",
        "triton_viz.clients.profiler.kernel_profile:KernelProfile",
        "triton_viz.clients.profiler.kernel_profile:SiteProfile",
    ],
)
