"""A worker: it holds tensors and carries out instructions, and knows nothing else.

It computes with one engine (`gt.worker.engine`), which is loaded when the first instruction arrives.
Imports `gt.ops` and `gt.transport`, never the client or the dispatcher.
"""

from gt.worker.worker import Worker

__all__ = ["Worker"]
