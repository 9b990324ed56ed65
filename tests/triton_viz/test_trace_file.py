"""A saved and loaded trace is unchanged, and an invalid file is refused."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import triton_viz
from examples import vector_add
from triton_viz.core.data import Access
from triton_viz.core.records.columns import Numbers
from triton_viz.core.trace_file import FORMAT
from triton_viz.errors import TraceFileError
from triton_viz.visualizer.visualizer_command import main

pytestmark = pytest.mark.usefixtures("no_launches")


def test_saved_launches_load_equal(tmp_path: Path):
    vector_add.run()
    (saved,) = triton_viz.launches
    triton_viz.save(tmp_path / "trace.tvz")
    triton_viz.load(tmp_path / "trace.tvz")
    (loaded,) = triton_viz.launches
    assert loaded is not saved
    assert (loaded.kernel, loaded.grid, loaded.tensors) == (saved.kernel, saved.grid, saved.tensors)
    for one, other in zip(loaded.records, saved.records, strict=True):
        assert isinstance(one, Access)
        assert isinstance(other, Access)
        np.testing.assert_array_equal(one.offsets, other.offsets)
        np.testing.assert_array_equal(one.mask, other.mask)
    for program in saved.programs():
        assert loaded.at(program) == saved.at(program)
        assert loaded.at(program)


def test_append_keeps_present_launches_and_gives_new_ids(tmp_path: Path):
    vector_add.run()
    triton_viz.save(tmp_path / "trace.tvz")
    triton_viz.load(tmp_path / "trace.tvz", append=True)
    assert len(triton_viz.launches) == 2
    assert len({launch.id for launch in triton_viz.launches}) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a trace file"),
        (b"PNG and so on", "not a trace file"),
        (msgspec.msgpack.encode({"format": "tapestry trace 9", "runs": []}), "reads 'tapestry trace 3'"),
        (msgspec.msgpack.encode({"format": FORMAT, "launches": [{"kernel": 3}]}), "damaged"),
    ],
)
def test_a_bad_file_is_refused_and_launches_are_kept(tmp_path: Path, content: bytes, message: str):
    vector_add.run()
    path = tmp_path / "bad.tvz"
    path.write_bytes(content)
    with pytest.raises(TraceFileError, match=message):
        triton_viz.load(path)
    assert len(triton_viz.launches) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": (1, 2)}, "elements do not fit its block"),
        ({"first": Numbers(9)}, "a column of 9 lanes in a record of 4"),
        ({"bits": np.zeros((4, 1), np.uint8)}, "a mask that does not fit its block"),
        ({"offsets": np.zeros((4, 3))}, "does not fit its block"),
        ({"first": Numbers(4, listed=np.arange(3))}, "whose number of values is not its count"),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Any], message: str):
    vector_add.run()
    record = triton_viz.launches[0].records[0]
    assert isinstance(record, Access)
    places = msgspec.structs.replace(record.elements, **change)
    triton_viz.launches[0].records[0] = msgspec.structs.replace(record, elements=places)
    triton_viz.save(tmp_path / "trace.tvz")
    with pytest.raises(TraceFileError, match=f"damaged: .*{message}"):
        triton_viz.load(tmp_path / "trace.tvz")


def test_a_truncated_file_is_refused(tmp_path: Path):
    vector_add.run()
    path = tmp_path / "trace.tvz"
    triton_viz.save(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(TraceFileError, match="damaged"):
        triton_viz.load(path)


def test_the_command_reports_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(tmp_path / "absent.tvz")]) == 1
    assert "absent.tvz" in capsys.readouterr().err
    (tmp_path / "bad.tvz").write_bytes(b"x")
    assert main([str(tmp_path / "bad.tvz")]) == 1
    assert "not a trace file" in capsys.readouterr().err
    triton_viz.save(tmp_path / "good.tvz")
    assert main([str(tmp_path / "good.tvz"), "-p", "99999", "--no-browser"]) == 1
    assert "99999 is not a port: ports are 0 to 65535" in capsys.readouterr().err
