"""Shared memory: how arrays travel between two processes on one host, at the price of one copy.

The sender copies an array into a segment and sends the segment's name; the receiver uses the segment's memory
as it is. When nothing there refers to it any more, the name goes back to the sender with some later message,
and the segment is used again. That is what makes it fast: memory that has been touched before is ten times
faster to write to than memory the system still has to provide.
"""

import contextlib
import ctypes
import functools
import mmap
import os
import re
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gt.errors import ProtocolError

FOLDER = Path("/dev/shm")
KEPT_BYTES = 1 << 30
"""How much unused memory a process holds on to for the next array."""

_PREFIX = re.compile(r"gt-(\d+)-[0-9a-f]{16}-")
_NAME = re.compile(_PREFIX.pattern + "[0-9a-f]{32}")


@functools.cache
def host() -> str:
    """Which shared memory this process sees: two processes that say the same see the same. Empty if none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        place = FOLDER.stat()
        processes = Path("/proc/self/ns/pid").readlink()  # or a process id means nothing
        return f"{boot}:{place.st_dev}:{place.st_ino}:{os.getuid()}:{processes}"
    except OSError:
        return ""


class _Segment:
    """A piece of shared memory that this process made."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.receiver = ""
        self._memory: mmap.mmap | None = None

    @classmethod
    def filled(cls, prefix: str, data: memoryview) -> "_Segment":
        """A new segment with this data. Its name cannot be guessed."""
        name = prefix + os.urandom(16).hex()
        path = FOLDER / name
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            # Written, not mapped: the system need not clear the pages first, and full memory is an error
            # here, where a mapping would raise a signal.
            left = data
            while left:
                left = left[os.write(file, left) :]
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(file)
        return cls(name, len(data))

    def fill(self, array: np.ndarray) -> None:
        """Put other data into it."""
        if self._memory is None:
            self._memory = _map(self.name)
        np.copyto(np.frombuffer(self._memory, array.dtype, array.size).reshape(array.shape), array)

    def remove(self) -> None:
        """Give the memory back to the system, once the other side has let go of it too."""
        (FOLDER / self.name).unlink(missing_ok=True)
        if self._memory is not None:
            self._memory.close()


class SharedMemory:
    """One process's shared memory: the segments it made, and those of others that it uses."""

    def __init__(self) -> None:
        self.prefix = f"gt-{os.getpid()}-{os.urandom(8).hex()}-"
        """What the names of its segments begin with."""
        self._lock = threading.Lock()
        self._free: list[_Segment] = []
        self._lent: dict[str, _Segment] = {}
        self._mapped: dict[str, tuple[str, mmap.mmap]] = {}
        self._done_with: defaultdict[str, list[str]] = defaultdict(list)

    # --- as a sender ---

    def put(self, array: np.ndarray, receiver: str) -> str:
        """Copy an array into a segment; the result is its name."""
        size = array.nbytes
        with self._lock:  # two threads must not choose the same one
            fitting = [segment for segment in self._free if size <= segment.size <= 2 * size]
            segment = min(fitting, key=lambda one: one.size, default=None)
            if segment is not None:
                self._free.remove(segment)
        try:
            if segment is not None:
                segment.fill(array)
        except ProtocolError:
            segment = None  # it was removed; use another
        if segment is None:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            segment = _Segment.filled(self.prefix, data)
        segment.receiver = receiver
        self._lent[segment.name] = segment
        return segment.name

    def take_back(self, names: Iterable[str]) -> None:
        """The receiver is done with these."""
        with self._lock:
            self._free += [self._lent.pop(name) for name in names if name in self._lent]
            while sum(one.size for one in self._free) > KEPT_BYTES:
                self._free.pop(0).remove()

    def close(self) -> None:
        """Give everything back."""
        for segment in [*self._free, *self._lent.values()]:
            with contextlib.suppress(BufferError):  # still in use here; the name is gone all the same
                segment.remove()
        self._free.clear()
        self._lent.clear()

    # --- as a receiver ---

    def get(self, name: str, size: int, owner: str) -> memoryview:
        """The memory of this name. When nothing refers to it any more, `done_with(owner)` lists it."""
        if name not in self._mapped:
            self._forget_removed()
            self._mapped[name] = owner, _map(name)
        memory = self._mapped[name][1]
        if len(memory) < size:
            raise ProtocolError(f"shared memory {name} has {len(memory)} bytes, not {size}")
        # An object of its own for each use: its end is the end of the use.
        lease = (ctypes.c_ubyte * size).from_buffer(memory)
        weakref.finalize(lease, self._done_with[owner].append, name).atexit = False
        return memoryview(lease).cast("B")

    def owes(self, owner: str) -> int:
        """How many pieces have been used up and not been given back."""
        return len(self._done_with.get(owner, ()))

    def done_with(self, owner: str) -> list[str]:
        """What has been used up since the last call, to be given back to its owner."""
        names = self._done_with.get(owner)
        if not names:
            return []
        taken = names[:]
        del names[: len(taken)]
        return taken

    def forget(self, peer: str) -> None:
        """Release the segments shared with a peer that has left: its own, and those lent to it.

        It is not used again: an array that they read may live on in their program.
        """
        for name in [name for name, segment in list(self._lent.items()) if segment.receiver == peer]:
            self._lent.pop(name).remove()
        self._done_with.pop(peer, None)
        self._unmap(name for name, (owner, _) in list(self._mapped.items()) if owner == peer)

    def _forget_removed(self) -> None:
        """Let go of memory whose owner has given it back."""
        self._unmap([name for name in self._mapped if not (FOLDER / name).exists()])

    def _unmap(self, names: Iterable[str]) -> None:
        for name in names:
            _, memory = self._mapped.pop(name)
            with contextlib.suppress(BufferError):  # in use; it is closed when that ends
                memory.close()


def _map(name: str) -> mmap.mmap:
    if not _NAME.fullmatch(name):
        raise ProtocolError(f"{name!r} is no shared memory of ours")
    try:
        file = os.open(FOLDER / name, os.O_RDWR | os.O_NOFOLLOW)
    except OSError as error:
        raise ProtocolError(f"shared memory {name} cannot be read: {error.strerror}") from None
    try:
        return mmap.mmap(file, 0)
    except (OSError, ValueError) as error:
        raise ProtocolError(f"shared memory {name} cannot be read: {error}") from None
    finally:
        os.close(file)


def sweep(prefix: str) -> bool:
    """Give back what a process left behind, if it is gone; the result is whether it is."""
    match = _PREFIX.fullmatch(prefix)
    if match and alive(int(match[1])):
        return False
    if match:
        for path in FOLDER.glob(f"{prefix}*"):
            path.unlink(missing_ok=True)
    return True


def sweep_all() -> None:
    """Give back what any process that is gone left behind."""
    for path in FOLDER.glob("gt-*-*"):
        match = _NAME.fullmatch(path.name)
        if match and not alive(int(match[1])):
            with contextlib.suppress(OSError):  # of another user
                path.unlink(missing_ok=True)


def alive(pid: int) -> bool:
    """Whether a process of this host runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
