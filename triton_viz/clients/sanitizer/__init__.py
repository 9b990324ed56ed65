"""The sanitizer: proves, or checks while the kernel runs, that every access is in bounds."""

from typing import TYPE_CHECKING

from triton_viz.core.client_registry import register_client
from triton_viz.core.lazy import lazy_exports

if TYPE_CHECKING:
    from triton_viz.clients.sanitizer.sanitizer import Sanitizer

__all__ = ["Sanitizer"]
__getattr__ = lazy_exports(__name__, "triton_viz.clients.sanitizer.sanitizer:Sanitizer")

register_client(
    "sanitizer",
    "triton_viz.clients.sanitizer.sanitizer:Sanitizer",
    command="triton_viz.clients.sanitizer.sanitizer_command:main",
    records=["triton_viz.clients.sanitizer.verdict:Verdict"],
)
