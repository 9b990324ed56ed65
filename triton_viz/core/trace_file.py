"""Trace files: saving launches to one file, and loading them."""

import math
import re
import zlib
from pathlib import Path
from typing import Any, Union

import msgspec
import numpy as np
import psutil

from triton_viz.core.client_registry import registered_clients
from triton_viz.core.data import Launch, Program, Record, record_type
from triton_viz.core.records.columns import LARGEST
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.errors import TraceFileError

FORMAT = "tapestry trace 3"
_WORTH_PACKING = 4096
"""Arrays of more bytes are compressed."""
_DTYPE = re.compile("[<>|][biuf][0-9]{1,2}")
"""The names of the dtypes that arrays may have: booleans, integers and floats."""


_DAMAGED = (
    *(msgspec.MsgspecError, zlib.error),
    *(ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError),
)
"""The errors of decoding a file that is not a trace: numbers may have any size, lists any depth."""


class _Header(msgspec.Struct):
    format: str


class _StoredLaunch(msgspec.Struct):
    """A launch with encoded records: their types are imported before they are decoded."""

    kernel: str
    file: str
    first_line: int
    source: str
    grid: Program
    tensors: tuple[TensorInfo, ...]
    records: list[msgspec.Raw]
    checked_by: tuple[str, ...] = ()


class _Trace(_Header):
    launches: msgspec.Raw
    """An encoded list of `_StoredLaunch`."""
    checksum: int | None = None
    """The CRC-32 of `launches`. Files that were written before there was one have none."""


def save(launches: list[Launch], path: str) -> None:
    """Write launches to one file."""
    encode = msgspec.msgpack.Encoder(enc_hook=_encode).encode
    stored = []
    for launch in launches:
        fields = {name: getattr(launch, name) for name in _StoredLaunch.__struct_fields__}
        fields["records"] = [msgspec.Raw(encode(record)) for record in launch.records]
        stored.append(_StoredLaunch(**fields))
    body = encode(stored)
    Path(path).write_bytes(encode(_Trace(FORMAT, msgspec.Raw(body), zlib.crc32(body))))


def load(path: str) -> list[Launch]:
    """Read the launches of a file that `save` wrote."""
    data = Path(path).read_bytes()
    try:
        header = msgspec.msgpack.decode(data, type=_Header)
        if header.format != FORMAT:
            raise TraceFileError(f"{path} holds a {header.format!r}, and this release reads {FORMAT!r}")
        trace = msgspec.msgpack.decode(data, type=_Trace)
        if trace.checksum is not None and zlib.crc32(trace.launches) != trace.checksum:
            raise ValueError("its checksum does not fit its content")
        launches = msgspec.msgpack.decode(trace.launches, type=list[_StoredLaunch])
        decode = _decoder(launches, path).decode
        found = []
        for stored in launches:
            records = [decode(record) for record in stored.records]
            fields: dict[str, Any] = msgspec.structs.asdict(stored)
            launch = Launch(**{**fields, "records": records})
            launch.check()
            found.append(launch)
    except MemoryError as error:
        why = str(error) or "there is not enough memory"
        raise TraceFileError(f"{path} cannot be loaded: {why}") from error
    except _DAMAGED as error:
        if isinstance(error, TraceFileError):
            raise
        raise TraceFileError(f"{path} is not a trace file, or is damaged: {error}") from error
    return found


class _Tag(msgspec.Struct):
    """The type tag of a record."""

    type: str


def _decoder(launches: list[_StoredLaunch], path: str) -> "msgspec.msgpack.Decoder[Any]":
    """A decoder of all types of records in a file. Imports the modules that define them."""
    decode_tag = msgspec.msgpack.Decoder(_Tag).decode
    types: dict[str, type[Record]] = {}
    registered_clients()  # imports the packages that register types of records
    for name in {decode_tag(record).type for launch in launches for record in launch.records}:
        found = record_type(name)
        if found is None:
            raise TraceFileError(
                f"{path} holds records of type {name!r}, which no imported module defines: import the module "
                "that defines it before loading the file"
            )
        types[name] = found
    union = Union[tuple(types.values())] if types else Record  # noqa: UP007 - a tuple of types
    return msgspec.msgpack.Decoder(union, dec_hook=_Arrays().decode)


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        data = value.tobytes()
        # Columns are often nearly constant, and compress to a few bytes.
        return value.dtype.str, value.shape, zlib.compress(data, 1) if len(data) > _WORTH_PACKING else data
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a trace cannot hold a {type(value).__name__}")


class _Arrays:
    """Decodes the arrays of a file, as far as they fit into memory: a small file may claim terabytes."""

    def __init__(self) -> None:
        self._free = self._left = psutil.virtual_memory().available

    def decode(self, type: type, value: Any) -> np.ndarray:
        """Decode an array."""
        found = _checked(value)
        self._left -= math.prod(found[1]) * found[0].itemsize
        if self._left < 0:
            raise MemoryError(f"its arrays take more than the {self._free:,} bytes of memory that are free")
        return _decode(*found)


def _checked(value: Any) -> tuple[np.dtype, list[int], bytes]:
    """The dtype, shape and data of an array."""
    name, shape, data = value
    if not (isinstance(name, str) and _DTYPE.fullmatch(name)):  # NumPy parses some other texts as Python
        raise ValueError(f"an array of {name!r}")
    dtype = np.dtype(name)
    sizes = isinstance(shape, list) and all(isinstance(n, int) and 0 <= n <= LARGEST for n in shape)
    if not sizes or not isinstance(data, bytes):
        raise ValueError(f"an array of {name} and shape {shape}")
    if math.prod(shape) * dtype.itemsize > LARGEST:
        raise ValueError(f"an array of shape {shape}")
    return dtype, shape, data


def _decode(dtype: np.dtype, shape: list[int], data: bytes) -> np.ndarray:
    size = math.prod(shape) * dtype.itemsize
    if size > _WORTH_PACKING:
        unpack = zlib.decompressobj()
        data = unpack.decompress(data, size + 1)  # a damaged file must not fill the memory
        if len(data) != size or not unpack.eof:
            raise ValueError("an array whose data does not have the size of its shape")
    return np.frombuffer(data, dtype).reshape(shape)
