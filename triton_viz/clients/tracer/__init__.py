"""The tracer: records the ops of each program and the elements that they access."""

from typing import TYPE_CHECKING

from triton_viz.core.client_registry import register_client
from triton_viz.core.lazy import lazy_exports

if TYPE_CHECKING:
    from triton_viz.clients.tracer.tracer import Tracer

__all__ = ["Tracer"]
__getattr__ = lazy_exports(__name__, "triton_viz.clients.tracer.tracer:Tracer")

register_client("tracer", "triton_viz.clients.tracer.tracer:Tracer")
