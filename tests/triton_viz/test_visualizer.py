"""The page's server: its payloads, and its errors."""

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from flask.testing import FlaskClient

import triton_viz
from benchmarks.kernels import WORKLOADS
from examples import matmul, vector_add
from tests.programs import ROOT
from tests.triton_viz.helpers import kernels
from tests.triton_viz.helpers.page_answers import api, cells
from tools import page_types
from triton_viz.core.data import Site
from triton_viz.visualizer import draw, interface, tape
from triton_viz.visualizer.analysis import analyze_records
from triton_viz.visualizer.interface import create_app
from triton_viz.visualizer.payloads import PAYLOADS, Profile

__all__ = ["api"]  # a fixture
pytestmark = pytest.mark.usefixtures("no_launches")


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
    assert (data["first"], data["total"], data["sbuf"]) == (0, 3, 0)
    store = data["visualization_data"][-1]
    assert (store["tensor"], store["touched"], store["masked"], store["bytes"]) == ("out", 4, 28, 16)
    line = data["source"]["lines"][store["line"] - data["source"]["first_line"]]
    assert "tl.store" in line
    (site,) = data["paths"][store["path"]]
    assert (site["file"], site["function"], site["line"]) == ("vector_add.py", "vector_add", store["line"])
    tensor = data["tensors"][0]
    assert (tensor["name"], tensor["shape"], tensor["dtype"], tensor["strides"]) == (
        "x",
        [100],
        "float32",
        [1],
    )


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
    again = draw.get_visualization_data(launch, (1, 0, 0))
    assert first.visualization_data == again.visualization_data
    assert list(first.raw_tensor_data) == list(again.raw_tensor_data)
    every = [
        op.uuid for x in range(4) for op in draw.get_visualization_data(launch, (x, 0, 0)).visualization_data
    ]
    assert len(set(every)) == 12


def test_a_dot_carries_its_shapes_and_leads_to_its_tiles(api: FlaskClient):
    matmul.run(16, 16, 32)
    ops = api.get("/api/data").get_json()["visualization_data"]
    by_uuid = {op["uuid"]: op for op in ops}
    dots = [op for op in ops if op["type"] == "Dot"]
    assert (dots[0]["left"], dots[0]["right"], dots[0]["result"]) == ([16, 16], [16, 16], [16, 16])
    assert [dot["iterations"][0][1] for dot in dots] == [0, 1]
    for number, dot in enumerate(dots):
        left, right, result = (by_uuid[dot[f"{side}_op"]] for side in ("left", "right", "result"))
        assert (left["tensor"], right["tensor"], result["tensor"]) == ("a", "b", "c")
        assert left["iterations"] == right["iterations"] == [[ops[0]["iterations"][0][0], number]]


def test_a_record_that_the_page_has_no_type_for_is_sent_with_its_fields(api: FlaskClient):
    x, out = torch.randn(2, 8), torch.zeros(2)
    triton_viz.trace()(kernels.row_norm)[(2,)](x, out, 8, BLOCK=8)
    ops = api.get("/api/data?program=1,0,0").get_json()["visualization_data"]
    (reduce,) = [op for op in ops if op["type"] == "Reduce"]
    assert (reduce["fields"]["input"], reduce["fields"]["axis"]) == ([8], 0)


def test_where_an_op_is_leads_through_the_functions_that_were_called(api: FlaskClient):
    triton_viz.trace()(kernels.row_norm)[(1,)](torch.randn(1, 8), torch.zeros(1), 8, BLOCK=8)
    load = api.get("/api/data").get_json()["visualization_data"][0]
    frames = api.get(f"/api/op_code?uuid={load['uuid']}").get_json()["frames"]
    assert [(frame["file"], frame["function"]) for frame in frames] == [
        ("kernels.py", "row_norm"),
        ("kernels.py", "load_row"),
    ]
    texts = [frame["lines"][frame["line"] - frame["first_line"]].strip() for frame in frames]
    assert texts[0].startswith("values = load_row(")
    assert texts[1].startswith("return tl.load(")


