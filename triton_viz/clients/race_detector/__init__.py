"""The race detector: two programs touch one element, one of them writes, and nothing orders them."""

from triton_viz.clients.race_detector.race_detector import RaceDetector

__all__ = ["RaceDetector"]
