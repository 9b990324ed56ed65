"""The clients that come with triton_viz, one folder each."""

from triton_viz.clients.profiler import Profiler
from triton_viz.clients.race_detector import RaceDetector
from triton_viz.clients.sanitizer import Sanitizer
from triton_viz.clients.tracer import Tracer

__all__ = ["Profiler", "RaceDetector", "Sanitizer", "Tracer"]
