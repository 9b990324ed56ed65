"""The memory of this machine, or of the control group that this process is in, in bytes.

psutil reports the memory of the machine and the process. It does not report the limits of control groups,
which containers have, nor the allocator's statistics: these are read from /sys/fs/cgroup and from glibc.
"""

import ctypes
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

CONTROL_GROUPS = Path("/sys/fs/cgroup")
TRIM_BYTES = 1 << 28
"""Freed memory is given back to the system if it is more than this."""
MMAP_BYTES = 1 << 25
"""Larger allocations come from the system directly, and go back to it when freed."""

UNLIMITED = 1 << 60
"""A limit above this means no limit."""


def total() -> int:
    """The machine's memory, or the lowest limit of this process's control groups."""
    return min([psutil.virtual_memory().total, *(limit for limit, _ in _groups())])


def available() -> int:
    """How much more memory can be used before the system ends processes."""
    return min([psutil.virtual_memory().available, *(max(limit - used, 1) for limit, used in _groups())])


def own() -> int:
    """How much private memory this process has allocated; 0 where psutil does not support it (not on
    Linux)."""
    return getattr(psutil.Process().memory_info(), "data", 0)


def in_use() -> int:
    """How much of its private memory this process uses; the rest is free memory of its allocator."""
    library = _c_library()
    if library is None:
        return own()
    info, allocated = library.mallinfo2(), own()
    return min(allocated, allocated - info.arena + info.uordblks)


def keep_memory() -> None:
    """Let the allocator keep freed memory, because each step of a loop allocates the same again.

    The system clears each page that it gives out, which took a tenth of a training step. All threads share
    one arena, so that one can use memory that another has freed.
    """
    library = _c_library()
    if library is not None:
        for what, value in ((_TRIM_THRESHOLD, TRIM_BYTES), (_MMAP_THRESHOLD, MMAP_BYTES), (_ARENA_MAX, 1)):
            library.mallopt(what, value)


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The constants of malloc.h."""


def give_back() -> None:
    """Give free memory of the allocator back to the system, if it is more than `TRIM_BYTES`."""
    library = _c_library()
    if library is not None and library.mallinfo2().fordblks > TRIM_BYTES:
        library.malloc_trim(0)


class _MallInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks")
        + ("fordblks", "keepcost")
    ]


@functools.cache
def _c_library() -> Any:
    try:
        library = ctypes.CDLL(None)
        library.mallinfo2.restype = _MallInfo
        library.mallopt.restype = ctypes.c_int
    except (OSError, AttributeError):
        return None
    return library


@functools.cache
def _folders() -> list[tuple[Path, str, str]]:
    """The folders of this process's control groups, each with the names of its limit and usage files."""
    found = []
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = ("memory.max", "memory.current")
        root = CONTROL_GROUPS
        if "memory" in controllers.split(","):
            root, names = CONTROL_GROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        elif controllers:
            continue
        place = root / path.lstrip("/")
        # A container may see its own group as the root, regardless of the path.
        for folder in (place, *place.parents):
            if (folder / names[0]).exists():
                found.append((folder, *names))
            if folder == root:
                break
    return found


def _groups() -> Iterator[tuple[int, int]]:
    """The limit of each control group, and its usage without cached files, which can be reclaimed."""
    for folder, limit, usage in _folders():
        try:
            most = (folder / limit).read_text().strip()
            if most == "max" or int(most) > UNLIMITED:
                continue
            used = int((folder / usage).read_text())
            statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        files = int(statistics.get("inactive_file", statistics.get("total_inactive_file", 0)))
        yield int(most), max(0, used - files)
