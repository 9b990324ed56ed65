"""The specification of gt's stream (its architecture document), statement by statement, each run."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gt
from gt.client import session
from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.server.embedded import LocalServer
from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instructions import (
    MatmulOp,
    Op,
    Placed,
    ReduceOp,
    ShardOp,
    Upload,
    WorkerHotPathEnd,
    WorkerHotPathStart,
)
from gt.stream.layouts import Partial, Placement, Replicated
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer
from tests.programs import ROOT, run_python

LINE = re.compile(
    r" *(?P<elapsed>\d+\.\d+)s \| #(?P<seq>\d{4,}) \| (?P<event>[A-Z_]+) *\| (?P<source>\w+ \S+) *\| "
    r"(?P<command>\w*) *\| +(?P<size>\S+B) \| (?P<details>.*)"
)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "gt_instructions.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(path))
    return path


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(session, "_current", None)
    yield
    gt.close()


def entries(log: Path) -> list[dict[str, str]]:
    found = [LINE.fullmatch(line) for line in log.read_text().splitlines()]
    return [one.groupdict() for one in found if one is not None]


def test_client_dispatcher_worker(log: Path, server: LocalServer):
    """'instructions flow through multiple layers: Client → Dispatcher → Worker'"""
    (gt.ones(2) + gt.ones(2)).tolist()
    way = [(one["event"], one["command"]) for one in entries(log) if one["command"].endswith("BinaryOp")]
    assert way == [
        ("RECV", "BinaryOp"),
        ("WORKER_SEND", "WorkerBinaryOp"),
        ("WORKER_RECV", "WorkerBinaryOp"),
        ("SEND", "BinaryOp"),
    ]


# --- stream modifiers ---


class MyModifier:
    """As the document shows one: squares what is added, if it is enabled."""

    def __init__(self, enabled: bool = False) -> None:
        self.enabled = enabled
        self.changed = 0

    def process(self, cmd: Any) -> Iterator[Any]:
        if not self.enabled or not isinstance(cmd, Op) or cmd.op != "add":
            yield cmd
            return
        self.changed += 1
        yield Op(cmd.result, "mul", cmd.inputs, cmd.attrs, cmd.site)

    def get_stats(self) -> dict[str, Any]:
        return {"changed": self.changed}


@pytest.mark.usefixtures("own_server")
@pytest.mark.parametrize("layer", ["client", "dispatcher", "worker"])
def test_each_layer_can_have_stream_modifiers(layer: str):
    """'Each layer can have stream modifiers that transform the instruction stream.'"""
    modifier = MyModifier(enabled=True)
    gt.init(engine="numpy", modifiers={layer: [modifier]})
    x = gt.tensor([3.0])
    assert (x + x).tolist() == [9]
    assert modifier.get_stats() == {"changed": 1}


@pytest.mark.usefixtures("own_server")
def test_a_modifier_that_is_not_enabled_yields_what_it_gets():
    """'if not self.enabled: yield cmd; return'"""
    gt.init(engine="numpy", modifiers={"dispatcher": [MyModifier()]})
    x = gt.tensor([3.0])
    assert (x + x).tolist() == [6]


@pytest.mark.usefixtures("own_server")
def test_stream_modifiers_are_logged(log: Path):
    """'Stream modifiers automatically logged by InstructionStream - no need to implement custom tape
    dumping!'"""
    gt.init(engine="numpy", modifiers={"dispatcher": [MyModifier(enabled=True)]})
    x = gt.tensor([3.0])
    (x + x).tolist()
    ops = [
        (one["event"], one["details"].split()[1]) for one in entries(log) if "result=1 op=" in one["details"]
    ]
    sent = [one["details"] for one in entries(log) if one["event"] == "WORKER_SEND"]
    assert ops == [("RECV", "op=add")]
    assert any("op=mul" in details for details in sent)
    assert not any("op=add" in details for details in sent)


def loop(steps: int) -> list[Any]:
    """The instructions of a program that repeats eight ops."""
    stream: list[Any] = [Upload(0, np.ones(2))]
    for number in range(1, 8 * steps + 1):
        stream += [Op(number, ("relu", "exp", "log", "tanh")[number % 4], (number - 1,), None, 0), number - 1]
    return stream


