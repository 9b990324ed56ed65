"""The clients of triton_viz, one folder each. A folder registers its client (`core/client_registry.py`).

A new folder is found without a change here. Its class can be imported from here, which loads it on first use;
the imports below are for type checkers.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triton_viz.clients.profiler.profiler import Profiler
    from triton_viz.clients.race_detector.race_detector import RaceDetector
    from triton_viz.clients.sanitizer.sanitizer import Sanitizer
    from triton_viz.clients.tracer.tracer import Tracer

__all__ = ["Profiler", "RaceDetector", "Sanitizer", "Tracer"]

DEFAULT = "tracer"
"""The client of `trace()` if none is given."""

for _folder in pkgutil.iter_modules(__path__, f"{__name__}."):
    if _folder.ispkg:
        importlib.import_module(_folder.name)


def __getattr__(name: str) -> Any:
    from triton_viz.core.client_registry import registered_clients
    from triton_viz.core.lazy import load

    for entry in registered_clients().values():
        if entry.exports == name:
            return load(entry.client) if isinstance(entry.client, str) else entry.client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
