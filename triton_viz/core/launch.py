"""A launch: one run of one kernel, and how launches are kept in a file."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union

import msgspec
import numpy as np

from triton_viz.core.columns import Record
from triton_viz.core.data import OPS, Access, Op, Program, TensorInfo
from triton_viz.errors import TraceFileError

FORMAT = "tapestry trace 2"

_launches = itertools.count()
AnyRecord = Record | Op
"""What clients leave behind: records of many programs, or of one."""


class Launch(msgspec.Struct, kw_only=True):
    """One run of one kernel."""

    id: int = msgspec.field(default_factory=lambda: next(_launches))
    kernel: str
    file: str
    first_line: int
    source: str
    grid: Program
    tensors: tuple[TensorInfo, ...]
    records: list[AnyRecord]

    def at(self, program: Program) -> list[Op]:
        """What one program did, in order."""
        return [op for _, op in self.numbered(program)]

    def numbered(self, program: Program) -> Iterator[tuple[int, Op]]:
        """What one program did, in order, each with the number of its record."""
        for place, record in enumerate(self.records):
            op = record.at(program)
            if op is not None:
                yield place, op

    def programs(self) -> Iterator[Program]:
        """All programs, in the order in which they run one at a time."""
        x, y, z = self.grid
        return itertools.product(range(x), range(y), range(z))


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
    kinds = Union[(Record, *OPS.values())]  # noqa: UP007 - one that is made here
    decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(kinds, dec_hook=_decode)
    try:
        header = msgspec.msgpack.decode(data, type=_Header)
        if header.format != FORMAT:
            raise TraceFileError(f"{path} holds a {header.format!r}, and this release reads {FORMAT!r}")
        trace = msgspec.msgpack.decode(data, type=_Trace)
        found = []
        for stored in trace.launches:
            records = [decoder.decode(record) for record in stored.records]
            fields = {name: getattr(stored, name) for name in _StoredLaunch.__struct_fields__}
            found.append(Launch(**fields | {"records": records}))
            for record in records:
                _check(record, found[-1])
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, IndexError) as error:
        if isinstance(error, TraceFileError):
            raise
        raise TraceFileError(f"{path} is not a trace file, or is damaged: {error}") from error
    return found


def _check(record: AnyRecord, launch: Launch) -> None:
    """Raise an error if parts of a record do not fit each other: every later use may rely on it."""
    if isinstance(record, Access) and record.offsets.shape != record.mask.shape:
        raise ValueError(f"a mask of {launch.kernel} does not fit its offsets")
    if isinstance(record, Record):
        if record.kind not in OPS:
            raise ValueError(f"there is no op called {record.kind!r}")
        if record.programs.grid != launch.grid:
            raise ValueError(f"a record of {launch.kernel} is of another grid")
        record.check()


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