def test_hot_path_detector_injects_markers():
    """'Detect repeated instruction sequences. Injects WorkerHotPathStart and WorkerHotPathEnd markers'"""
    detector, stream = HotPathDetector(), loop(200)
    out = [one for cmd in stream for one in detector.process(cmd)]
    marks = [one for one in out if isinstance(one, WorkerHotPathStart | WorkerHotPathEnd)]
    assert [one for one in out if one not in marks] == stream
    starts, ends = marks[::2], marks[1::2]
    assert len(ends) > 5
    for start, end in zip(starts, ends, strict=False):
        assert isinstance(start, WorkerHotPathStart)
        assert end == WorkerHotPathEnd(start.sequence, True)
    between = {tuple(one.op for one in out[a:b] if isinstance(one, Op)) for a, b in places(out)}
    assert len(between) == 1, "the same ops every time"


def places(out: list[Any]) -> list[tuple[int, int]]:
    """The bounds of each complete sequence."""
    starts = [n for n, one in enumerate(out) if isinstance(one, WorkerHotPathStart)]
    ends = [n for n, one in enumerate(out) if isinstance(one, WorkerHotPathEnd)]
    return list(zip(starts, ends, strict=False))


def test_hot_path_detector_stats():
    """'Stats: Tracks hot sequences, repetitions'; 'Track statistics, not tapes'"""
    detector = HotPathDetector()
    detector.feed(loop(200))
    stats = detector.get_stats()
    assert stats["hot_sequences"] == len(stats["repetitions"]) == 1
    assert sum(stats["repetitions"].values()) > 5
    assert stats["hot_instructions"] > 0.8 * stats["total_instructions"]


def test_pure_stream_transformers():
    """'Pure stream transformers (no buffering, no execution). Take commands in, yield commands out'"""
    detector = HotPathDetector()
    for cmd in loop(100):
        assert cmd in [*detector.process(cmd)], "it comes out when it comes in"


FOUR = ("a", "b", "c", "d")


def test_sharding_is_disabled_by_default():
    """'ShardingStreamModifier: Disabled by default (enable_sharding=False)'"""
    modifier = ShardingStreamModifier(workers=FOUR)
    stream = [Upload(0, np.ones((128, 64))), MatmulOp(0, 0, result=1), 0]
    assert [one for cmd in stream for one in modifier.process(cmd)] == stream
    assert modifier.get_stats()["sharded_ops"] == 0
    assert modifier.tensor_sharded == {}


def test_sharding_of_large_operations():
    """'Check tensor sizes against `shard_threshold`'; 'Track sharded tensors in `self.tensor_sharded`';
    'Stats: Tracks sharded operations, tensor sizes'"""
    modifier = ShardingStreamModifier(enable_sharding=True, shard_threshold=1000, workers=FOUR)
    ops = [Upload(0, np.ones((128, 64), "float32")), Upload(1, np.ones(10, "float32"))]
    made = [one for cmd in [*ops, Op(2, "relu", (0,), None, 0)] for one in modifier.process(cmd)]
    assert all(isinstance(one, Placed) for one in made)
    assert [len(modifier.tensor_sharded[n].shards()) for n in (0, 1, 2)] == [4, 1, 4]
    stats = modifier.get_stats()
    assert stats["sharded_ops"] == 1
    assert stats["sharded_bytes"] == 2 * 128 * 64 * 4


def test_a_product_is_taken_apart():
    """'Instead of: MATMUL A, B -> C. Yield: ShardOp(tensor=A, ...) MatmulOp(A_0, B_0, result=C_0) ...
    ReduceOp'"""
    server = ThreadServer(3, "numpy", shard_threshold=16)
    with using(server):
        a, b = np.random.default_rng(0).standard_normal((2, 24, 24))
        product = gt.from_numpy(a) @ gt.from_numpy(b)
        np.testing.assert_allclose(product.numpy(), a @ b)
        lines = [one for one in server.dispatcher.stream.recent if one.event == "WORKER_SEND"]
        matmuls = [one.source for one in lines if "op=matmul" in one.details]
        assert sorted(matmuls) == ["WORKER worker_0", "WORKER worker_1", "WORKER worker_2"]
    assert ShardOp(tensor=0, num_shards=3).num_shards == 3
    assert MatmulOp(0, 1, result=2) == Op(2, "matmul", (0, 1), None, 0)


