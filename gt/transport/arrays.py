"""How an array travels: inside the message if it is small, through shared memory if both ends see the
same, and otherwise as raw bytes behind the message."""

from collections.abc import Sequence

import numpy as np

from gt.errors import ProtocolError
from gt.ops.dtypes import ITEMSIZE
from gt.transport.protocol import ArrayData
from gt.transport.shared_memory import SharedMemory

SMALL = 1 << 16
"""Up to so many bytes an array travels inside its message."""


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype for one of ours; bfloat16 is an extension's."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def pack(
    array: np.ndarray, frames: list[memoryview], memory: SharedMemory | None, receiver: str
) -> ArrayData:
    """An array, ready to travel; what goes behind the message is added to `frames`, and not copied."""
    shape, dtype = array.shape, array.dtype.name
    if array.nbytes <= SMALL:
        return ArrayData(shape, dtype, array.tobytes())
    if memory is not None:
        try:
            return ArrayData(shape, dtype, shared=memory.put(array, receiver))
        except OSError:
            pass  # it is full, or not ours to write: the bytes go behind the message instead
    frames.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return ArrayData(shape, dtype, len(frames) - 1)


def unpack(
    packed: ArrayData, frames: Sequence[bytes | memoryview], memory: SharedMemory, owner: str
) -> np.ndarray:
    """The array; it may share the memory it came in, and is only as writable as that."""
    if packed.dtype not in ITEMSIZE:
        raise ProtocolError(f"no dtype is called {packed.dtype!r}")
    if not packed.sound:
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
        raise ProtocolError(f"the message has no bytes in place {packed.data}")
    if len(buffer) != size:
        raise ProtocolError(f"an array of {size} bytes came with {len(buffer)}")
    return np.frombuffer(buffer, numpy_dtype(packed.dtype)).reshape(packed.shape)
