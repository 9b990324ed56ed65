"""A cache of computed payloads, cleared by a new launch and bounded in size."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import msgspec
import numpy as np

T = TypeVar("T")
ROOM = 512 << 20
"""The most bytes of arrays and answers in the cache. The newest entry is always kept."""
_SMALL = 1 << 12


class Cache:
    """A least-recently-used cache. If two threads request the same key, it is computed once."""

    def __init__(self, room: int = ROOM):
        self._room = room
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._being_made: dict[Hashable, threading.Lock] = {}
        self._cleared = 0

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, computed if it is not in the cache."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
            making = self._being_made.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._entries:
                    return self._entries[key][0]
                cleared = self._cleared
            try:
                value = make()
            finally:
                with self._lock:
                    self._being_made.pop(key, None)
            with self._lock:
                if self._cleared != cleared:  # it was computed from launches that have been replaced
                    return value
                self._entries[key] = value, _size(value)
                while len(self._entries) > 1 and sum(size for _, size in self._entries.values()) > self._room:
                    self._entries.popitem(last=False)
        return value

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._cleared += 1


def _size(value: Any) -> int:
    """The approximate size of a value in bytes: that of its arrays and answers, the rest is small."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, msgspec.Raw):
        return len(memoryview(value))
    if isinstance(value, tuple):
        return sum(map(_size, value))
    return _SMALL
