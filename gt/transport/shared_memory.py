"""Shared memory: arrays are passed between two processes on one host, with one copy.

The sender copies an array into a segment and sends the segment's name; the receiver maps the segment and
reads the array in place. When nothing in the receiver refers to it any more, the name goes back to the sender
with a later message, and the sender reuses the segment: writing to pages that were written before is about
ten times as fast as writing to new ones, which the system has to allocate and clear.
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
"""The number of bytes of unused segments that a process keeps for reuse."""

_OWNER_PREFIX = re.compile(r"gt-(\d{1,9})-[0-9a-f]{16}-")  # a process id
_SEGMENT_NAME = re.compile(_OWNER_PREFIX.pattern + "[0-9a-f]{32}")


@functools.cache
def host() -> str:
    """An id of the shared memory that this process can use, equal for processes that share it.

    Empty if there is none.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        place = FOLDER.stat()
        processes = Path("/proc/self/ns/pid").readlink()  # in another namespace, process ids differ
        return f"{boot}:{place.st_dev}:{place.st_ino}:{os.getuid()}:{processes}"
    except OSError:
        return ""


class _Segment:
    """A file in shared memory that this process created."""

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
            # Written, not mapped: the system need not clear the pages first, and if memory is exhausted,
            # `write` fails, where a mapping would raise a signal.
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
        """Overwrite it with another array."""
        if self._memory is None:
            self._memory = _map(self.name)
        np.copyto(np.frombuffer(self._memory, array.dtype, array.size).reshape(array.shape), array)

    def remove(self) -> None:
        """Unlink the file. Its memory is freed when the other side has unmapped it, too."""
        (FOLDER / self.name).unlink(missing_ok=True)
        if self._memory is not None:
            self._memory.close()


class SharedMemory:
    """One process's shared memory: the segments it created, and those of other processes that it has
    mapped."""

    def __init__(self) -> None:
        self.prefix = f"gt-{os.getpid()}-{os.urandom(8).hex()}-"
        """The prefix of its segments' names."""
        self._lock = threading.Lock()
        self._free: list[_Segment] = []
        """Its segments that can be reused."""
        self._in_use: dict[str, _Segment] = {}
        """Its segments that a receiver uses, by name."""
        self._mapped: dict[str, tuple[str, mmap.mmap]] = {}
        """By name: the owner of another process's segment, and the mapping."""
        self._released: defaultdict[str, list[str]] = defaultdict(list)
        """By owner: the segments that are not used here any more, and not reported to the owner yet."""

    # --- as a sender ---

    def put(self, array: np.ndarray, receiver: str) -> str:
        """Copy an array into a segment; the result is its name."""
        size = array.nbytes
        with self._lock:  # two threads must not choose the same segment
            fitting = [segment for segment in self._free if size <= segment.size <= 2 * size]
            segment = min(fitting, key=lambda one: one.size, default=None)
            if segment is not None:
                self._free.remove(segment)
        try:
            if segment is not None:
                segment.fill(array)
        except ProtocolError:
            segment = None  # its file was removed
        if segment is None:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            segment = _Segment.filled(self.prefix, data)
        segment.receiver = receiver
        self._in_use[segment.name] = segment
        return segment.name

    def reclaim(self, names: Iterable[str]) -> None:
        """Reuse segments that the receiver has released."""
        with self._lock:
            self._free += [self._in_use.pop(name) for name in names if name in self._in_use]
            while sum(one.size for one in self._free) > KEPT_BYTES:
                self._free.pop(0).remove()

    def close(self) -> None:
        """Remove all segments."""
        for segment in [*self._free, *self._in_use.values()]:
            with contextlib.suppress(BufferError):  # still in use here, but the file is unlinked
                segment.remove()
        self._free.clear()
        self._in_use.clear()

    # --- as a receiver ---

    def get(self, name: str, size: int, owner: str) -> memoryview:
        """The memory of a segment. When nothing refers to it any more, `take_released(owner)` returns its
        name."""
        if name not in self._mapped:
            self._forget_removed()
            self._mapped[name] = owner, _map(name)
        memory = self._mapped[name][1]
        if len(memory) < size:
            raise ProtocolError(f"shared memory {name} has {len(memory)} bytes, not {size}")
        # A new object for each use, whose finalizer reports the end of the use.
        use = (ctypes.c_ubyte * size).from_buffer(memory)
        weakref.finalize(use, self._released[owner].append, name).atexit = False
        return memoryview(use).cast("B")

    def count_released(self, owner: str) -> int:
        """The number of released segments that have not been reported to their owner."""
        return len(self._released.get(owner, ()))

    def take_released(self, owner: str) -> list[str]:
        """The names of the segments that were released since the last call, to be sent to their owner."""
        names = self._released.get(owner)
        if not names:
            return []
        taken = names[:]
        del names[: len(taken)]
        return taken

    def forget(self, peer: str) -> None:
        """Drop the segments shared with a peer that has left: its own, and those that it used.

        The latter are not reused: the peer's program may still have an array in them.
        """
        for name in [name for name, segment in list(self._in_use.items()) if segment.receiver == peer]:
            self._in_use.pop(name).remove()
        self._released.pop(peer, None)
        self._unmap(name for name, (owner, _) in list(self._mapped.items()) if owner == peer)

    def _forget_removed(self) -> None:
        """Unmap segments whose owner has removed them."""
        self._unmap([name for name in self._mapped if not (FOLDER / name).exists()])

    def _unmap(self, names: Iterable[str]) -> None:
        for name in names:
            _, memory = self._mapped.pop(name)
            with contextlib.suppress(BufferError):  # in use: unmapped with the last reference
                memory.close()


def _map(name: str) -> mmap.mmap:
    if not _SEGMENT_NAME.fullmatch(name):
        raise ProtocolError(f"{name!r} is not the name of a segment of gt")
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
    """Remove the segments of a process that has ended; returns whether it has."""
    match = _OWNER_PREFIX.fullmatch(prefix)
    if match and alive(int(match[1])):
        return False
    if match:
        for path in FOLDER.glob(f"{prefix}*"):
            path.unlink(missing_ok=True)
    return True


def sweep_all() -> None:
    """Remove the segments of all processes that have ended."""
    for path in FOLDER.glob("gt-*-*"):
        match = _SEGMENT_NAME.fullmatch(path.name)
        if match and not alive(int(match[1])):
            with contextlib.suppress(OSError):  # of another user
                path.unlink(missing_ok=True)


def alive(pid: int) -> bool:
    """Whether a process of this host runs. One that its parent has not waited for yet has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return not Path("/proc/self").exists()  # it has just ended, unless there is no /proc
    return state not in (b"Z", b"X")
