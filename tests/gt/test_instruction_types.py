"""A type of instruction is a struct with its row of the instruction table, and an executor."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gt.client import Client
from gt.errors import ProtocolError, WorkerError
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream.instruction_table import (
    ANY_SENDER,
    INSTRUCTION_TABLE,
    EntryText,
    its_result,
    its_tensor,
    row,
    unregister,
)
from gt.stream.instructions import Op
from gt.worker.executors import EXECUTORS, Execution, Executor
from tests.gt.helpers.threads import ThreadConnection, ThreadServer
from tests.programs import ROOT, TIMEOUT, run_python


class Negate(msgspec.Struct, frozen=True, array_like=True):
    """`TENSOR[result] := -TENSOR[tensor]`, and nothing that gt has."""

    tensor: int
    result: int

    def words(self, prefix: str) -> EntryText:
        return "Negate", f"result={prefix}{self.result}", f"input={prefix}{self.tensor}"


class Note(msgspec.Struct, frozen=True, array_like=True):
    """About no tensor."""

    text: str

    def words(self, prefix: str) -> EntryText:
        return "Note", "", self.text


def emit(client: Client, instruction: Any) -> None:
    """Issue an instruction of a type that gt does not declare."""
    client.emit(instruction)


heard: list[tuple[str, str]] = []


def negate(run: Execution, order: Negate) -> None:
    try:
        run.state.values[order.result] = -run.state.values[order.tensor]
    except Exception as error:  # noqa: BLE001 - as executors do
        run.failed.append(run.worker.fail(run.state, order.result, "Negate", error))


@pytest.fixture(autouse=True)
def added() -> Iterator[None]:
    row(*ANY_SENDER, reads=its_tensor, makes=its_result)(Negate)
    row(*ANY_SENDER, in_sequence=True)(Note)
    EXECUTORS[Negate] = Executor(negate)
    EXECUTORS[Note] = Executor(lambda run, order: heard.append((run.worker.name, order.text)))
    heard.clear()
    yield
    for kind in (Negate, Note):
        unregister(kind)
        del EXECUTORS[kind]


@pytest.fixture
def client() -> Iterator[Client]:
    found = Client(LocalConnection(LocalServer()))
    yield found
    found.close()


def test_workers_have_an_executor_for_every_instruction_that_is_issued_to_them():
    issued = {one.type for one in INSTRUCTION_TABLE.values() if {*ANY_SENDER} & {*one.origins}}
    assert issued - {int, Op} == set(EXECUTORS)


def test_a_new_type_is_checked_tracked_logged_executed_and_freed(client: Client):
    x = client.create(np.arange(3.0))
    result = client.next_id()
    emit(client, Negate(x, result))
    assert client.fetch(result).tolist() == [0, -1, -2]
    lines = [line for line in client.get_instruction_tape() if "Negate" in line]
    events = [line.split(" | ")[2].strip() for line in lines]
    assert events == ["RECV", "WORKER_SEND", "WORKER_RECV", "SEND"]
    assert f"result={result} input={x}" in lines[0]
    client.emit(result)
    client.emit(x)
    assert client.get_dispatcher_stats()["handles"] == 0


def test_its_failure_is_that_of_its_result(client: Client):
    a, b = client.create(np.ones(2)), client.create(np.ones(3))
    failed, result = client.next_id(), client.next_id()
    client.emit(Op(failed, "matmul", (a, b), None, 0))
    emit(client, Negate(failed, result))
    with pytest.raises(WorkerError, match="Negate failed"):
        client.fetch(result)


def test_one_that_names_a_tensor_which_does_not_exist_is_refused(client: Client):
    emit(client, Negate(1234, client.next_id()))
    with pytest.raises(ProtocolError, match="Tensor not found: client c1 has no tensor 1234"):
        client.flush()


@pytest.fixture
def spread() -> Iterator[Client]:
    server = ThreadServer(workers=2)
    client = Client(ThreadConnection(server))
    yield client
    client.close()
    server.close()


def test_over_several_workers_one_without_tensors_goes_to_all(spread: Client):
    emit(spread, Note("hello"))
    x = spread.create(np.arange(3.0))
    assert spread.fetch(x).tolist() == [0, 1, 2]
    deadline = time.monotonic() + TIMEOUT
    while len(heard) < 2 and time.monotonic() < deadline:  # the other worker has nothing to answer
        time.sleep(0.01)
    assert sorted(heard) == [("worker_0", "hello"), ("worker_1", "hello")]


def test_over_several_workers_one_with_tensors_needs_a_handler(spread: Client):
    x, result = spread.create(np.arange(3.0)), spread.next_id()
    emit(spread, Negate(x, result))
    with pytest.raises(WorkerError, match="Negate cannot be used with several workers"):
        spread.fetch(result)


STRUCT = """
@row(*ANY_SENDER, reads=its_tensor, makes=its_result)
class Negate(Sent, frozen=True, tag=99):
    tensor: int
    result: int


if TYPE_CHECKING:
"""
EXECUTOR = """
def _negate(run: Execution, one: Any) -> None:
    run.state.values[one.result] = -run.state.values[one.tensor]


EXECUTORS: dict[type, Executor] = {
    instructions.Negate: Executor(_negate),
"""
PROGRAM = """
import numpy as np, gt
from gt.stream.instructions import Negate

client = gt.init(workers=1, engine="numpy")
x, result = client.create(np.arange(3.0)), client.next_id()
client.emit(Negate(x, result))
lines = [line for line in client.get_instruction_tape() if "Negate" in line]
print(client.fetch(result).tolist(), len(lines))
"""


def test_a_type_that_is_sent_between_processes_is_added_in_two_places(tmp_path: Path):
    shutil.copytree(ROOT / "gt", tmp_path / "gt", ignore=shutil.ignore_patterns("__pycache__"))
    for name, before, after in (
        ("stream/instructions.py", "\nif TYPE_CHECKING:\n", STRUCT),
        ("worker/executors.py", "\nEXECUTORS: dict[type, Executor] = {\n", EXECUTOR),
        (
            "worker/executors.py",
            "\nfrom gt.stream.repeats",
            "\nfrom gt.stream import instructions\nfrom gt.stream.repeats",
        ),
    ):
        source = tmp_path / "gt" / name
        text = source.read_text()
        assert text.count(before) == 1
        source.write_text(text.replace(before, after))
    run = run_python("-c", PROGRAM, cwd=tmp_path, environment={"PYTHONPATH": str(tmp_path)})
    assert run.stdout.strip() == "[-0.0, -1.0, -2.0] 4", "RECV, WORKER_SEND, WORKER_RECV and SEND"
