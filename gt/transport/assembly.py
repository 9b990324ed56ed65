"""Replies to a client's requests: parts are assembled, and abandoned replies are dropped."""

from typing import Any

import numpy as np

from gt.transport.protocol import Fetched


class Assembly:
    """Incomplete replies, by request: every part is copied into one array as it arrives."""

    def __init__(self) -> None:
        self._arrays: dict[int, np.ndarray] = {}
        self._missing: dict[int, int] = {}
        self._errors: dict[int, str] = {}

    def add(self, reply: Fetched, keep: bool = True) -> Fetched | None:
        """Add a part of a reply; returns the reply once it is complete. Unless `keep`, drops the data."""
        request, array, error, part = reply
        if part is None:
            return reply
        missing = self._missing.get(request, part.count) - 1
        self._missing[request] = missing
        if error is not None or array is None:
            self._errors.setdefault(request, error or "there is no data")
        elif keep:
            whole = self._arrays.get(request)
            if whole is None:
                whole = self._arrays[request] = np.empty(part.whole, array.dtype)
            whole[part.slices] = array
        if missing:
            return None
        del self._missing[request]
        result, failed = self._arrays.pop(request, None), self._errors.pop(request, None)
        return Fetched(request, result if failed is None else None, failed)

    def drop_data(self, request: int) -> None:
        """Drop the parts of a reply that have arrived."""
        self._arrays.pop(request, None)


class Replies:
    """A client's replies, by request, until they are taken.

    A caller that stops waiting, because of Ctrl-C or a timeout, abandons its request. If the reply arrives
    later, it is dropped, together with its shared memory.
    """

    def __init__(self) -> None:
        self._here: dict[int, Any] = {}
        self._assembly = Assembly()
        self.abandoned: set[int] = set()
        """Abandoned requests whose replies have not arrived."""

    def __contains__(self, request: int) -> bool:
        return request in self._here

    def __len__(self) -> int:
        return len(self._here)

    def add_data(self, reply: Fetched) -> None:
        """Add a reply to a read, or a part of one."""
        whole = self._assembly.add(reply, keep=reply.request not in self.abandoned)
        if whole is not None:
            self.add(reply.request, whole)

    def add(self, request: int, reply: Any) -> None:
        """Add a complete reply."""
        self._here[request] = reply
        # `abandon` has the opposite order, so of two threads one drops the reply.
        if request in self.abandoned:
            self._here.pop(request, None)
            self.abandoned.discard(request)

    def take(self, request: int) -> Any:
        """Remove and return a complete reply; None if it has not arrived."""
        return self._here.pop(request, None)

    def abandon(self, request: int) -> None:
        """Drop the reply to a request when it arrives."""
        self.abandoned.add(request)
        self._assembly.drop_data(request)
        if self._here.pop(request, None) is not None:
            self.abandoned.discard(request)
