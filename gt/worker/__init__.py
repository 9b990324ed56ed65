"""A worker: it holds the tensors of clients and executes instructions on them.

It computes with one engine (`gt.worker.engine`), which is loaded when the first instruction arrives. Imports
`gt.ops`, `gt.stream` and `gt.transport`, never the client or the dispatcher.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gt.worker.worker import Worker

__all__ = ["Worker"]


def __getattr__(name: str) -> Any:
    """Import Worker on first use: a program that connects to a server needs none."""
    if name == "Worker":
        from gt.worker.worker import Worker

        return Worker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
