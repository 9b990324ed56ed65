"""Instructions that a client may not send are refused on receipt, in every mode."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gt.client import Client
from gt.errors import ProtocolError
from gt.ops import TABLE as OPS
from gt.server.embedded import LocalServer
from gt.stream import instruction_table as instructions
from gt.stream.instructions import (
    EXCHANGE_KINDS,
    ArrayData,
    Boundary,
    CreateTensor,
    Define,
    Exchange,
    GetData,
    Instruction,
    Lost,
    Op,
    Part,
    Placed,
    Replay,
    ShardOp,
    Signal,
    Site,
    Upload,
    WorkerHotPathEnd,
    WorkerHotPathStart,
)
from gt.stream.layouts import Partial, Placement, Replicated, Sharded
from gt.stream.repeats import RepeatDecoder
from gt.stream.tape_entries import Injected, LayoutEvent, UploadEntry
from gt.transport import protocol
from tests.gt.helpers.servers import Cluster, connect
from tests.gt.helpers.strangers import HELLO, Stranger
from tests.gt.helpers.threads import ThreadServer

PLACE = Placement(Replicated(), ("worker_0", "worker_1"))
ELSEWHERE = Placement(Sharded(0, (1, 1)), ("worker_1", "absent"))
EXCHANGE = Exchange("Move", 10**6, 0, 1, (2,), "float32", PLACE, ELSEWHERE, 1)
PART = Part((0,), (1,), (2,), 2)

FORGED: dict[str, Any] = {
    "Exchange": EXCHANGE,
    "ShardOp": ShardOp(0, 2, 0, 0, 1, 1),
    "a part of an upload": CreateTensor(1, ArrayData((2,), "float32", b"\0" * 8), PART),
    "reading a part": GetData(0, 0, PART),
}
"""Instructions that only the dispatcher may send to a worker."""

LOCAL: dict[str, Any] = {
    "WorkerHotPathStart": WorkerHotPathStart("s"),
    "WorkerHotPathEnd": WorkerHotPathEnd("s", True),
    "Replay": Replay(0, [], [], [], []),
    "Placed": Placed(("worker_0",), (EXCHANGE,)),
    "None": None,
    "True": True,
    "text": "add",
}
"""Instructions that are not sent between processes, or only as part of repeats."""


def full(result: int) -> Op:
    return Op(result, "full", (), {"shape": [2], "value": 1, "dtype": "float32"}, 0)


# --- random instructions of every type ---

numbers = st.integers(0, 6) | st.integers(-3, (1 << 63) - 1)
small = st.integers(-3, 6)
texts = st.sampled_from(["", "sum", "float32", "int64", "add", "\ud7ff", "x" * 50])
scalars = st.none() | st.booleans() | small | st.floats(width=32) | texts
values = scalars | st.lists(scalars | st.lists(scalars, max_size=3), max_size=3)
names = st.sampled_from(
    sorted({name for op in OPS for name in ("shape", "dim", "index", "value", "dtype", "axis", op)})
)
attrs = st.none() | st.dictionaries(names, values, max_size=4)
shapes = st.lists(small, max_size=3).map(tuple)
parts = st.none() | st.builds(Part, shapes, shapes, shapes, small)
workers = st.lists(st.sampled_from(["worker_0", "worker_1", "absent"]), max_size=3).map(tuple)
layouts = st.builds(Replicated) | st.builds(Sharded, small, shapes)
placements = st.builds(Placement, layouts | st.builds(Partial, st.sampled_from(["sum", "max", "x"])), workers)
arrays = st.builds(
    ArrayData,
    shapes,
    st.sampled_from(["float32", "int64", "object", ""]),
    st.binary(max_size=8) | small,
    texts,
)
ops = st.sampled_from([*sorted(OPS), "no_such_op"])
signals = st.builds(Signal, numbers, texts, layouts, shapes)
steps = st.lists(st.tuples(ops, shapes, attrs), max_size=3)
OF_TYPE: dict[type, st.SearchStrategy[Any]] = {
    int: numbers,
    Op: st.builds(Op, numbers, ops, st.lists(numbers, max_size=3).map(tuple), attrs, small),
    CreateTensor: st.builds(CreateTensor, numbers, arrays, parts),
    GetData: st.builds(GetData, numbers, numbers, parts),
    Site: st.builds(Site, numbers, texts),
    Lost: st.builds(Lost, st.lists(numbers, max_size=3), texts),
    Signal: signals,
    ShardOp: st.builds(ShardOp, numbers, small, small, small, small, numbers),
    Exchange: st.builds(
        Exchange, st.sampled_from(EXCHANGE_KINDS) | texts, numbers, numbers, numbers, shapes, texts,
        placements, placements, small,
    ),
    Define: st.builds(
        Define, small, steps, st.lists(small, max_size=3),
        st.lists(st.tuples(small, signals), max_size=1), st.booleans(), st.lists(small, max_size=3),
    ),
    Replay: st.builds(
        Replay, small, st.lists(numbers, max_size=3), st.lists(small, max_size=4),
        st.lists(small, max_size=3), st.lists(numbers, max_size=3),
        st.dictionaries(small, st.dictionaries(names, values, max_size=2), max_size=1),
    ),
    Boundary: st.builds(Boundary, texts, st.booleans()),
}  # fmt: skip
batches = st.lists(st.one_of(*OF_TYPE.values()), min_size=1, max_size=6).map(
    lambda rest: [full(0), full(1), *rest]
)


def forbidden(instruction: Any) -> bool:
    """Whether a client may not send it; said here without the table."""
    if isinstance(instruction, CreateTensor | GetData):
        return instruction.part is not None
    return isinstance(instruction, Exchange | ShardOp)


def test_every_instruction_that_travels_is_in_the_table_and_is_forged_here():
    travels = set(Instruction.__args__)
    assert travels == set(OF_TYPE)
    local = {Upload, WorkerHotPathStart, WorkerHotPathEnd, Injected, UploadEntry, LayoutEvent}
    assert {kind for kind in instructions.INSTRUCTION_TABLE if kind.__name__ != "Repeat"} == travels | local


# --- inside a program ---


class Link:
    """A client that listens to nothing."""

    def ack(self, sequence: int) -> None: ...
    def data(self, reply: Any) -> None: ...
    def failed(self, request: int, error: str, part: Any = None) -> None: ...
    def refused(self, error: str) -> None: ...


@contextlib.contextmanager
def program(mode: str) -> Iterator[Any]:
    """A server inside this program: what calls its dispatcher, as a transport would."""
    if mode == "embedded":
        dispatcher = LocalServer("numpy").dispatcher
        yield lambda what: what(dispatcher)
        dispatcher.stream.close()
        return
    server = ThreadServer(2, "numpy", enable_sharding=mode == "two workers")
    try:
        yield server.tell
    finally:
        server.close()


MODES = ["embedded", "two workers", "two workers without sharding"]


@pytest.fixture(scope="module", params=MODES)
def tell(request: pytest.FixtureRequest) -> Iterator[Any]:
    with program(request.param) as tell:
        yield tell


def sent_to_workers(tell: Any, client: str) -> list[str]:
    """The instructions of a client that workers were sent, by their names on the tape."""
    recent = tell(lambda dispatcher: dispatcher.stream.recent)
    return [one.command for one in recent if one.event == "WORKER_SEND" and f"={client}_" in one.details]


@pytest.mark.parametrize("forged", [*FORGED, *LOCAL])
def test_instructions_of_other_layers_are_refused_before_any_is_executed(tell: Any, forged: str):
    batch = [full(0), (FORGED | LOCAL)[forged]]
    name = tell(lambda dispatcher: dispatcher.connect(Link()))
    with pytest.raises(ProtocolError, match=r"a client may not issue|not an instruction"):
        tell(lambda dispatcher: dispatcher.receive(name, 1, batch))
    assert sent_to_workers(tell, name) == [], "not even what was right in that batch"
    tell(lambda dispatcher: dispatcher.disconnect(name))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=batches)
def test_random_instructions_are_either_refused_or_executed(tell: Any, batch: list[Any]):
    name = tell(lambda dispatcher: dispatcher.connect(Link()))
    try:
        heard = RepeatDecoder().decode(batch)
        tell(lambda dispatcher: dispatcher.receive(name, 1, heard))
    except ProtocolError:
        pass  # also for a tensor that it does not have, or a sequence that makes no sense
    else:
        assert not any(map(forbidden, batch))
    if any(map(forbidden, batch)):
        assert sent_to_workers(tell, name) == []
    tell(lambda dispatcher: dispatcher.disconnect(name))


# --- over sockets ---


@pytest.fixture(scope="module", params=[[], ["--no-sharding"]], ids=["sharding", "no sharding"])
def running(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, list[Client]]]:
    running = Cluster()
    try:
        running.start_server(*request.param)
        for _ in range(2):
            running.start_worker()
        others = [connect(running) for _ in range(2)]  # without sharding, one on each worker
        yield running, others
        for client in others:
            client.close()
    finally:
        running.stop()


def all_work(others: list[Client]) -> None:
    for client in others:
        x, y = client.create(np.arange(5000.0)), client.next_id()
        client.emit(Op(y, "add", (x, x), None, 0))
        assert client.fetch(y)[4999] == 9998
        client.emit(x)
        client.emit(y)


@pytest.fixture(autouse=True)
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far longer than anything here takes, and far shorter than a worker that waits for others."""
    monkeypatch.setenv("GT_TIMEOUT", "60")


@pytest.mark.parametrize("forged", FORGED)
def test_a_server_refuses_instructions_that_only_the_dispatcher_may_issue(
    running: tuple[Cluster, list[Client]], forged: str
):
    cluster, others = running
    with Stranger(cluster) as stranger:
        assert isinstance(stranger.ask(HELLO), protocol.Welcome)
        answer = stranger.ask(protocol.encode(protocol.Batch(1, [full(0), FORGED[forged]])))
        assert isinstance(answer, protocol.Refused)
        assert "a client may not issue" in answer.error
    all_work(others)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=batches)
def test_a_server_and_its_workers_outlive_random_instructions(
    running: tuple[Cluster, list[Client]], batch: list[Any]
):
    cluster, others = running
    with Stranger(cluster) as stranger:
        assert isinstance(stranger.ask(HELLO), protocol.Welcome)
        stranger.socket.send(protocol.encode(protocol.Batch(1, batch)))
        if any(map(forbidden, batch)):
            assert isinstance(stranger.read(), protocol.Refused)
        all_work(others)
    for process in cluster.processes:
        assert process.popen.poll() is None, process.read()
