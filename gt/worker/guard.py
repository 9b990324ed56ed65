"""What a worker may take when nobody has said: its share of what the machine has left.

The operating system would let it have more than there is, and end it, or something else, when it uses that.
So the worker asks the system to refuse instead: an op whose result is too large fails, and all else goes on.
That costs an op nothing. Shortly before the limit, where many small tensors could leave no room for the
worker's own needs, ops are looked at one by one.
"""

import contextlib
import time

from gt.worker import machine
from gt.worker.memory import Limit

try:
    import resource
except ImportError:  # not on every system
    resource = None

ASK_SECONDS = 1.0
"""How often the machine is asked what it has."""

LOOK_SECONDS = 0.005
"""How often the worker looks at what it uses itself."""

RESERVE = (1 << 26, 1 << 29)
"""What is kept for the worker's own needs, at least and at most; between them, a sixteenth."""


class Guard:
    """Keeps a worker within its share of the machine's memory."""

    def __init__(self) -> None:
        self.workers = 1
        """How many workers share the machine, as far as is known."""
        self.limit = 0
        """How many bytes this process may have; 0 if that is not known."""
        self._asked = self._looked = 0.0
        self._found: Limit | None = None
        self._hardest = machine.UNLIMITED
        if resource is not None:
            most = resource.getrlimit(resource.RLIMIT_DATA)[1]
            self._hardest = machine.UNLIMITED if most == resource.RLIM_INFINITY else most

    def share_with(self, workers: int) -> None:
        """So many workers are on this machine now."""
        self.workers = max(1, workers)
        self._asked = 0.0

    def near(self) -> Limit | None:
        """None while there is plenty; else the limit that each op is held to."""
        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS:
            self._looked = now
            if now - self._asked > ASK_SECONDS:
                self._asked = now
                self._ask()
            self._found = self._look()
        return self._found

    def _ask(self) -> None:
        """Share what the machine has left among its workers, and have the system refuse the rest."""
        machine.give_back()
        room, own = machine.available(), machine.own()
        if not room or not own or resource is None:
            return
        self.limit = min(own + room // self.workers, self._hardest)
        hard = resource.RLIM_INFINITY if self._hardest == machine.UNLIMITED else self._hardest
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (self.limit, hard))

    def _look(self) -> Limit | None:
        least, most = RESERVE
        allowed = self.limit - min(max(least, self.limit // 16), most)
        if not self.limit or machine.own() < allowed:
            return None
        used = machine.in_use()
        if used < allowed:
            return None
        return _Near(allowed, used)


class _Near(Limit):
    """A limit that is nearly reached. What was freed meanwhile counts before anything is refused."""

    def check(self, nbytes: int) -> None:
        """Raise if so much more would not fit."""
        if self.used + nbytes > self.nbytes:
            self.used = machine.in_use()
        super().check(nbytes)
        self.used += nbytes
