"""The server's payloads for tensors and the grid: tiles, coverage, metrics and values."""

import itertools
import math

import numpy as np
import pytest
import torch
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st

import triton_viz
from examples import matmul, vector_add
from tests.triton_viz.helpers import kernels
from tests.triton_viz.helpers.page_answers import api, cells, marks
from triton_viz.core.data import Access, Dot
from triton_viz.visualizer.metrics import METRICS
from triton_viz.visualizer.raw_tensor_data import raw_tensor_data
from triton_viz.visualizer.tensor_tiles import Window

__all__ = ["api"]  # a fixture
pytestmark = pytest.mark.usefixtures("no_launches")


def test_a_tile_marks_elements_of_the_op_its_mask_and_its_program(api: FlaskClient):
    vector_add.run()
    (launch,) = triton_viz.launches
    op = f"{launch.id}-0-3.0.0"
    assert marks(api, "x", 100, program="3,0,0", op=op) == [[0] * 96 + [3] * 4]
    assert marks(api, "out", 100, program="3,0,0", op=op) == [[0] * 96 + [1] * 4]
    matmul.run(8, 8, 8)  # half of each tile of 16 by 16 is beyond the matrix, masked off
    (row, *_) = marks(api, "a", 8, op=f"{triton_viz.launches[-1].id}-0-0.0.0")
    assert row == [3] * 8
    triton_viz.trace()(kernels.add)[(1,)](torch.ones(32), torch.ones(32), torch.ones(32), 5, BLOCK=16)
    assert marks(api, "x", 32, op=f"{triton_viz.launches[-1].id}-0-0.0.0") == [[3] * 5 + [2] * 11 + [0] * 16]


