"""The page's server: what it sends, and how it refuses."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
import torch
from flask.testing import FlaskClient

import triton_viz
from examples import matmul, vector_add
from tests import kernels
from triton_viz.visualizer import draw
from triton_viz.visualizer.analysis import analyze_records
from triton_viz.visualizer.interface import create_app

pytestmark = pytest.mark.usefixtures("no_launches")


@pytest.fixture
def api() -> Iterator[FlaskClient]:
    with create_app().test_client() as client:
        yield client


def test_launches_are_listed(api: FlaskClient):
    vector_add.run()
    vector_add.run(n=8)
    found = api.get("/api/launches").get_json()["launches"]
    assert [(entry["kernel"], entry["grid"], entry["records"]) for entry in found] == [
        ("vector_add", [4, 1, 1], 3),
        ("vector_add", [1, 1, 1], 3),
    ]


def test_data_holds_the_selected_program_only(api: FlaskClient):
    vector_add.run()
    data = api.get("/api/data?program=3,0,0").get_json()
    assert data["program"] == [3, 0, 0]
    assert [op["type"] for op in data["visualization_data"]] == ["Load", "Load", "Store"]
    store = data["visualization_data"][-1]
    assert (store["tensor"], store["elements"], store["masked"]) == ("out", [96, 97, 98, 99], 28)
    line = data["source"]["lines"][store["line"] - data["source"]["first_line"]]
    assert "tl.store" in line
    assert data["tensors"][0] == {"name": "x", "shape": [100], "dtype": "float32"}


def test_another_sites_name_for_this_machine_is_refused(api: FlaskClient):
    assert api.get("/api/launches", headers={"Host": "evil.example"}).status_code == 400
    assert api.get("/api/launches", headers={"Host": "localhost:8000"}).status_code == 200


def test_every_launch_can_be_picked_and_the_newest_is_first_choice(api: FlaskClient):
    vector_add.run()
    vector_add.run(n=8)
    assert api.get("/api/data").get_json()["tensors"][0]["shape"] == [8]
    ids = [launch.id for launch in triton_viz.launches]
    for id, size in zip(ids, (100, 8), strict=True):
        data = api.get(f"/api/data?launch={id}").get_json()
        assert data["tensors"][0]["shape"] == [size]


def test_payloads_have_ids_that_stay_the_same():
    vector_add.run()
    (launch,) = triton_viz.launches
    first = draw.get_visualization_data(launch, (1, 0, 0))
    assert first == draw.get_visualization_data(launch, (1, 0, 0))
    every = [uuid for x in range(4) for uuid, _ in draw.collect_launch(launch, (x, 0, 0))]
    assert len(set(every)) == 12


def test_elements_of_a_transposed_view_are_numbered_as_the_user_indexes_them():
    x, out = torch.arange(8.0).reshape(2, 4).T, torch.zeros(4, 2)
    triton_viz.trace()(kernels.copy_strided)[(1,)](x, out, *x.stride(), ROWS=4, COLUMNS=2)
    load, store = draw.get_visualization_data(triton_viz.launches[-1], (0, 0, 0))
    assert load["elements"] == store["elements"] == list(range(8))


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
    triton_viz.trace()(kernels.shift)[(1,)](view(torch.arange(16.0)), torch.zeros(4), by, BLOCK=4)
    load = api.get("/api/data").get_json()["visualization_data"][0]
    assert (load["elements"], load["outside"]) == (elements, outside)


def test_a_dot_carries_its_shapes(api: FlaskClient):
    matmul.run(16, 16, 16)
    ops = api.get("/api/data").get_json()["visualization_data"]
    dot = next(op for op in ops if op["type"] == "Dot")
    assert (dot["left"], dot["right"], dot["result"]) == ([16, 16], [16, 16], [16, 16])


def test_analysis_adds_up_the_traffic_of_all_programs():
    vector_add.run()
    (launch,) = triton_viz.launches
    assert analyze_records(launch, launch.records) == [
        {"type": kind, "tensor": name, "ops": 4, "elements": 100, "masked": 28, "bytes": 400}
        for kind, name in (("Load", "x"), ("Load", "y"), ("Store", "out"))
    ]


@pytest.mark.parametrize(
    ("url", "status", "message"),
    [
        ("/api/data?launch=999999", 404, "There is no launch 999999"),
        ("/api/data?program=9,0,0", 404, "has no (9, 0, 0)"),
        ("/api/data?program=1", 400, "three numbers such as 0,0,0, not '1'"),
        ("/api/data?program=a,b,c", 400, "three numbers"),
        ("/api/data?program=-1,0,0", 400, "three numbers"),
        ("/api/nothing", 404, ""),
        ("/../pyproject.toml", 404, ""),
        ("/%2e%2e/pyproject.toml", 404, ""),
    ],
)
def test_bad_requests_get_a_json_error(api: FlaskClient, url: str, status: int, message: str):
    vector_add.run()
    answer = api.get(url)
    assert answer.status_code == status
    assert message in answer.get_json()["error"]


def test_no_launch_yet_is_said(api: FlaskClient):
    assert api.get("/api/launches").get_json() == {"launches": []}
    answer = api.get("/api/data")
    assert (answer.status_code, answer.get_json()) == (404, {"error": "No kernel was traced yet."})


def test_launch_serves_on_loopback_from_a_thread(capsys: pytest.CaptureFixture[str]):
    vector_add.run()
    address = triton_viz.launch(port=0, block=False, open_browser=False)
    assert address.startswith("http://127.0.0.1:")
    assert address in capsys.readouterr().out
    with urllib.request.urlopen(address + "api/launches", timeout=10) as answer:
        assert len(json.load(answer)["launches"]) == 1
    with urllib.request.urlopen(address, timeout=10) as answer:
        assert b"<html" in answer.read().lower()
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(address + "absent.js", timeout=10)


def test_without_a_port_a_free_one_is_taken(monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        usual = taken.getsockname()[1]
        monkeypatch.setattr("triton_viz.visualizer.interface.USUAL_PORT", usual)
        address = triton_viz.launch(block=False, open_browser=False)
    assert address != f"http://127.0.0.1:{usual}/"
    with urllib.request.urlopen(address, timeout=10) as answer:
        assert answer.status == 200


def test_a_taken_port_is_refused_politely():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} is taken: choose another, or 0"):
            triton_viz.launch(port=port, block=False, open_browser=False)
