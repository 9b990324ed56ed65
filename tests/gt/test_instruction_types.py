"""A type of instruction is added by a struct, a row of the instruction table, and an executor."""

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from gt.client import Client
from gt.errors import ProtocolError, WorkerError
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream import instruction_table
from gt.stream.instruction_table import CLIENT, DISPATCHER, INSTRUCTION_TABLE, Row
from gt.stream.instructions import Op
from gt.worker.executors import EXECUTORS, Execution, Executor
from tests.gt.helpers.threads import ThreadConnection, ThreadServer
from tests.programs import TIMEOUT


class Negate(msgspec.Struct, frozen=True, array_like=True):
    """`TENSOR[result] := -TENSOR[tensor]`, and nothing that gt has."""

    tensor: int
    result: int


class Note(msgspec.Struct, frozen=True, array_like=True):
    """About no tensor."""

    text: str


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
    both = frozenset({CLIENT, DISPATCHER})
    instruction_table.register(
        Row(
            Negate,
            both,
            lambda one, prefix: ("Negate", f"result={prefix}{one.result}", f"input={prefix}{one.tensor}"),
            reads=lambda one: (one.tensor,),
            makes=lambda one: (one.result,),
        )
    )
    instruction_table.register(Row(Note, both, lambda one, prefix: ("Note", "", one.text), in_sequence=True))
    EXECUTORS[Negate] = Executor(negate)
    EXECUTORS[Note] = Executor(lambda run, order: heard.append((run.worker.name, order.text)))
    heard.clear()
    yield
    for kind in (Negate, Note):
        instruction_table.unregister(kind)
        del EXECUTORS[kind]


@pytest.fixture
def client() -> Iterator[Client]:
    found = Client(LocalConnection(LocalServer()))
    yield found
    found.close()


def test_workers_have_an_executor_for_every_instruction_that_is_issued_to_them():
    issued = {row.type for row in INSTRUCTION_TABLE.values() if row.origins & {CLIENT, DISPATCHER}}
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
