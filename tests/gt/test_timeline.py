"""The tape as a page, a picture, a trace for Perfetto and a table in the terminal."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gt.client import Client
from gt.client.connection import RemoteConnection
from gt.dispatcher.instruction_stream import InstructionStream
from gt.inspect import timeline, top
from gt.inspect.picture import draw
from gt.inspect.tape import read_line, read_tape
from gt.stream.instructions import Site
from tests.gt.helpers.servers import Cluster
from tests.programs import ROOT, TIMEOUT, run_python

TRAINING = """
import gt, numpy as np
gt.init(workers=2, engine="numpy")
model = gt.nn.Sequential(gt.nn.Linear(8, 16), gt.nn.ReLU(), gt.nn.Linear(16, 2))
optimizer = gt.optim.SGD(model.parameters(), lr=0.1)
x, y = gt.tensor(np.ones((32, 8), "f4")), gt.tensor(np.ones((32, 2), "f4"))
for step in range(8):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    loss.item()
"""
SEED = """\
1.608s | #0011 | RECV         | CLIENT 006b8b4568  | BinaryOp        | 117B | result=2 op=add left=0 right=1
1.609s | #0012 | WORKER_SEND  | WORKER auto_worker | WorkerBinaryOp  | 152B | op=add result=006b8b4568_2
1.612s | #0013 | WORKER_RECV  | WORKER auto_worker | WorkerBinaryOp  |  91B | success=True
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tape of a model that is trained on two workers."""
    path = tmp_path_factory.mktemp("tape") / "gt.log"
    environment = {"GT_INSTRUCTION_LOG": str(path), "PYTHONPATH": str(ROOT)}
    run_python("-c", TRAINING, cwd=path.parent, environment=environment)
    return path


def test_a_tape_of_a_training_run_is_parsed(log: Path):
    tape = read_tape(log.read_text().splitlines())
    assert tape.unread == 0
    assert (tape.clients, sorted(tape.workers)) == (["c1"], ["worker_0", "worker_1"])
    sent = [e for e in tape.entries if e.event == "WORKER_SEND" and "HotPath" not in e.command]
    assert len(tape.spans) == len(sent)
    for span in tape.spans:
        assert span.sent <= span.start <= span.end
    computed = [span for span in tape.spans if span.label == "linear"]
    assert len(computed) >= 16
    assert all(span.received is not None and span.received <= span.sent for span in computed)
    for worker in tape.workers:
        mine = [span for span in tape.spans if span.worker == worker]
        assert all(a.end <= b.start + 1e-9 for a, b in itertools.pairwise(mine))


def test_the_seeds_own_lines_are_read():
    tape = read_tape(SEED.splitlines())
    (span,) = tape.spans
    assert (span.label, span.client, span.worker) == ("add", "006b8b4568", "auto_worker")
    assert (span.received, span.start, span.end, span.size) == (1.608, 1.609, 1.612, 152)
    assert tape.shares()[0][:3] == ("006b8b4568", 1, 117)


@pytest.mark.parametrize(
    "line", ["", "hello", "1s | 2 | 3", "x | #1 | RECV | CLIENT c | Op | 1B | ", "|" * 9]
)
def test_lines_in_another_format_are_counted_and_left_out(line: str):
    assert read_line(line) is None
    tape = read_tape([line, *SEED.splitlines()])
    assert (len(tape.entries), tape.unread) == (3, bool(line))


def test_the_lines_that_are_kept_come_in_pieces():
    stream = InstructionStream()
    for client in ("c1", "watcher", "c2"):
        stream.add("CONNECT", f"CLIENT {client}", client)
        stream.add("RECV", f"CLIENT {client}", client, [Site(1, "here"), Site(2, "there")])
    text, first, end = stream.since(0, skip="CLIENT watcher")
    lines = [read_line(line) for line in text.splitlines()]
    assert [line.sequence for line in lines if line] == [0, 1, 2, 6, 7, 8]
    assert (first, end) == (0, 9)
    assert stream.since(end) == ("", 9, 9)
    assert stream.since(10**9) == ("", 9, 9)
    # A small piece is one that passed together; the next begins where it ends.
    text, first, end = stream.since(1, most=1)
    assert ([line.split("|")[1].strip() for line in text.splitlines()], first, end) == (
        ["#0001", "#0002"],
        1,
        3,
    )


def test_the_oldest_lines_are_not_kept():
    stream = InstructionStream()
    for _ in range(30):
        stream.add("RECV", "CLIENT c1", "c1", [Site(1, "here")] * 1000)
    _, first, end = stream.since(0, most=1)
    assert first > 0
    assert end == first + 1000


HOT = """\
1.000s | #0001 | WORKER_SEND  | WORKER w0 | WorkerBinaryOp     | 1B | result=c1_2 op=add
1.000s | #0002 | WORKER_SEND  | WORKER w0 | WorkerBinaryOp     | 1B | result=c1_3 op=mul
1.010s | #0003 | WORKER_RECV  | WORKER w0 | WorkerHotPathStart | 0B | sequence=ab12 success=True
1.010s | #0004 | WORKER_RECV  | WORKER w0 | WorkerHotPathEnd   | 0B | sequence=ab12 complete=True success=True
1.010s | #0005 | WORKER_RECV  | WORKER w0 | WorkerHotPathStart | 0B | sequence=cd34 success=True
1.010s | #0006 | WORKER_RECV  | WORKER w0 | WorkerBinaryOp     | 0B | result=c1_2 success=True
1.010s | #0007 | WORKER_RECV  | WORKER w0 | WorkerBinaryOp     | 0B | result=c1_3 success=True
1.020s | #0008 | WORKER_RECV  | WORKER w0 | WorkerHotPathEnd   | 0B | sequence=cd34 complete=False
1.030s | #0009 | WORKER_RECV  | WORKER w0 | WorkerHotPathStart | 0B | sequence=ab12 success=True
"""


def test_hot_paths_begin_with_the_chunk_that_they_came_with(tmp_path: Path):
    tape = read_tape(HOT.splitlines())
    assert len(tape.spans) == 2
    assert tape.hot_paths == [
        ("w0", "ab12", 1.0, 1.01, True),
        ("w0", "cd34", 1.0, 1.02, False),
        ("w0", "ab12", 1.03, 1.03, False),
    ]
    assert (np.asarray(draw(tape)) == (252, 211, 77)).all(axis=-1).any()
    (tmp_path / "hot.log").write_text(HOT)
    assert timeline.main([str(tmp_path / "hot.log"), "--perfetto", str(tmp_path / "out.json")]) == 0
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert [e["args"]["sequence"] for e in events if e["name"] == "hot path"] == ["ab12", "cd34", "ab12"]


def test_a_bar_in_an_error_is_part_of_the_error():
    failed = SEED.replace("success=True", "FAILED it | broke")
    assert read_tape(failed.splitlines()).spans[0].failed == "it | broke"


def test_the_page_is_one_file_with_the_log_inside(log: Path, tmp_path: Path):
    target = tmp_path / "timeline.html"
    assert timeline.main([str(log), "-o", str(target)]) == 0
    html = target.read_text()
    assert "./assets/" not in html
    (tape,) = re.findall(r"window\.TAPE = (\{.*\});</script>", html)
    assert json.loads(tape) == {"name": "gt.log", "text": log.read_text()}


def test_a_log_cannot_put_a_script_into_the_page():
    html = timeline.page("x.log", "</script><script>alert(1)</script>")
    assert "<script>alert" not in html


def test_the_picture_is_a_png_with_a_lane_for_each_process(log: Path, tmp_path: Path):
    target = tmp_path / "timeline.png"
    assert timeline.main([str(log), "-o", str(target)]) == 0
    with Image.open(target) as opened:
        assert opened.format == "PNG"
        picture = np.asarray(opened.convert("RGB"))
    height = len(picture)
    tape = read_tape(log.read_text().splitlines())
    assert (picture == np.asarray(draw(tape))).all()
    lanes = [*tape.clients, "dispatcher", *tape.workers]
    assert height == 36 + 40 * len(lanes) + 8
    busy = 36 + 40 * lanes.index("worker_0") + 20
    assert len(np.unique(picture[busy, 150:], axis=0)) > 1


def test_perfetto_gets_spans_and_arrows(log: Path, tmp_path: Path):
    target = tmp_path / "out.json"
    assert timeline.main([str(log), "--perfetto", str(target)]) == 0
    events = json.loads(target.read_text())["traceEvents"]
    names = {event["args"]["name"]: event["pid"] for event in events if event["ph"] == "M"}
    assert {"dispatcher", "client c1", "worker worker_0", "worker worker_1"} == set(names)
    spans = [event for event in events if event["ph"] == "X" and event["pid"] == names["worker worker_0"]]
    assert {"linear", "relu"} <= {span["name"] for span in spans}
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert all(starts[number]["ts"] <= ends[number]["ts"] for number in starts)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["absent.log", "-o", "x.html"], 1, "No such file"),
        (["empty.log", "-o", "x.html"], 1, "empty.log has no line of an instruction log"),
        (["empty.log", "-o", "x.pdf"], 2, "x.pdf is neither a .html nor a .png"),
        (["empty.log"], 2, "nothing to write: give -o FILE.html"),
        ([], 2, "give either an instruction log, or a running server's port with -p"),
        (["-p", "1", "-o", "x.html"], 2, "-o and --perfetto are for a log"),
    ],
)
def test_invalid_inputs_are_errors(arguments, status, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("empty.log").write_text("nothing of ours\n")
    try:
        found = timeline.main(arguments)
    except SystemExit as exit:
        found = exit.code
    assert (found, message in capsys.readouterr().err) == (status, True)


def test_top_shows_a_running_server(pytorch_cluster: Cluster, capsys: pytest.CaptureFixture[str]):
    client = Client(RemoteConnection(pytorch_cluster.address, timeout=TIMEOUT))
    host, _, port = pytorch_cluster.address.removeprefix("tcp://").rpartition(":")
    assert top.main(["--host", host, "-p", port, "--once"]) == 0
    shown = capsys.readouterr().out
    assert "dispatcher at" in shown
    assert "pytorch" in shown
    assert "1 worker" in shown
    client.close()


def test_top_shows_a_log(log: Path, capsys: pytest.CaptureFixture[str]):
    assert top.main(["--log", str(log), "--once"]) == 0
    shown = capsys.readouterr().out
    assert "c1" in shown
    assert "worker_0" in shown


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "give either a server's port with -p, or an instruction log with --log"),
        (["--log", "absent.log", "--once"], 1, "No such file"),
        (["--log", "x", "--every", "0"], 2, "--every is a number of seconds above 0"),
    ],
)
def test_top_errors_name_the_missing_server_or_file(arguments, status, message, capsys):
    try:
        found = top.main(arguments)
    except SystemExit as exit:
        found = exit.code
    assert (found, message in capsys.readouterr().err) == (status, True)
