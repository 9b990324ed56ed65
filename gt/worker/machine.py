"""How much memory this machine has, and how much of that is left; or its control group, if it is in one."""

import ctypes
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GROUPS = Path("/sys/fs/cgroup")
MUCH = 1 << 28
LARGE = 1 << 25

UNLIMITED = 1 << 60
"""What is larger stands for no limit."""


def total() -> int:
    """How many bytes of memory there are for this process and its like; 0 if nobody says."""
    limits = [_meminfo("MemTotal"), *(limit for limit, _ in _groups())]
    return min((limit for limit in limits if limit), default=0)


def available() -> int:
    """How many more bytes could be used before something is ended for want of memory; 0 if nobody says."""
    rooms = [_meminfo("MemAvailable"), *(max(limit - used, 1) for limit, used in _groups())]
    return min((room for room in rooms if room), default=0)


def own() -> int:
    """How many bytes this process has asked the system for; 0 if nobody says."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)  # asked often: a Path would take ten times as long
    except OSError:
        return 0
    try:
        return int(os.read(file, 256).split()[5]) * os.sysconf("SC_PAGE_SIZE")
    finally:
        os.close(file)


def in_use() -> int:
    """How many of its own bytes this process uses; others it has, and could use without asking."""
    library = _c_library()
    if library is None:
        return own()
    found, asked = library.mallinfo2(), own()
    return min(asked, asked - found.arena + found.uordblks)


def keep_memory() -> None:
    """Keep what is freed for what comes next: each step of a loop would ask the system for the same again.

    The system gives memory page by page, and wipes each: of a training step that was a tenth. And all threads
    share what is free, so that one can use what another has freed.
    """
    library = _c_library()
    if library is not None:
        for what, value in ((_TRIM_THRESHOLD, MUCH), (_MMAP_THRESHOLD, LARGE), (_ARENA_MAX, 1)):
            library.mallopt(what, value)


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""As malloc.h has them. Pieces that are larger than it allows for come from the system in any case."""


def give_back() -> None:
    """Give memory that this process has and does not use back to the system, if it is much."""
    library = _c_library()
    if library is not None and library.mallinfo2().fordblks > MUCH:
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


def _meminfo(name: str) -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


@functools.cache
def _folders() -> list[tuple[Path, str, str]]:
    """Where the limits of this process's control groups are: folder, and the names of limit and usage."""
    found = []
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = ("memory.max", "memory.current")
        root = GROUPS
        if "memory" in controllers.split(","):
            root, names = GROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        elif controllers:
            continue
        place = root / path.lstrip("/")
        # A container may see its own group as the root, whatever the path says.
        for folder in (place, *place.parents):
            if (folder / names[0]).exists():
                found.append((folder, *names))
            if folder == root:
                break
    return found


def _groups() -> Iterator[tuple[int, int]]:
    """The limit of each control group, and what of it is used and cannot be had back."""
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
