"""The profiler: how much a kernel moves and computes, and what would make it faster."""

from triton_viz.clients.profiler.data import Report
from triton_viz.clients.profiler.devices import DEVICES, Device
from triton_viz.clients.profiler.profiler import Profiler

__all__ = ["DEVICES", "Device", "Profiler", "Report"]
