"""A trace file with a damaged byte or field raises a TraceFileError, or loads as a usable trace."""

import copy
import functools
import operator
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import psutil
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from tests.triton_viz.nki_kernels import modern
from triton_viz.clients import Tracer
from triton_viz.core import trace_file
from triton_viz.core.data import Access, Launch
from triton_viz.errors import TraceFileError
from triton_viz.visualizer.analysis import analyze_records
from triton_viz.visualizer.draw import get_visualization_data
from triton_viz.visualizer.metrics import METRICS, measure

LARGE = 2**14
"""The most programs or elements that are checked one by one."""


@triton.jit
def mixed(x, index, out, counter, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    where = tl.load(index + at, mask=at < n, other=0)
    value = tl.load(x + where, mask=at < n)
    if tl.program_id(0) % 3 == 0:
        tl.store(out + at, value + tl.sum(value, axis=0), mask=(at < n) & (at % 3 != 1))
    tl.atomic_add(counter, 1)


@triton.jit
def writes_one(x):
    tl.store(x, tl.program_id(0).to(tl.float32))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with launches of both languages, columns of every form, issues, verdicts and profiles."""
    triton_viz.clear()
    n = 300
    index = torch.randint(0, n, (n,), generator=torch.Generator().manual_seed(0))
    arguments = torch.randn(n), index, torch.zeros(n - 2), torch.zeros(1, dtype=torch.int32), n
    clients = [Tracer(values=True, arithmetic=True), "sanitizer", "profiler", "race_detector"]
    triton_viz.trace(clients)(mixed)[(5,)](*arguments, BLOCK=64)
    triton_viz.trace(["tracer", "profiler"], backend="nki")(modern.softmax)(np.ones((4, 4), np.float32))
    path = tmp_path_factory.mktemp("saved") / "trace.tvz"
    triton_viz.save(path)
    triton_viz.clear()
    return path.read_bytes()


def use(launch: Launch) -> None:
    """Compute the payloads of the page for a launch."""
    assert launch.ops >= 0
    small = np.prod(launch.grid, dtype=float) <= LARGE
    for record in launch.records:
        small &= record.programs.lanes <= LARGE
        if isinstance(record, Access):
            small &= np.prod(record.elements.shape, dtype=float) <= LARGE
    if not small:
        return
    for program in list(launch.programs())[:: max(1, int(np.prod(launch.grid)) // 3)]:
        launch.at(program)
        get_visualization_data(launch, program)
    analyze_records(launch)
    for metric in METRICS:
        measure(launch, metric)


def load(content: bytes, folder: Path) -> list[Launch] | None:
    """The launches of a file, after using them; None if it is refused."""
    path = folder / "damaged.tvz"
    path.write_bytes(content)
    try:
        found = trace_file.load(str(path))
    except TraceFileError:
        return None
    for launch in found:
        use(launch)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


FEW = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(FEW, max_examples=200)


def test_the_file_itself_loads(saved: bytes, folder: Path):
    found = load(saved, folder)
    assert found is not None
    assert [launch.kernel for launch in found] == ["mixed", "softmax"]


@FEW
@given(data=st.data())
def test_any_damaged_byte_is_noticed_or_changes_nothing(data: st.DataObject, saved: bytes, folder: Path):
    at = data.draw(st.integers(0, len(saved) - 1), label="at")
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != saved[at]), label="byte")
    found = load(saved[:at] + bytes([byte]) + saved[at + 1 :], folder)
    if found is not None:
        path = folder / "again.tvz"
        trace_file.save(found, str(path))
        assert path.read_bytes() == saved


@FEW
@given(data=st.data())
def test_a_file_without_a_checksum_may_be_damaged_anywhere(data: st.DataObject, saved: bytes, folder: Path):
    fields = msgspec.msgpack.decode(saved)
    content = msgspec.msgpack.encode({name: fields[name] for name in ("format", "launches")})
    at = data.draw(st.integers(0, len(content) - 1), label="at")
    part = data.draw(st.binary(max_size=9), label="part")
    load(content[:at] + part + content[at + data.draw(st.sampled_from([len(part), 0, 40])) :], folder)


NUMBERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([-1, 0, 1, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]),
)
LEAVES = st.one_of(NUMBERS, st.floats(), st.none(), st.booleans(), st.text(max_size=4), st.binary(max_size=9))
VALUES = st.one_of(
    LEAVES, st.lists(LEAVES, max_size=4), st.dictionaries(st.text(max_size=4), LEAVES, max_size=2)
)


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values that can be damaged: every field, every member of a list."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths_in(member, (*path, key))


def encoded(launches: Any) -> bytes:
    body = msgspec.msgpack.encode(launches)
    fields = {"format": trace_file.FORMAT, "launches": msgspec.Raw(body), "checksum": zlib.crc32(body)}
    return msgspec.msgpack.encode(fields)


@MANY
@given(data=st.data())
def test_any_damaged_field_is_refused_or_leaves_a_trace_that_can_be_used(
    data: st.DataObject, saved: bytes, folder: Path
):
    launches = copy.deepcopy(msgspec.msgpack.decode(saved)["launches"])
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(paths_in(launches))), label="path")
        *outer, last = path
        owner = launches
        for key in outer:
            owner = owner[key]
        before = owner[last]
        # Other numbers are as frequent as all other damage, because decoding accepts them.
        strategy = st.one_of(NUMBERS, VALUES) if isinstance(before, int) else VALUES
        owner[last] = data.draw(strategy, label="value")
    load(encoded(launches), folder)


@pytest.mark.parametrize(
    "shape", [[2**64 - 1] * 3, [2**63], [2**62, 4], [-1], [2**40], ["a"], [1.5], 7, None, [[1]]]
)
def test_a_damaged_shape_of_an_array_is_refused(shape: Any, saved: bytes, folder: Path):
    assert damaged_arrays_are_refused(saved, folder, 1, shape) > 5


@pytest.mark.parametrize(
    "dtype", ["(,)f4", "(1,f4", "f4,i4", "O", "S4", "V8", "M8[s]", "f", "<f99", 7, None, []]
)
def test_a_damaged_dtype_of_an_array_is_refused(dtype: Any, saved: bytes, folder: Path):
    assert damaged_arrays_are_refused(saved, folder, 0, dtype) > 5


def damaged_arrays_are_refused(saved: bytes, folder: Path, part: int, damaged: Any) -> int:
    """Replace a part of each array (dtype, shape, bytes), one at a time; the result is their number."""
    launches = msgspec.msgpack.decode(saved)["launches"]
    arrays = 0
    for path in list(paths_in(launches)):
        value = functools.reduce(operator.getitem, path, launches)
        if not (isinstance(value, list) and len(value) == 3 and isinstance(value[2], bytes)):
            continue
        before, value[part] = value[part], damaged
        assert load(encoded(launches), folder) is None
        value[part] = before
        arrays += 1
    return arrays


def test_lists_of_any_depth_are_refused(folder: Path):
    content = msgspec.msgpack.encode({"format": trace_file.FORMAT}).replace(b"\x81", b"\x82", 1)
    deep = content + msgspec.msgpack.encode("launches") + b"\x91" * 100_000 + b"\xc0"
    assert load(deep, folder) is None


@pytest.mark.parametrize("other", [(2, 0, 0), (-1, 0, 0), (0, 2**40, 0)])
def test_an_issue_of_a_program_that_is_not_in_the_grid_is_refused(other: tuple[int, int, int], folder: Path):
    triton_viz.clear()
    triton_viz.trace("race_detector")(writes_one)[(2,)](torch.zeros(1))
    path = folder / "race.tvz"
    triton_viz.save(path)
    triton_viz.clear()
    launches = msgspec.msgpack.decode(path.read_bytes())["launches"]
    (issue,) = launches[0]["records"]
    assert issue["others"] == [[1, 0, 0]]
    assert load(encoded(launches), folder) is not None
    issue["others"] = [other]
    assert load(encoded(launches), folder) is None


def test_a_file_whose_arrays_do_not_fit_into_memory_is_refused(
    saved: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Repeated bytes compress to a thousandth: a file of 10 MB may hold 10 GB."""
    path = folder / "trace"
    path.write_bytes(saved)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1000))
    with pytest.raises(
        TraceFileError, match="trace cannot be loaded: its arrays take more than the 1,000 bytes"
    ):
        trace_file.load(str(path))
