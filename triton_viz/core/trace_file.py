"""Trace files: launches kept in one file, and read again."""

from pathlib import Path
from typing import Any, Union

import msgspec
import numpy as np

from triton_viz.core.data import OPS, Launch, Program, TensorInfo
from triton_viz.errors import TraceFileError

FORMAT = "tapestry trace 2"


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
            records = [decoder.decode(record) for record in stored.records]
            fields: dict[str, Any] = msgspec.structs.asdict(stored)
            found.append(Launch(**{**fields, "records": records}))
            for record in records:
                if record.programs.grid != stored.grid:
                    raise ValueError(f"a record of {stored.kernel} is of another grid")
                record.check()
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, IndexError) as error:
        if isinstance(error, TraceFileError):
            raise
        raise TraceFileError(f"{path} is not a trace file, or is damaged: {error}") from error
    return found


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a trace cannot hold a {type(value).__name__}")


def _decode(type: type, value: Any) -> np.ndarray:
    dtype, shape, data = value
    if np.dtype(dtype).kind not in "biuf":
        raise ValueError(f"an array of {dtype}")
    return np.frombuffer(data, dtype).reshape(shape)
