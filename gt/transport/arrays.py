"""Arrays in messages: inside of the message if small, in shared memory if both ends are on one host, and
otherwise as bytes behind the message."""

from collections.abc import Sequence

import numpy as np

from gt.errors import ProtocolError
from gt.ops.dtypes import ITEMSIZE
from gt.stream.instructions import ArrayData
from gt.transport.shared_memory import SharedMemory

MAX_INLINE_BYTES = 1 << 16
"""Up to this size an array is sent inside of its message."""


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype for one of ours; bfloat16 and 8-bit floats are an extension's."""
    if name == "bfloat16" or name.startswith("float8"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def pack(
    array: np.ndarray, frames: list[memoryview], memory: SharedMemory | None, receiver: str
) -> ArrayData:
    """Encode an array. Bytes that go behind the message are appended to `frames`, uncopied."""
    shape, dtype = array.shape, array.dtype.name
    if array.nbytes <= MAX_INLINE_BYTES:
        return ArrayData(shape, dtype, array.tobytes())
    if memory is not None:
        try:
            return ArrayData(shape, dtype, shared=memory.put(array, receiver))
        except OSError:
            pass  # it is full, or not writable: the bytes go behind the message instead
    frames.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return ArrayData(shape, dtype, len(frames) - 1)


def unpack(
    packed: ArrayData, frames: Sequence[bytes | memoryview], memory: SharedMemory, owner: str
) -> np.ndarray:
    """Decode an array, which may share memory with the message. Raises ProtocolError if it is invalid."""
    if packed.dtype not in ITEMSIZE:
        raise ProtocolError(f"no dtype is called {packed.dtype!r}")
    if not packed.is_valid:
        raise ProtocolError(f"an array of shape {list(packed.shape[:8])} is out of bounds")
    size = packed.nbytes
    buffer: bytearray | bytes | memoryview
    if packed.shared:
        buffer = memory.get(packed.shared, size, owner)
    elif isinstance(packed.data, bytes):
        buffer = bytearray(packed.data)  # writable, which bytes are not
    elif 0 <= packed.data < len(frames):
        buffer = frames[packed.data]
    else:
        raise ProtocolError(f"the message has no frame {packed.data}")
    if len(buffer) != size:
        raise ProtocolError(f"an array of {size} bytes came with {len(buffer)}")
    return np.frombuffer(buffer, numpy_dtype(packed.dtype)).reshape(packed.shape)
