"""How an array travels: inside the message if it is small, through shared memory if both ends see the
same, and otherwise as raw bytes behind the message. Each is one copy at the most on each side.
"""

import functools
import mmap
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gt.errors import ProtocolError
from gt.ops.dtypes import ITEMSIZE
from gt.transport.protocol import MAX_ARRAY, ArrayData

SMALL = 1 << 14
"""Up to so many bytes an array travels inside its message."""

SHARED_MEMORY = Path("/dev/shm")
_NAME = re.compile(r"gt-\d+-[0-9a-f]{32}")


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype for one of ours; bfloat16 is an extension's."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


@functools.cache
def host() -> str:
    """Which shared memory this process sees: equal for two processes if they see the same, and else empty
    or different."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        place = SHARED_MEMORY.stat()
        return f"{boot}:{place.st_dev}:{place.st_ino}:{os.getuid()}"
    except OSError:
        return ""


def pack(array: np.ndarray, frames: list[memoryview], shared: bool) -> ArrayData:
    """An array, ready to travel; what goes behind the message is added to `frames`, and not copied."""
    shape, dtype = array.shape, array.dtype.name
    if array.nbytes <= SMALL:
        return ArrayData(shape, dtype, array.tobytes())
    if shared:
        try:
            return ArrayData(shape, dtype, shared=_share(array))
        except OSError:
            pass  # it is full, or not ours to write: the bytes go behind the message instead
    frames.append(memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
    return ArrayData(shape, dtype, len(frames) - 1)


def unpack(packed: ArrayData, frames: Sequence[bytes | memoryview]) -> np.ndarray:
    """The array; it may share the frame's memory, and is only as writable as that."""
    if packed.dtype not in ITEMSIZE:
        raise ProtocolError(f"no dtype is called {packed.dtype!r}")
    size = packed.nbytes
    if size > MAX_ARRAY or min(packed.shape, default=0) < 0:
        raise ProtocolError(f"an array of shape {list(packed.shape)} is out of bounds")
    buffer: bytearray | bytes | memoryview | mmap.mmap
    if packed.shared:
        buffer = _open(packed.shared, size)
    elif isinstance(packed.data, bytes):
        buffer = bytearray(packed.data)  # writable, which bytes are not
    elif 0 <= packed.data < len(frames):
        buffer = frames[packed.data]
    else:
        raise ProtocolError(f"the message has no bytes in place {packed.data}")
    if len(buffer) != size:
        raise ProtocolError(f"an array of {size} bytes came with {len(buffer)}")
    return np.frombuffer(buffer, numpy_dtype(packed.dtype)).reshape(packed.shape)


def discard(packed: ArrayData) -> None:
    """Give back the shared memory of an array that nobody will unpack."""
    if _NAME.fullmatch(packed.shared):
        (SHARED_MEMORY / packed.shared).unlink(missing_ok=True)


def sweep(pid: int) -> None:
    """Give back what a process that is gone left in shared memory."""
    for path in SHARED_MEMORY.glob(f"gt-{pid}-*"):
        path.unlink(missing_ok=True)


def _share(array: np.ndarray) -> str:
    """Write an array to new shared memory; the result is its name, which nobody can guess."""
    name = f"gt-{os.getpid()}-{secrets.token_hex(16)}"
    path = SHARED_MEMORY / name
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        # Written, not mapped: the kernel need not clear the pages first, and full memory is an error here
        # where a mapping would raise a signal.
        left = memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        while left:
            left = left[os.write(file, left) :]
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)
    return name


def _open(name: str, size: int) -> mmap.mmap:
    """The shared memory of this name, which is from now on this process's alone."""
    if not _NAME.fullmatch(name):
        raise ProtocolError(f"{name!r} is no shared memory of ours")
    path = SHARED_MEMORY / name
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError as error:
        raise ProtocolError(f"shared memory {name} cannot be read: {error.strerror}") from None
    try:
        if os.fstat(file).st_size != size:
            raise ProtocolError(f"shared memory {name} has {os.fstat(file).st_size} bytes, not {size}")
        return mmap.mmap(file, size)
    finally:
        os.close(file)
        path.unlink(missing_ok=True)
