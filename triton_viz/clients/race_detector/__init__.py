"""The race detector: finds unordered accesses of two programs to one element, of which one writes."""

from typing import TYPE_CHECKING

from triton_viz.core.client_registry import register_client
from triton_viz.core.lazy import lazy_exports

if TYPE_CHECKING:
    from triton_viz.clients.race_detector.race_detector import RaceDetector

__all__ = ["RaceDetector"]
__getattr__ = lazy_exports(__name__, "triton_viz.clients.race_detector.race_detector:RaceDetector")

register_client(
    "race_detector",
    "triton_viz.clients.race_detector.race_detector:RaceDetector",
    command="triton_viz.clients.race_detector.race_detector_command:main",
)
