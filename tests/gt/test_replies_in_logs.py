"""The replies in the instruction log: one to the client for each of its requests, with its real size."""

import re
from pathlib import Path

import pytest

from tests.programs import run_python

PROGRAM = """
import gt
{start}
a = gt.ones(128, 64) + 1
b = gt.ones(64, 32)
c = (a @ b).T
assert c.numpy().shape == (32, 128)
assert a.sum().item() == 128 * 64 * 2
del a, b, c
"""
STARTS = [
    "gt.init(engine='numpy')",
    "gt.init(workers=1, engine='numpy')",
    "gt.init(workers=3, engine='numpy', shard_threshold=16)",
]


def lines(log: Path, event: str) -> list[tuple[str, str, str]]:
    """Command, size and subject of each line of an event."""
    found = [re.split(r" *\| *", line, maxsplit=6) for line in log.read_text().splitlines()]
    return [(one[4], one[5], one[6].split()[0]) for one in found if one[2] == event]


@pytest.mark.parametrize("start", STARTS)
def test_each_request_has_one_reply_to_its_client_over_any_number_of_workers(tmp_path: Path, start: str):
    log = tmp_path / "gt.log"
    run_python("-c", PROGRAM.format(start=start), environment={"GT_INSTRUCTION_LOG": str(log)})
    requests = [(command, subject) for command, _, subject in lines(log, "RECV")]
    replies = [(command, subject) for command, _, subject in lines(log, "SEND")]
    assert replies == requests
    assert {command for command, _ in requests} >= {"CreateTensor", "BinaryOp", "GetData", "FreeTensor"}


@pytest.mark.parametrize("start", STARTS)
def test_the_size_of_a_reply_is_that_of_its_data(tmp_path: Path, start: str):
    log = tmp_path / "gt.log"
    run_python("-c", PROGRAM.format(start=start), environment={"GT_INSTRUCTION_LOG": str(log)})
    read = [size for command, size, _ in lines(log, "SEND") if command == "GetData"]
    assert read == ["16KB", "4B"]
    parts = [size for command, size, _ in lines(log, "WORKER_RECV") if command == "WorkerGetData"]
    assert len(parts) == (4 if "workers=3" in start else 2)
    assert not [one for one in lines(log, "SEND") + lines(log, "WORKER_RECV") if one[1] == "0B"]


def test_a_request_that_fails_has_one_reply_with_the_cause(tmp_path: Path):
    log = tmp_path / "gt.log"
    code = """
import gt
gt.init(workers=2, engine="numpy", shard_threshold=16)
x = gt.ones(1 << 45)
try:
    (x + 1).tolist()
except gt.errors.WorkerError:
    print("failed")
"""
    assert run_python("-c", code, environment={"GT_INSTRUCTION_LOG": str(log)}).stdout == "failed\n"
    (reply,) = [line for line in log.read_text().splitlines() if re.search(r"\| SEND .*\| GetData ", line)]
    assert "FAILED " in reply
    assert re.search(r"\| +\d{2,}B \|", reply), "the size of the message"