def test_elements_of_a_transposed_view_are_numbered_as_the_user_indexes_them(api: FlaskClient):
    x, out = torch.arange(8.0).reshape(2, 4).T, torch.zeros(4, 2)
    triton_viz.trace()(kernels.copy_strided)[(1,)](x, out, *x.stride(), ROWS=2, COLUMNS=2)
    assert marks(api, "x", 2) == [[1, 1], [1, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("view", "by", "elements", "outside"),
    [
        (lambda base: base[4:], -1, [0, 1, 2], 1),
        (lambda base: base[::2], 0, [0, 1], 2),
        (lambda base: base[3:4], 0, [0], 3),
        (lambda base: base[3], 0, [0], 3),
        (lambda base: base.reshape(4, 4)[:, :3], 1, [1, 2, 3], 1),
    ],
    ids=["before it", "between its steps", "after one element", "after a number", "between its rows"],
)
def test_lanes_beside_a_view_are_counted_and_not_drawn(api: FlaskClient, view, by, elements, outside):
    tensor = view(torch.arange(16.0))
    triton_viz.trace()(kernels.shift)[(1,)](tensor, torch.zeros(4), by, BLOCK=4)
    load = api.get("/api/data").get_json()["visualization_data"][0]
    assert (load["touched"], load["outside"]) == (4 - outside, outside)
    (row,) = marks(api, load["tensor"], max(1, tensor.numel()), op=load["uuid"])
    assert [element for element, mark in enumerate(row) if mark == 3] == elements


def test_coverage_counts_the_accesses_of_all_programs_with_overlaps(api: FlaskClient):
    matmul.run()
    (launch,) = triton_viz.launches
    for name in ("a", "b", "c"):
        tensor = next(t for t in launch.tensors if t.name == name)
        expected = np.zeros(math.prod(tensor.shape), int)
        for program in launch.programs():
            for op in launch.at(program):
                if isinstance(op, Access) and op.tensor == name:
                    np.add.at(expected, tensor.elements(op.offsets[op.mask]), 1)
        rows, columns = tensor.shape
        assert marks(api, name, columns, layer="coverage") == expected.reshape(rows, columns).tolist()
    assert marks(api, "c", 56, layer="coverage", kind="read") == [[0] * 56] * 40


@settings(max_examples=60)
@given(
    count=st.integers(1, 90),
    columns=st.integers(1, 20),
    top=st.integers(0, 5),
    left=st.integers(0, 5),
    bin_x=st.integers(1, 7),
    bin_y=st.integers(1, 7),
    whole=st.booleans(),
)
def test_a_tile_holds_the_largest_or_the_mean_of_each_cell(count, columns, top, left, bin_x, bin_y, whole):
    numbers = np.arange(count) % 11 if whole else np.arange(count) % 11 + 0.5
    window = Window(
        count=count, columns=columns, top=top, left=left, across=4, down=3, bin_x=bin_x, bin_y=bin_y
    )
    for how, combine in (("max", np.max), ("mean", np.mean)):
        found = window.gather(numbers, how)
        for row, column in itertools.product(range(3), range(4)):
            members = [
                numbers[r * columns + c]
                for r in range(top + row * bin_y, top + (row + 1) * bin_y)
                for c in range(left + column * bin_x, left + (column + 1) * bin_x)
                if c < columns and r * columns + c < count
            ]
            expected = combine(members) if members else np.nan
            np.testing.assert_allclose(found[row, column], expected)


@pytest.mark.parametrize("metric", list(METRICS))
def test_the_map_of_programs_shows_each_programs_own(api: FlaskClient, metric: str):
    matmul.run()
    (launch,) = triton_viz.launches
    answer = api.get(f"/api/programs?metric={metric}&columns=3&across=3&down=4")
    found = cells(answer.data)
    sizes = {t.name: t.itemsize for t in launch.tensors}
    for x, y, z in launch.programs():
        ops = launch.at((x, y, z))
        accesses = [op for op in ops if isinstance(op, Access)]
        moved = [(type(op).__name__, int(op.mask.sum()) * sizes[op.tensor]) for op in accesses]
        expected = {
            "bytes": sum(n for _, n in moved),
            "loaded": sum(n for kind, n in moved if kind == "Load"),
            "stored": sum(n for kind, n in moved if kind == "Store"),
            "masked": sum(int((~op.mask).sum()) for op in accesses),
            "ops": len(ops),
            "flops": sum(2 * 16**3 for op in ops if isinstance(op, Dot)),
            "issues": 0,
        }[metric]
        assert found[y, x] == expected


def test_values_are_those_at_the_time_of_an_op(api: FlaskClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_viz.config, "values", True)
    x = torch.arange(4.0)
    triton_viz.trace()(kernels.add)[(2,)](x, x, x, 4, BLOCK=2)  # x = x + x
    (launch,) = triton_viz.launches
    load = launch.records[0]
    assert isinstance(load, Access)
    name = load.tensor  # one memory has one name
    url = f"/api/tensor?tensor={name}&columns=4&across=4&down=1&layer=values"
    assert cells(api.get(f"{url}&op={launch.id}-0-0.0.0").data).tolist() == [[0, 1, 2, 3]]
    assert cells(api.get(f"{url}&op={launch.id}-2-0.0.0").data).tolist() == [[0, 2, 4, 6]]
    assert cells(api.get(url).data).tolist() == [[0, 2, 4, 6]]
    element = f"/api/element?tensor={name}&element=3&program=1,0,0"
    before = api.get(f"{element}&op={launch.id}-0-1.0.0").get_json()
    after = api.get(element).get_json()
    assert (before["value"], after["value"], after["index"]) == (3.0, 6.0, [3])
    assert int(after["address"], 16) == x.data_ptr() + 12
    assert [by["type"] for by in after["touched_by"]] == ["Load", "Load", "Store"]


def test_a_histogram_counts_what_an_op_read_or_wrote(api: FlaskClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_viz.config, "values", True)
    x = torch.tensor([0.0, 1.0, 1.0, 3.0, math.nan, math.inf, 7.0, 7.0])
    triton_viz.trace()(kernels.add)[(1,)](x, torch.zeros(8), torch.zeros(8), 6, BLOCK=8)
    (launch,) = triton_viz.launches
    found = api.get(f"/api/histogram?uuid={launch.id}-0-0.0.0&bins=3").get_json()
    assert (found["counts"], found["edges"]) == ([1, 2, 1], [0, 1, 2, 3])
    assert (found["elements"], found["nan"], found["infinite"], found["mean"]) == (4, 1, 1, 1.25)
    whole = api.get("/api/histogram?tensor=x&bins=1").get_json()
    assert (whole["name"], whole["counts"]) == ("x", [4])
    assert set(raw_tensor_data) == {f"{launch.id}-{number}-0.0.0" for number in range(3)}
    raw = raw_tensor_data[f"{launch.id}-0-0.0.0"]
    assert raw.values is not None
    assert raw.values[1] == 1
