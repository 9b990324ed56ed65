"""The instruction log and the debug output: one line per instruction, and silence by default."""

import re
import subprocess
from pathlib import Path

import pytest

import gt
from gt.server.embedded import LocalServer
from tests.programs import ROOT, run_python

SCRIPT = "import gt; {start}; a = gt.tensor([1.0, 2.0]); print((a + a).sum().item())"
LINE = re.compile(
    r"^ *\d+\.\d{3}s \| #\d{4,} \| (RECV|SEND|WORKER_SEND|WORKER_RECV|CONNECT|DISCONNECT) *"
    r"\| (CLIENT|WORKER) \S+ *\| \w* *\| +\S+(B|KB|MB) \| .*$"
)


def run(start: str = "gt.init(engine='numpy')", **environment: str) -> subprocess.CompletedProcess[str]:
    """What a small program printed. Its engine makes no difference, and PyTorch takes seconds to import."""
    return run_python("-c", SCRIPT.format(start=start), environment=environment)


def test_the_log_has_one_line_per_instruction_and_hop(tmp_path: Path):
    log = tmp_path / "gt.log"
    run(GT_INSTRUCTION_LOG=str(log))
    lines = log.read_text().splitlines()
    assert all(LINE.match(line) for line in lines)

    fields = [[field.strip() for field in line.split("|")] for line in lines]
    assert [f[1] for f in fields] == [f"#{n:04d}" for n in range(len(fields))]
    assert (fields[0][2], fields[-1][2]) == ("CONNECT", "DISCONNECT")
    hops = [(event, command) for _, _, event, _, command, *_ in fields]
    way = [("RECV", "BinaryOp"), ("WORKER_SEND", "WorkerBinaryOp"), ("WORKER_RECV", "WorkerBinaryOp")]
    places = [hops.index(hop) for hop in way]
    assert places == sorted(places)
    assert [c for e, c in hops if e == "RECV" and c not in ("FreeTensor", "Site")] == [
        "CreateTensor",
        "BinaryOp",
        "ReduceOp",
        "GetData",
    ]
    text = log.read_text()
    assert "| tensor_id=0 shape=2 dtype=float32" in text
    assert "| result=1 op=add left=0 right=0" in text
    assert "| result=2 op=sum input=1 dim=None keepdim=False" in text
    assert "| result=c1_1 success=True" in text


def test_the_attributes_of_an_op_are_on_the_tape(tmp_path: Path, monkeypatch, server: LocalServer):
    log = tmp_path / "gt.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    (gt.zeros(2, 3) - 1.5).sum(dim=1).tolist()
    text = log.read_text()
    assert "op=full shape=2x3 value=0 dtype=float32" in text
    assert "op=sub input=0 scalar=1.5 reflected=False" in text
    assert "op=sum input=1 dim=1 keepdim=False" in text


def test_a_log_that_cannot_be_written_is_reported_once_and_the_tape_stays_complete(
    monkeypatch, server: LocalServer, capsys
):
    x = gt.ones(2)
    monkeypatch.setenv("GT_INSTRUCTION_LOG", "/no/such/folder/gt.log")
    assert (x + 1).tolist() == [2, 2]
    assert (x + 2).tolist() == [3, 3]
    log = "/no/such/folder/gt.log"
    expected = f"[gt] cannot write the instruction log GT_INSTRUCTION_LOG={log}: No such file or directory\n"
    assert capsys.readouterr().err == expected


def test_the_log_may_be_enabled_after_the_import(tmp_path: Path, monkeypatch, server: LocalServer):
    gt.ones(1).tolist()
    log = tmp_path / "late.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    (gt.ones(2) + 1).tolist()
    monkeypatch.delenv("GT_INSTRUCTION_LOG")
    gt.ones(3).tolist()
    assert log.read_text().count("op=add") == 2
    assert "op=full" in log.read_text()
    assert log.read_text().count("op=full") == 2


def test_the_log_of_local_processes_follows_the_program(tmp_path: Path):
    code = """
import gt, os
gt.init(workers=1, engine="numpy")
(gt.ones(1) + 1).tolist()
os.environ["GT_INSTRUCTION_LOG"] = "late.log"
(gt.ones(2) * 2).tolist()
del os.environ["GT_INSTRUCTION_LOG"]
(gt.ones(3) - 1).tolist()
text = open("late.log").read()
print("op=add" in text, "op=mul" in text, "op=sub" in text, "WORKER worker_0" in text)
"""
    done = run_python("-c", code, cwd=tmp_path, environment={"PYTHONPATH": str(ROOT)})
    assert done.stdout == "False True False True\n"


def test_a_program_that_never_reads_is_on_the_tape_and_loads_no_engine(tmp_path: Path):
    """A program that ends without reading anything, as one that is being debugged does."""
    log = tmp_path / "gt.log"
    code = "import gt; gt.client.client.FLUSH_SECONDS = 60; c = gt.ones(4, 4) @ gt.ones(4, 4)"
    done = run_python("-X", "importtime", "-c", code, environment={"GT_INSTRUCTION_LOG": str(log)})
    assert "op=matmul" in log.read_text()
    assert " torch" not in done.stderr


def test_a_failure_can_be_found_in_the_log(tmp_path: Path, monkeypatch, server: LocalServer):
    log = tmp_path / "gt.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    with pytest.raises(gt.errors.WorkerError):
        gt.ones(1 << 45).tolist()
    assert re.search(r"WORKER_RECV .*FAILED full\(\), issued at \S+, failed on auto_worker", log.read_text())


def test_gt_is_silent_by_default():
    done = run(start="pass")
    assert (done.stdout, done.stderr) == ("6.0\n", "")


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("GT_VERBOSE", "[gt] worker auto_worker joined"),
        ("GT_DEBUG_CLIENT", "[gt client] BinaryOp result=1 op=add left=0 right=0"),
        ("GT_DEBUG_DISPATCHER", "[gt dispatcher] client c1 connected"),
        ("GT_DEBUG_WORKER", "[gt worker] auto_worker: c1: BinaryOp result=1 op=add"),
    ],
)
def test_each_flag_shows_its_layer_and_no_other(variable: str, expected: str):
    shown = run(**{variable: "1"}).stderr
    assert expected in shown
    assert {line.split("]")[0] for line in shown.splitlines()} == {expected.split("]")[0]}


def test_flags_that_are_zero_show_nothing():
    flags = ("GT_VERBOSE", "GT_DEBUG_CLIENT", "GT_DEBUG_DISPATCHER", "GT_DEBUG_WORKER")
    assert run(**dict.fromkeys(flags, "0")).stderr == ""


def test_uploaded_data_is_described_not_dumped():
    assert "CreateTensor tensor_id=0 shape=2 dtype=float32" in run(GT_DEBUG_CLIENT="1").stderr


def test_recent_lines_are_kept_and_bounded():
    from gt.dispatcher.instruction_stream import MAX_KEPT_LINES, InstructionStream

    stream = InstructionStream()
    for _ in range(MAX_KEPT_LINES + 5):
        stream.add("CONNECT", "CLIENT c1")
    assert len(stream.recent) == MAX_KEPT_LINES
    assert stream.recent[-1].sequence == MAX_KEPT_LINES + 4


def test_print_worker_stats(capsys: pytest.CaptureFixture[str], server: LocalServer):
    gt.ones(2).tolist()
    gt.debug.print_worker_stats()
    assert re.search(r"auto_worker\n.*total_instructions +\d+", capsys.readouterr().out, re.DOTALL)
