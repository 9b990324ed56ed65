"""The specification of triton_viz's visualizer, statement by statement: each test quotes it and runs it."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from flask.testing import FlaskClient

import triton_viz
from examples import nki_rms_norm
from tests.programs import ROOT
from tests.triton_viz.helpers import kernels
from tests.triton_viz.helpers.watching import Watch, launch_add, traced
from triton_viz.clients import Tracer
from triton_viz.clients.utils import kernel_call_path, record
from triton_viz.core.client import OpCallbacks
from triton_viz.core.data import Access, Op, Other, SbufEvent, Store
from triton_viz.visualizer import analysis, draw, interface, tooltip
from triton_viz.visualizer.interface import create_app, raw_tensor_data, update_global_data

pytestmark = pytest.mark.usefixtures("no_launches")


@pytest.fixture
def api() -> FlaskClient:
    return create_app().test_client()


def data(api: FlaskClient, **query: Any) -> dict[str, Any]:
    return api.get("/api/data", query_string=query).get_json()


def test_visualization_data_is_per_program(api: FlaskClient):
    """visualization data: "per-program op payloads used to render the UI"; "Hit `/api/data` first and inspect
    the `visualization_data` payload"; "op payloads must include a stable `uuid` and a `type`".
    """
    launch_add(n=8, programs=4)
    seen: set[str] = set()
    for program in range(4):
        ops = data(api, program=f"{program},0,0")["visualization_data"]
        assert [op["type"] for op in ops] == ["Load", "Load", "Store"]
        assert ops == data(api, program=f"{program},0,0")["visualization_data"]
        seen |= {op["uuid"] for op in ops}
    assert len(seen) == 12


def test_raw_tensor_data_is_keyed_by_op_uuid(api: FlaskClient):
    """raw tensor data: "per-op tensor/value payloads used for histogram and details"; "`raw_tensor_data` is
    keyed by op UUID; keep UUIDs stable across derived payloads"; "raw tensor payloads can be omitted for ops
    that do not render tensors".
    """
    x = torch.arange(16.0).reshape(4, 4)
    traced(Tracer(values=True), kernels.row_norm)[(4,)](x, torch.zeros(4), 4, BLOCK=4)
    ops = data(api, program="2,0,0")["visualization_data"]
    assert [op["type"] for op in ops] == ["Load", "Reduce", "Store"]
    assert [op["uuid"] in raw_tensor_data for op in ops] == [True, False, True]
    values = raw_tensor_data[ops[0]["uuid"]].values
    assert values is not None
    assert values.tolist() == x[2].tolist()
    assert len(raw_tensor_data) == len(set(raw_tensor_data)) == 8
    payloads, raw = draw.get_visualization_data(triton_viz.launches[-1], (2, 0, 0))
    assert [payload.uuid for payload in payloads] == [op["uuid"] for op in ops]
    assert list(raw) == [ops[0]["uuid"], ops[2]["uuid"]]
    again = raw[ops[0]["uuid"]].values
    assert again is not None
    assert again.tolist() == x[2].tolist()


class Counted:
    """A function that counts how often it is called."""

    def __init__(self, function: Callable[..., Any]):
        self.calls, self._function = 0, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self._function(*args, **kwargs)


def test_nothing_is_recomputed_unless_the_snapshot_changed(api: FlaskClient, monkeypatch: pytest.MonkeyPatch):
    """launch snapshot: "(launch count, record count) used to skip redundant recomputation";
    "`update_global_data()` only recomputes if the launch snapshot changed"; "Results are cached and served by
    `/api/data` and related endpoints".
    """
    drawn, analyzed = Counted(draw.get_visualization_data), Counted(analysis.analyze_records)
    monkeypatch.setattr(draw, "get_visualization_data", drawn)
    monkeypatch.setattr(analysis, "analyze_records", analyzed)
    launch_add()
    launch_add(n=4)
    first = triton_viz.launches[0].id
    for expected in (1, 2, 3):
        answers = [
            (data(api, launch=first), api.get(f"/api/traffic?launch={first}").get_json()) for _ in range(3)
        ]
        assert answers[0] == answers[1] == answers[2]
        update_global_data()
        assert (drawn.calls, analyzed.calls) == (expected, expected)
        if expected == 1:
            launch_add(n=16)  # the launch count changes
        else:
            triton_viz.launches[0].records.append(triton_viz.launches[0].records[-1])  # the record count
    assert len(data(api, launch=first)["visualization_data"]) == 3 + 2


def test_a_launch_that_replaces_another_is_new_data(api: FlaskClient):
    """The same, where both counts are what they were."""
    launch_add(n=8)
    assert data(api)["tensors"][0]["shape"] == [8]
    triton_viz.clear()
    launch_add(n=16)
    assert data(api)["tensors"][0]["shape"] == [16]


def test_all_launches_are_collected_and_the_last_is_the_default(api: FlaskClient):
    """Specified: "`update_global_data()` collects all launch records"; "The visualizer currently assumes
    'last launch only' in `draw.py`", which here is the default; "`triton_viz.core.trace.launches` is the
    source of truth".
    """
    for n in (4, 8, 16):
        launch_add(n=n)
    assert [launch["records"] for launch in api.get("/api/launches").get_json()["launches"]] == [3, 3, 3]
    for launch, size in zip(triton_viz.launches, (4, 8, 16), strict=True):
        assert data(api, launch=launch.id)["tensors"][0]["shape"] == [size]
    assert data(api)["tensors"][0]["shape"] == [16]
    newest = triton_viz.launches[-1]
    assert draw.collect_launch() == draw.collect_launch(newest, (0, 0, 0))
    assert draw.get_visualization_data()[0] == draw.get_visualization_data(newest, (0, 0, 0))[0]


def test_the_metrics_table(api: FlaskClient):
    """Specified: "`analysis.analyze_records()` builds a metrics table", which an endpoint serves."""
    x, out = torch.arange(8.0), torch.zeros(8)
    traced("tracer", kernels.add)[(2,)](x, x.clone(), out, 7, BLOCK=4)
    rows = api.get("/api/traffic").get_json()["analysis"]
    assert [
        (row["type"], row["tensor"], row["ops"], row["elements"], row["masked"], row["bytes"]) for row in rows
    ] == [
        ("Load", "x", 2, 7, 1, 28),
        ("Load", "y", 2, 7, 1, 28),
        ("Store", "out", 2, 7, 1, 28),
    ]
    assert [msgspec.to_builtins(row) for row in analysis.analyze_records()] == rows


def test_histogram_and_tensor_endpoints(api: FlaskClient):
    """Specified: "Histogram and tensor endpoints pull from `raw_tensor_data`"."""
    x, out = torch.tensor([0.0, 1, 1, 3, 5, 5, 5, 9]), torch.zeros(8)
    traced(Tracer(values=True), kernels.add)[(2,)](x, x.clone(), out, 8, BLOCK=4)
    for program in range(2):
        for op in data(api, program=f"{program},0,0")["visualization_data"]:
            raw = raw_tensor_data[op["uuid"]]
            assert raw.values is not None
            counts, edges = np.histogram(raw.values[raw.mask], 4)
            found = api.get("/api/histogram", query_string={"uuid": op["uuid"], "bins": 4}).get_json()
            assert (found["counts"], found["edges"]) == (counts.tolist(), edges.tolist())
            query = {"tensor": op["tensor"], "op": op["uuid"], "columns": 8, "across": 8, "down": 1}
            marks = np.frombuffer(api.get("/api/tensor", query_string=query).data[-8:], np.uint8)
            by_op = np.flatnonzero(marks == marks.max())
            assert by_op.tolist() == raw.op.offsets[raw.mask].tolist()


def test_op_code_resolves_tracebacks(api: FlaskClient):
    """Specified: "`/api/op_code` resolves tracebacks to source snippets"."""
    traced("tracer", kernels.row_norm)[(1,)](torch.ones(1, 4), torch.zeros(1), 4, BLOCK=4)
    load = data(api)["visualization_data"][0]
    frames = api.get("/api/op_code", query_string={"uuid": load["uuid"]}).get_json()["frames"]
    shown = [frame["lines"][frame["line"] - frame["first_line"]].strip() for frame in frames]
    assert [frame["function"] for frame in frames] == ["row_norm", "load_row"]
    assert shown[0].startswith("values = load_row(")
    assert shown[1].startswith("return tl.load(")


def test_a_new_visualization_from_a_client(api: FlaskClient):
    """Specified: "Add a new `Op` record (core) and emit it from a client", and it is translated "into an op
    payload".
    """

    class Noting(Watch):
        def pre_run_callback(self, fn: Callable) -> None:
            self.records: list[Op] = []

        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            return OpCallbacks(after_callback=self.note if op_type is Store else None)

        def note(self, **told: Any) -> None:
            assert kernel_call_path(kernels.add.fn)[0].function == "add"
            self.records.append(record(Other, name="stored", inputs=()))

        def finalize(self) -> list[Op]:
            return self.records

    launch_add(Noting())
    assert [(op["type"], op["fields"]["name"]) for op in data(api)["visualization_data"]] == [
        ("Other", "stored")
    ]


def test_missing_ops_are_looked_for_in_collect_launch(api: FlaskClient):
    """Specified: "For missing ops, verify they appear in `draw.collect_launch()` and are not filtered"."""
    launch_add(["tracer", "sanitizer", "profiler"])
    launch = triton_viz.launches[-1]
    collected = draw.collect_launch(launch, (1, 0, 0))
    drawn = data(api, program="1,0,0")["visualization_data"]
    assert [type(op).__name__ for _, op, _ in collected] == [op["type"] for op in drawn]
    assert [draw.uuid_of(launch, number, (1, 0, 0)) for number, _, _ in collected] == [
        op["uuid"] for op in drawn
    ]
    filtered = {type(one).__name__ for one in launch.records} - {op["type"] for op in drawn}
    assert {"Verdict", "KernelProfile"} <= filtered, "they are about the launch, and no program's ops"


def test_sbuf_events(api: FlaskClient):
    """sbuf events: "scratch-buffer usage events emitted by NKI flows"."""
    nki_rms_norm.rms_norm[2](np.ones((256, 64), np.float32))
    events = [one for one in triton_viz.launches[-1].records if isinstance(one, SbufEvent)]
    assert events
    timeline = api.get("/api/sbuf?program=1,0,0").get_json()
    assert timeline["total"] == len([one for one in events if one.programs.lane((1, 0, 0)) is not None])
    assert {event["memory"] for event in timeline["events"]} == {"SBUF"}


def test_tooltips(api: FlaskClient):
    """Specified: "`triton_viz/visualizer/tooltip.py`: tooltip payload helpers"."""
    launch_add(Tracer(values=True))
    tip = api.get("/api/element?tensor=out&element=5&program=1,0,0").get_json()
    assert (tip["index"], tip["value"], [by["type"] for by in tip["touched_by"]]) == ([5], 10, ["Store"])
    (launch,) = triton_viz.launches
    direct = tooltip.element_tip(launch, launch.tensors[-1], 5, (1, 0, 0), 10.0)
    assert direct.touched_by[0].uuid == tip["touched_by"][0]["uuid"]
    assert isinstance(launch.records[-1], Access)


@pytest.mark.parametrize("word", ["uuid", "type", "visualization_data", "sbuf", "histogram"])
def test_the_frontend_contract_is_documented(word: str):
    """Specified: "payload shapes are consumed by `frontend/` and documented in `frontend/GLOSSARY.md`"."""
    assert word in (ROOT / "frontend/GLOSSARY.md").read_text()


def test_every_endpoint_refreshes(api: FlaskClient):
    """Specified: "Results are cached and served by `/api/data` and related endpoints": none serves another
    launch's data.
    """
    launch_add(["tracer", "profiler", "sanitizer"])
    of_something = {f"/api/{name}" for name in ("op_code", "histogram", "tensor", "element", "programs")}
    plain = [url for url in interface.ENDPOINTS if url not in of_something]
    before = {url: api.get(url).data for url in plain}
    kernel = traced(["tracer", "profiler", "sanitizer"], kernels.row_norm)
    kernel[(4,)](torch.ones(4, 4), torch.zeros(4), 4, BLOCK=4)
    after = {url: api.get(url).data for url in plain}
    assert {url for url in plain if before[url] == after[url]} <= {"/api/sbuf"}
