"""The tracer: what ran, where, on which elements."""

from triton_viz.clients.tracer.tracer import Tracer

__all__ = ["Tracer"]
