"""The sanitizer: what a kernel touches, proved or checked."""

from triton_viz.clients.sanitizer.sanitizer import Sanitizer

__all__ = ["Sanitizer"]