def test_a_trace_file_cannot_make_the_server_read_other_files_than_sources(api: FlaskClient, tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret")
    vector_add.run()
    (launch,) = triton_viz.launches
    forged = (Site(str(secret), 1, "elsewhere"),)
    launch.records[0] = msgspec.structs.replace(launch.records[0], call_path=forged)
    answer = api.get(f"/api/op_code?uuid={launch.id}-0-0.0.0")
    assert answer.status_code == 200
    assert answer.get_json()["frames"][0]["lines"] == []


def test_analysis_adds_up_the_traffic_of_all_programs(api: FlaskClient):
    vector_add.run()
    (launch,) = triton_viz.launches
    rows = [
        {"type": kind, "tensor": name, "ops": 4, "elements": 100, "masked": 28, "bytes": 400}
        for kind, name in (("Load", "x"), ("Load", "y"), ("Store", "out"))
    ]
    assert [msgspec.to_builtins(row) for row in analyze_records(launch)] == rows
    assert api.get("/api/traffic").get_json() == {"analysis": rows}


def test_lines_have_the_heat_of_all_programs(api: FlaskClient):
    x = torch.ones(10)
    clients = ["tracer", "sanitizer"]
    triton_viz.trace(clients)(kernels.add_unmasked)[(3,)](x, x.clone(), torch.ones(10), 10, BLOCK=4)
    (line,) = api.get("/api/lines").get_json()["lines"]
    counts = {name: line[name] for name in ("ops", "bytes", "elements", "masked", "issues")}
    assert counts == {"ops": 9, "bytes": 120, "elements": 30, "masked": 6, "issues": 3}


def test_issues_lead_to_their_program_line_and_element(api: FlaskClient):
    x = torch.ones(10)
    clients = ["tracer", "sanitizer", "race_detector"]
    triton_viz.trace(clients)(kernels.add_unmasked)[(3,)](x, x.clone(), torch.ones(10), 10, BLOCK=4)
    found = api.get("/api/issues").get_json()
    assert found["checked"]
    issue = found["issues"][0]
    assert (issue["kind"], issue["tensor"], issue["program"]) == ("out of bounds", "x", [2, 0, 0])
    ops = api.get("/api/data?program=2,0,0").get_json()["visualization_data"]
    assert issue["op"] == ops[0]["uuid"]
    assert [verdict["verdict"] for verdict in found["verdicts"]] == ["violation"] * 3
    vector_add.run()
    assert api.get("/api/issues").get_json() == {"issues": [], "verdicts": [], "checked": False}


def test_the_profile_is_the_profilers_report_or_nothing(api: FlaskClient):
    vector_add.run()
    assert api.get("/api/profile").get_json() == {"report": None, "device": None, "chip": None}
    triton_viz.trace("profiler")(kernels.add)[(2,)](torch.ones(8), torch.ones(8), torch.ones(8), 8, BLOCK=4)
    found = api.get("/api/profile").get_json()
    assert (found["report"]["loaded"], found["report"]["stored"]) == (64, 32)
    assert found["device"]["flops"] / found["device"]["bandwidth"] == found["report"]["roofline"]["ridge"]


def test_the_tape_comes_in_whole_lines_and_goes_on_where_it_ended(tmp_path: Path):
    log = tmp_path / "gt.log"
    log.write_text("one\ntwo\nthr")
    with create_app(tape_path=log).test_client() as api:
        first = api.get("/api/tape").get_json()
        assert (first["text"], first["start"], first["end"]) == ("one\ntwo\n", 0, 8)
        with log.open("a") as file:
            file.write("ee\n")
        assert api.get(f"/api/tape?start={first['end']}").get_json()["text"] == "three\n"
        assert api.get("/api/launches").get_json()["tape"]
        log.unlink()
        gone = api.get("/api/tape")
        assert (gone.status_code, gone.get_json()["error"]) == (
            404,
            "The instruction log gt.log cannot be read: No such file or directory.",
        )
    assert tape.read_slice(Path(__file__), None, most=200).text.count("\n") >= 1


def test_a_program_of_many_ops_comes_in_pieces(api: FlaskClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interface, "OPS_AT_ONCE", 4)
    matmul.run()
    pieces = [api.get(f"/api/data?first={first}").get_json() for first in (0, 4, 8)]
    assert [len(piece["visualization_data"]) for piece in pieces] == [4, 4, 2]
    assert {piece["total"] for piece in pieces} == {10}
    numbers = [int(op["uuid"].split("-")[1]) for piece in pieces for op in piece["visualization_data"]]
    assert numbers == list(range(10))


def test_a_million_programs_are_a_small_first_answer_and_small_tiles(api: FlaskClient):
    n = 16_000_000 - 5
    x, y, out = torch.ones(n), torch.ones(n), torch.zeros(n)
    triton_viz.trace()(kernels.add)[(1_000_000,)](x, y, out, n, BLOCK=16)
    first = api.get("/api/data?program=999999,0,0")
    assert len(first.data) < 10_000
    assert first.get_json()["visualization_data"][-1]["masked"] == 5
    tile = api.get("/api/tensor?tensor=x&columns=4096&across=512&down=489&bin_x=8&bin_y=8&program=500000,0,0")
    assert len(tile.data) < 1_000_000
    marked = np.argwhere(cells(tile.data) == 1).tolist()
    row, column = divmod(8_000_000, 4096)
    assert marked == [[row // 8, column // 8], [row // 8, column // 8 + 1]]
    programs = api.get("/api/programs?columns=2048&across=256&down=62&bin_x=8&bin_y=8&metric=bytes")
    assert cells(programs.data)[0, 0] == 192


def test_the_types_of_both_sides_are_the_same():
    written = {path.name: path.read_text() for path in page_types.FOLDER.iterdir()}
    assert written == page_types.typescript(), "run `python -m tools.page_types`"


def test_every_payload_is_in_the_pages_glossary():
    glossary = (ROOT / "frontend" / "GLOSSARY.md").read_text()
    for url in [*interface.ENDPOINTS, "/api/launches", "/api/tape"]:
        assert f"`GET {url}" in glossary, url
    names = re.findall(r"^  (\w+): ", "".join(page_types.typescript().values()), re.MULTILINE)
    payloads = [payload for of_file in PAYLOADS.values() for payload in of_file if payload is not Profile]
    ours = [name for payload in payloads for name in payload.__struct_fields__]
    for name in {*ours, *(n for n in names if n in ("touched", "outside", "left_op", "edges", "address"))}:
        assert f"`{name}`" in glossary or f".{name}`" in glossary, name


BY_LAUNCH = (
    *("data", "sbuf", "traffic", "lines", "histogram", "tensor", "element", "programs", "issues", "profile"),
)


def test_every_endpoint_is_tested_with_invalid_requests():
    without_launch = {"/api/op_code"}
    assert {f"/api/{name}" for name in BY_LAUNCH} | without_launch == set(interface.ENDPOINTS)


@pytest.mark.parametrize(
    ("url", "status", "message"),
    [
        ("/api/data?launch=999999", 404, "There is no launch 999999"),
        ("/api/data?program=9,0,0", 404, "has no (9, 0, 0)"),
        ("/api/data?program=1", 400, "three numbers such as 0,0,0, not '1'"),
        ("/api/data?program=a,b,c", 400, "three numbers"),
        ("/api/data?program=-1,0,0", 400, "three numbers"),
        ("/api/data?first=-1", 400, "first is an integer, not '-1'"),
        ("/api/op_code", 404, "There is no op ''"),
        ("/api/op_code?uuid=../../etc/passwd", 404, "There is no op"),
        ("/api/op_code?uuid=0-0-٣.0.0", 404, "There is no op"),
        ("/api/histogram?uuid=1-2", 404, "There is no op"),
        ("/api/histogram?tensor=x", 404, "Set triton_viz.config.values = True"),
        ("/api/histogram?tensor=x&bins=0", 400, "bins is an integer from 1 to 1000, not 0"),
        (
            "/api/tensor?tensor=absent&columns=1&across=1&down=1",
            404,
            "no tensor 'absent'; there is x, y, out",
        ),
        ("/api/tensor?tensor=x", 400, "columns is missing"),
        ("/api/tensor?tensor=x&columns=1&across=9999&down=1", 400, "across is an integer from 1 to 8192"),
        ("/api/tensor?tensor=x&columns=1&across=8000&down=8000", 400, "ask for fewer"),
        ("/api/tensor?tensor=x&columns=1&across=1&down=1&layer=x", 400, "one of marks, coverage, values"),
        ("/api/tensor?tensor=x&columns=1&across=1&down=1&layer=values", 404, "were not recorded"),
        ("/api/element?tensor=x&element=100", 400, "from 0 to 99"),
        ("/api/programs?metric=beauty&columns=1&across=1&down=1", 400, "metric is one of bytes"),
        ("/api/tape", 404, "triton_viz.launch(tape=FILE)"),
        *((f"/api/{name}?tensor=x&launch=x", 404, "There is no launch x") for name in BY_LAUNCH),
        ("/api/sbuf?program=0", 400, "three numbers"),
        ("/api/tensor?tensor=x&columns=1&across=1&down=1&until=a", 400, "until is an integer, not 'a'"),
        ("/api/histogram?uuid=%00", 404, "There is no op"),
        ("/api/tape?start=x", 404, "triton_viz.launch(tape=FILE)"),
        ("/assets/../../errors.py", 404, ""),
        ("/assets/%2e%2e/%2e%2e/errors.py", 404, ""),
        ("/..%2f..%2fpyproject.toml", 404, ""),
        ("//etc/passwd", 400, ""),
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


def test_no_launch_is_an_error(api: FlaskClient):
    assert api.get("/api/launches").get_json() == {"launches": [], "tape": False}
    answer = api.get("/api/data")
    assert (answer.status_code, answer.get_json()) == (404, {"error": "No kernel was traced yet."})


def test_a_512_cubed_product_is_a_small_first_answer(api: FlaskClient):
    work = WORKLOADS["matmul"]()
    triton_viz.trace()(work.kernel)[work.grid](**work.arguments)
    data = api.get("/api/data?program=5,0,0")
    assert len(data.data) < 100_000
    ops = data.get_json()["visualization_data"]
    assert {op["type"] for op in ops} == {"Load", "Dot", "Store"}
    steps = {op["iterations"][0][1] for op in ops if op["iterations"]}
    assert steps == set(range(len(steps)))
