"""The memory guard: keeps a worker without a --memory limit within its share of the machine's free memory.

The operating system lets processes allocate more memory than there is, and kills one of them when it is used.
The guard sets a resource limit instead, so that an op whose result is too large fails, and everything else
continues. That has no cost per op. Close to the limit, where many small tensors could leave too little for
the worker itself, the memory of each op is checked.
"""

import contextlib
import time

from gt.worker.limits import machine
from gt.worker.limits.memory import Limit

try:
    import resource
except ImportError:  # not on every system
    resource = None

LIMIT_SECONDS = 1.0
"""How often the machine's free memory is read, and the limit is set."""

MEMORY_POLL_SECONDS = 0.005
"""How often the worker's own memory is read."""

RESERVE = (1 << 26, 1 << 29)
"""Bytes kept for the worker's own needs, at least and at most; between them, a sixteenth of the limit."""


class Guard:
    """Keeps a worker within its share of the machine's memory."""

    def __init__(self) -> None:
        self.workers = 1
        """How many workers share the machine."""
        self.limit = 0
        """How many bytes this process may allocate; 0 if unknown."""
        self._limit_set = self._polled = 0.0
        self._found: Limit | None = None
        self._hardest = machine.UNLIMITED
        if resource is not None:
            most = resource.getrlimit(resource.RLIMIT_DATA)[1]
            self._hardest = machine.UNLIMITED if most == resource.RLIM_INFINITY else most

    def share_with(self, workers: int) -> None:
        """Set how many workers are on this machine."""
        self.workers = max(1, workers)
        self._limit_set = 0.0

    def near(self) -> Limit | None:
        """The limit that each op must be checked against, if it is nearly reached; else None."""
        now = time.monotonic()
        if now - self._polled > MEMORY_POLL_SECONDS:
            self._polled = now
            if now - self._limit_set > LIMIT_SECONDS:
                self._limit_set = now
                self._set_limit()
            self._found = self._poll()
        return self._found

    def _set_limit(self) -> None:
        """Set the resource limit to an equal share of the machine's free memory."""
        machine.give_back()
        room, own = machine.available(), machine.own()
        if not room or not own or resource is None:
            return
        self.limit = min(own + room // self.workers, self._hardest)
        hard = resource.RLIM_INFINITY if self._hardest == machine.UNLIMITED else self._hardest
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (self.limit, hard))

    def _poll(self) -> Limit | None:
        least, most = RESERVE
        allowed = self.limit - min(max(least, self.limit // 16), most)
        if not self.limit or machine.own() < allowed:
            return None
        used = machine.in_use()
        if used < allowed:
            return None
        return _Near(allowed, used)


class _Near(Limit):
    """A limit that is nearly reached. Before it refuses an op, it reads how much memory has been freed."""

    def check(self, nbytes: int) -> None:
        """Raise MemoryError if this many more bytes would exceed the limit."""
        if self.used + nbytes > self.nbytes:
            self.used = machine.in_use()
        super().check(nbytes)
        self.used += nbytes