def test_terms_are_reduced():
    """'yield ReduceOp([C_0, C_1, C_2], result=C)'"""
    server = ThreadServer(3, "numpy", shard_threshold=16)
    with using(server):
        x = gt.ones(30, 4)
        assert (x.sum(dim=0) * 2).tolist() == [60] * 4
        lines = [one for one in server.dispatcher.stream.recent if one.event == "WORKER_SEND"]
        kinds = {one.command.removeprefix("Worker") for one in lines}
    assert kinds & {"AllReduce", "ReduceScatter", "Reduce"}
    terms, whole = Placement(Partial("sum"), ("a", "b")), Placement(Replicated(), ("a", "b"))
    assert ReduceOp(0, 1, 0, ((4,), "float32"), terms, whole).kind == "AllReduce"


# --- tape dumping ---


def test_tape_dumping_to_a_file(tmp_path: Path):
    """'export GT_INSTRUCTION_LOG=/tmp/gt_instructions.log; python my_script.py. This logs ALL
    instructions'"""
    log = tmp_path / "gt_instructions.log"
    code = (
        "import gt; gt.init(engine='numpy'); c = gt.tensor([1.0]) + gt.tensor([2.0])"  # which reads nothing
    )
    run_python("-c", code, environment={"GT_INSTRUCTION_LOG": str(log)})
    events = [one["event"] for one in entries(log)]
    assert len(events) == len(log.read_text().splitlines()), "<elapsed> | #<seq> | <event_type> | ..."
    assert {"RECV", "SEND", "WORKER_SEND", "WORKER_RECV", "CONNECT", "DISCONNECT"} == set(events)
    assert [int(one["seq"]) for one in entries(log)] == list(range(len(events)))


@pytest.mark.parametrize(
    ("event", "command", "details"),
    [
        ("RECV", "BinaryOp", "result=2 op=add left=0 right=1"),
        ("WORKER_SEND", "WorkerBinaryOp", "op=add"),
        ("WORKER_SEND", "WorkerBinaryOp", "result=c1_2"),
        ("WORKER_RECV", "WorkerBinaryOp", "success=True"),
    ],
)
def test_the_documents_example_of_a_log(
    log: Path, server: LocalServer, event: str, command: str, details: str
):
    """'1.608s | #0011 | RECV | CLIENT 006b8b4568 | BinaryOp | 117B | result=2 op=add left=0 right=1', ..."""
    a, b = gt.tensor([1.0]), gt.tensor([2.0])
    (a + b).tolist()
    (found,) = [one for one in entries(log) if (one["event"], one["command"]) == (event, command)]
    assert details in found["details"]
    assert found["source"] == ("CLIENT c1" if event == "RECV" else "WORKER auto_worker")
    assert int(found["size"].removesuffix("B")) > 0


def test_the_clients_autograd_tape(server: LocalServer, capsys: pytest.CaptureFixture[str]):
    """'tape = gt.debug.get_tape()'; 'gt.debug.print_tape()'"""
    y = (gt.ones(2, requires_grad=True) * 2).sum()
    assert [node.op for node in gt.debug.get_tape()] == ["mul", "sum"]
    gt.debug.print_tape()
    assert len(capsys.readouterr().out.splitlines()) == 2
    del y
    assert gt.debug.get_tape() == []


def test_worker_stats_are_printed(server: LocalServer, capsys: pytest.CaptureFixture[str]):
    """'Workers provide stats via: gt.debug.print_worker_stats()'"""
    (gt.ones(2) + 1).tolist()
    gt.debug.print_worker_stats()
    assert re.match(r"auto_worker\n(  \w+ +.*\n)+", capsys.readouterr().out)


def test_the_examples_of_tape_dumping_are_there():
    """'See test_tape_dump.py and test_hotpath_in_logs.py for examples.'"""
    for name in ("test_tape_dump.py", "test_hotpath_in_logs.py"):
        assert "def test_" in (ROOT / "tests" / "gt" / name).read_text()
