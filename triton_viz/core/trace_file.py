"""Trace files: launches kept in one file, and read again."""

import math
import zlib
from pathlib import Path
from typing import Any, Union

import msgspec
import numpy as np

from triton_viz.core.data import OPS, Launch, Program, TensorInfo
from triton_viz.errors import TraceFileError

FORMAT = "tapestry trace 2"
_WORTH_PACKING = 4096
"""Arrays of more bytes are compressed."""


class _Header(msgspec.Struct):
    format: str


class _StoredLaunch(msgspec.Struct):
    """A launch whose records are read one by one: which kinds of ops there are is open."""

    kernel: str
    file: str
    first_line: int
    source: str
    grid: Program
    tensors: tuple[TensorInfo, ...]
    records: list[msgspec.Raw]


class _Trace(_Header):
    launches: list[_StoredLaunch]


def save(launches: list[Launch], path: str) -> None:
    """Write launches to one file."""
    encode = msgspec.msgpack.Encoder(enc_hook=_encode).encode
    stored = []
    for launch in launches:
        fields = {name: getattr(launch, name) for name in _StoredLaunch.__struct_fields__}
        fields["records"] = [msgspec.Raw(encode(record)) for record in launch.records]
        stored.append(_StoredLaunch(**fields))
    Path(path).write_bytes(encode(_Trace(FORMAT, stored)))


def load(path: str) -> list[Launch]:
    """Read the launches of a file that `save` wrote."""
    data = Path(path).read_bytes()
    kinds = Union[tuple(OPS.values())]  # noqa: UP007 - one that is made here
    decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(kinds, dec_hook=_decode)
    try:
        header = msgspec.msgpack.decode(data, type=_Header)
        if header.format != FORMAT:
            raise TraceFileError(f"{path} holds a {header.format!r}, and this release reads {FORMAT!r}")
        trace = msgspec.msgpack.decode(data, type=_Trace)
        found = []
        for stored in trace.launches:
            records = [decoder.decode(_known(record, path)) for record in stored.records]
            fields: dict[str, Any] = msgspec.structs.asdict(stored)
            found.append(Launch(**{**fields, "records": records}))
            for record in records:
                if record.programs.grid != stored.grid:
                    raise ValueError(f"a record of {stored.kernel} is of another grid")
                record.check()
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, IndexError, zlib.error) as error:
        if isinstance(error, TraceFileError):
            raise
        raise TraceFileError(f"{path} is not a trace file, or is damaged: {error}") from error
    return found


class _Kind(msgspec.Struct):
    """What a record says it is."""

    type: str


def _known(record: msgspec.Raw, path: str) -> msgspec.Raw:
    """A record, whose kind must be one that is defined here."""
    kind = msgspec.msgpack.decode(record, type=_Kind).type
    if kind not in OPS:
        raise TraceFileError(
            f"{path} holds records of kind {kind!r}, which nothing here defines: import the module that does "
            "before loading it"
        )
    return record


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        data = value.tobytes()
        # A million lanes that nearly all hold one number are a few bytes so.
        return value.dtype.str, value.shape, zlib.compress(data, 1) if len(data) > _WORTH_PACKING else data
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a trace cannot hold a {type(value).__name__}")


def _decode(type: type, value: Any) -> np.ndarray:
    name, shape, data = value
    dtype = np.dtype(name)
    if dtype.kind not in "biuf" or any(n < 0 for n in shape):
        raise ValueError(f"an array of {name} and shape {shape}")
    size = math.prod(shape) * dtype.itemsize
    if size > _WORTH_PACKING:
        unpack = zlib.decompressobj()
        data = unpack.decompress(data, size + 1)  # a damaged file must not fill the memory
        if len(data) != size or not unpack.eof:
            raise ValueError("an array that is not as large as it says")
    return np.frombuffer(data, dtype).reshape(shape)
