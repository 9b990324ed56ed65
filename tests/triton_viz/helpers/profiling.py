"""Profiling one launch, and selecting parts of its report."""

from typing import Any

import triton_viz
from triton_viz.clients import Profiler
from triton_viz.clients.profiler.kernel_profile import Finding, KernelReport, SiteTraffic


def profiled(
    kernel: Any, grid: tuple[int, ...], *args: Any, profiler: Profiler | None = None, **constants: Any
):
    """The report of one launch."""
    profiler = profiler or Profiler()
    triton_viz.trace(profiler)(kernel)[grid](*args, **constants)
    return profiler.report().launches[-1]


def site(report: KernelReport, tensor: str, kind: str = "load") -> SiteTraffic:
    (found,) = [one for one in report.sites if (one.tensor, one.kind) == (tensor, kind)]
    return found


def finding(report: KernelReport, kind: str, tensor: str = "") -> Finding:
    return next(f for f in report.findings if f.kind == kind and (not tensor or f.tensor == tensor))


def kinds(report: KernelReport) -> set[str]:
    return {found.kind for found in report.findings}
