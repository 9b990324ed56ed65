"""Stream modifiers: at every layer, composed, and as the guide shows them."""

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gt
from gt.client import Client, session
from gt.errors import WorkerError
from gt.inspect.tape import read_tape
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream import modifiers as streams
from gt.stream import tensor_ids
from gt.stream.instructions import Op, Replay, ShardOp, Site, WorkerHotPathStart
from gt.transport import protocol
from tests.gt.helpers.servers import Cluster, connect
from tests.gt.helpers.stream_modifiers import BAD_STATS, DoublesProducts, NumpyStats
from tests.gt.test_server import HELLO, Stranger
from tests.programs import ROOT, run_python

GUIDE = ROOT / "docs/writing-a-stream-modifier.md"


@pytest.fixture(autouse=True)
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(session, "_current", None)
    yield
    gt.close()


def guide_code() -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL))


def test_the_guides_code_runs_and_prints_what_it_says():
    printed = run_python("-c", guide_code()).stdout.splitlines()
    assert printed == re.findall(r"print\(.*\)  # (.*)", guide_code())


def test_the_guides_modifiers_run_in_other_processes_too(tmp_path: Path):
    classes = guide_code().partition("import gt\n\ncounter")[0]
    (tmp_path / "my_module.py").write_text(classes)
    program = """
import gt
modifiers = {"worker": ["my_module:DivideByMultiplying"], "dispatcher": ["my_module:Counter"]}
gt.init(workers=1, modifiers=modifiers)
x = gt.tensor([1.0, 2.0])
assert (x / x).tolist() == [1, 1]
(worker,) = gt.debug.get_worker_stats().values()
print(worker["modifiers"], gt.debug.get_dispatcher_stats()["modifiers"]["Counter"]["Op"], worker["tensors"])
"""
    done = run_python("-c", program, environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert done.stdout == "{'DivideByMultiplying': {'replaced': 1}} 1 1\n"


class Rename:
    """Makes one op another."""

    def __init__(self, before: str, after: str) -> None:
        self.before, self.after, self.count = before, after, 0

    def process(self, cmd: Any) -> Iterator[Any]:
        if isinstance(cmd, Op) and cmd.op == self.before:
            self.count += 1
            cmd = Op(cmd.result, self.after, cmd.inputs, cmd.attrs, cmd.site)
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {"count": self.count}


@pytest.mark.parametrize("layer", ["client", "dispatcher", "worker"])
def test_modifiers_of_a_layer_run_one_after_the_other(layer: str):
    first, second = Rename("add", "sub"), Rename("sub", "mul")
    gt.init(modifiers={layer: [first, second]})
    x = gt.tensor([3.0])
    assert (x + x).tolist() == [9]
    assert (first.get_stats(), second.get_stats()) == ({"count": 1}, {"count": 1})


def test_modifiers_of_all_layers_see_what_the_layer_before_made():
    gt.init(
        modifiers={
            "client": [Rename("add", "sub")],
            "dispatcher": [Rename("sub", "mul")],
            "worker": [Rename("mul", "truediv")],
        }
    )
    x = gt.tensor([3.0])
    assert (x + x).tolist() == [1]
    assert gt.debug.get_worker_stats()["auto_worker"]["modifiers"] == {"Rename": {"count": 1}}
    assert gt.debug.get_dispatcher_stats()["modifiers"] == {"Rename": {"count": 1}}


def test_what_a_dispatchers_modifier_made_is_on_the_tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "gt.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    gt.init(modifiers={"dispatcher": [Rename("add", "sub")]})
    x = gt.ones(1)
    assert (x + x).tolist() == [0]
    assert re.search(r"RECV .*op=add", log.read_text())
    assert re.search(r"WORKER_SEND .*op=sub", log.read_text())


@pytest.mark.parametrize(
    "layers", [["client"], ["dispatcher"], ["worker"], ["client", "dispatcher", "worker"]]
)
def test_tensors_that_modifiers_make_have_ids_of_their_own_over_several_workers(layers: list[str]):
    """Each layer in its own process, each making tensors of its own beside those of the others."""
    program = f"""
import gt, numpy as np
layers = {layers}
doubles = "tests.gt.helpers.stream_modifiers:DoublesProducts"
gt.init(workers=2, modifiers={{layer: [doubles] for layer in layers}})
a, b = (np.random.default_rng(n).integers(-4, 5, (64, 64)).astype(np.float32) for n in (1, 2))
x, y = gt.tensor(a), gt.tensor(b)
for _ in range(4):
    product, other = x @ y, y.T @ x.T
    np.testing.assert_array_equal(product.numpy(), 2 ** len(layers) * (a @ b))
    np.testing.assert_array_equal(other.numpy(), 2 ** len(layers) * (b.T @ a.T))
"""
    run_python("-c", program, environment={"PYTHONPATH": str(ROOT)})


def test_every_layer_and_every_worker_gives_out_ids_of_its_own():
    taken = {
        "client": tensor_ids.client_id(),
        "dispatcher": tensor_ids.dispatcher_id(),
        "blocks": tensor_ids.dispatcher_block(),
        **{f"worker {n}": tensor_ids.worker_ids(n)() for n in (0, 1, 2, 70)},
    }
    ordered = sorted(taken.values())
    assert ordered[0] >= 1 << 60, "the client's own ids stay below"
    assert ordered[-1] < 1 << 63, "they fit a signed number of 64 bits"
    assert all(b - a >= 1 << 30 for a, b in itertools.pairwise(ordered)), "ranges are wide"


class Counts:
    """Counts the ops it sees."""

    def __init__(self) -> None:
        self.seen = 0

    def process(self, cmd: Any) -> Iterator[Any]:
        self.seen += isinstance(cmd, Op)
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {"seen": self.seen}


@pytest.mark.parametrize(
    "given",
    [lambda: Counts, lambda: Counts(), lambda: lambda: Counts(), lambda: f"{__name__}:Counts"],
    ids=["class", "instance", "factory", "name"],
)
@pytest.mark.parametrize("layer", ["dispatcher", "worker"])
def test_every_client_has_a_modifier_of_its_own(layer: str, given: Callable[[], Any]):
    server = LocalServer("numpy", **{f"{layer}_modifiers": [given()]})
    clients = [Client(LocalConnection(server)) for _ in range(3)]
    for count, client in enumerate(clients, 1):
        for _ in range(count):
            client.emit(Op(client.next_id(), "full", (), {"shape": [1], "value": 1, "dtype": "float32"}, 0))
        client.flush()
    found = []
    for client in clients:
        stats = client.get_dispatcher_stats() if layer == "dispatcher" else client.get_stats()["auto_worker"]
        found.append(stats["modifiers"])
    assert found == [{"Counts": {"seen": count}} for count in (1, 2, 3)]
    for client in clients:
        client.close()


def test_clients_of_one_server_have_modifiers_of_their_own():
    running = Cluster()
    try:
        running.start_server("--modifier", "tests.gt.helpers.stream_modifiers:DoublesProducts")
        running.start_worker("--modifier", "tests.gt.helpers.stream_modifiers:DoublesProducts")
        clients = [connect(running) for _ in range(2)]
        for count, client in enumerate(clients, 1):
            x = client.create(np.ones((2, 2)))
            for _ in range(count):
                y = client.next_id()
                client.emit(Op(y, "matmul", (x, x), None, 0))
                assert client.fetch(y).tolist() == [[8, 8], [8, 8]]
        for count, client in enumerate(clients, 1):
            expected = {"DoublesProducts": {"products": count}}
            assert client.get_dispatcher_stats()["modifiers"] == expected
            assert client.get_stats()["worker_0"]["modifiers"] == expected
            client.close()
    finally:
        running.stop()


def test_an_instance_serves_the_first_client_and_others_get_copies_of_it_as_it_was():
    mine = Counts()
    mine.seen = 100
    server = LocalServer("numpy", dispatcher_modifiers=[mine])
    first, second = (Client(LocalConnection(server)) for _ in range(2))
    first.emit(Op(first.next_id(), "full", (), {"shape": [1], "value": 1, "dtype": "float32"}, 0))
    assert first.get_dispatcher_stats()["modifiers"] == {"Counts": {"seen": 101}}
    assert second.get_dispatcher_stats()["modifiers"] == {"Counts": {"seen": 100}}
    assert mine.seen == 101
    first.close()
    second.close()


class HasALock(Counts):
    """Cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


@pytest.mark.parametrize("layer", ["dispatcher", "worker"])
def test_an_instance_that_cannot_be_copied_fails_the_second_clients_tensors_and_says_what_to_do(layer: str):
    server = LocalServer("numpy", **{f"{layer}_modifiers": [HasALock()]})
    first, second = (Client(LocalConnection(server)) for _ in range(2))
    assert first.fetch(first.create(np.ones(1))).tolist() == [1]
    with pytest.raises(
        WorkerError, match=r"modifier HasALock failed.*cannot be copied.*Pass its class instead"
    ):
        second.fetch(second.create(np.ones(1)))
    assert first.fetch(first.create(np.ones(1))).tolist() == [1]
    first.close()
    second.close()


def test_several_modifiers_of_one_class_are_all_in_the_statistics():
    gt.init(modifiers={"dispatcher": [Rename("add", "sub"), Rename("sub", "mul")]})
    assert (gt.ones(1) + 1).tolist() == [1]
    assert gt.debug.get_dispatcher_stats()["modifiers"] == {"Rename": {"count": 1}, "Rename 2": {"count": 1}}


def as_described(stats: dict[str, Any]) -> None:
    for name, expected in BAD_STATS.items():
        if isinstance(expected, str):
            assert expected in stats[name]["error"]
        else:
            assert stats[name] == expected


def test_bad_statistics_become_a_message_and_end_no_server_and_no_worker():
    flags = [
        flag for name in BAD_STATS for flag in ("--modifier", f"tests.gt.helpers.stream_modifiers:{name}")
    ]
    running = Cluster()
    try:
        server, worker = running.start_server(*flags), running.start_worker(*flags)
        client = connect(running)
        for _ in range(2):
            assert client.fetch(client.create(np.ones(2))).tolist() == [1, 1]
            as_described(client.get_dispatcher_stats()["modifiers"])
            as_described(client.get_stats()["worker_0"]["modifiers"])
        client.close()
        assert server.popen.poll() is None
        assert worker.popen.poll() is None
    finally:
        running.stop()


def test_bad_statistics_are_the_same_inside_a_program():
    given = [f"tests.gt.helpers.stream_modifiers:{name}" for name in BAD_STATS]
    gt.init(modifiers={"dispatcher": given, "worker": given})
    assert gt.ones(2).tolist() == [1, 1]
    as_described(gt.debug.get_dispatcher_stats()["modifiers"])
    as_described(gt.debug.get_worker_stats()["auto_worker"]["modifiers"])


def test_the_open_question_of_a_client_that_is_refused_does_not_end_the_server():
    running = Cluster()
    try:
        server = running.start_server(
            "--modifier", "tests.gt.helpers.stream_modifiers:UploadsInPlaceOfCopies"
        )
        with Stranger(running) as worker, Stranger(running) as stranger:
            hello = protocol.WorkerHello(protocol.VERSION, "", 0, "", "silent", "numpy")
            assert isinstance(worker.ask(protocol.encode(hello)), protocol.Welcome)
            assert isinstance(stranger.ask(HELLO), protocol.Welcome)
            # The worker never answers, so the question is open when what follows turns out to be unsendable.
            stranger.socket.send(protocol.encode(protocol.GetStats(1)))
            full = Op(0, "full", (), {"shape": [2], "value": 1, "dtype": "float32"}, 0)
            answer = stranger.ask(protocol.encode(protocol.Batch(1, [full])))
            if isinstance(answer, protocol.Ack):
                answer = stranger.read()
            assert isinstance(answer, protocol.Refused)
        with Stranger(running) as another:
            assert isinstance(another.ask(HELLO), protocol.Welcome)
        assert server.popen.poll() is None
    finally:
        running.stop()


INJECTED = (
    r"WORKER_RUN +\| WORKER {worker} .*BinaryOp .*result=(c1_\d+) op=add left=c1_\d+ right=c1_\d+",
    r"WORKER_RUN +\| WORKER {worker} .*BinaryOp .*result=c1_\d+ op=matmul left=\1 right=c1_\d+",
    r"WORKER_RUN +\| WORKER {worker} .*FreeTensor .*tensor_id=\1",
)


def test_what_a_workers_modifier_injects_is_on_the_tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "gt.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    gt.init(modifiers={"worker": [DoublesProducts]})
    x = gt.ones(2, 2)
    assert (x @ x).tolist() == [[4, 4], [4, 4]]
    pattern = "(?s)" + ".*\n.*".join(INJECTED).format(worker="auto_worker")
    assert re.search(pattern, log.read_text())
    assert re.search(pattern, "\n".join(gt.debug.get_instruction_tape()))
    assert log.read_text().count("WORKER_RUN") == 3, "what the modifier passes on is not said twice"
    tape = read_tape(log.read_text().splitlines())
    assert tape.unread == 0
    assert all(span.answered for span in tape.spans)


def test_what_modifiers_of_other_processes_inject_is_on_the_tape(tmp_path: Path):
    program = """
import gt
gt.init(workers=2, modifiers={"worker": ["tests.gt.helpers.stream_modifiers:DoublesProducts"]})
x = gt.ones(64, 64)
assert (x @ x).sum().item() == 2 * 64 ** 3
gt.debug.print_instruction_tape()
"""
    log = tmp_path / "gt.log"
    environment = {"PYTHONPATH": str(ROOT), "GT_INSTRUCTION_LOG": str(log)}
    printed = run_python("-c", program, environment=environment).stdout
    for worker in ("worker_0", "worker_1"):
        pattern = "(?s)" + ".*\n.*".join(INJECTED).format(worker=worker)
        assert re.search(pattern, log.read_text())
        assert re.search(pattern, printed)
    assert "RECV         | CLIENT c1" in printed, "the program's own lines too"
    assert set(printed.splitlines()) <= set(log.read_text().splitlines())


class InjectsMany:
    """Makes ten thousand instructions and more of one."""

    def process(self, cmd: Any) -> Iterator[Any]:
        if isinstance(cmd, Op) and cmd.op == "mul":
            for number in range(10_005):
                yield Site(number, "x" * 5000)
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {}


def test_of_very_many_injected_instructions_the_tape_shows_some():
    gt.init(modifiers={"worker": [InjectsMany]})
    assert (gt.ones(1) * 2).tolist() == [2]
    shown = [line for line in gt.debug.get_instruction_tape() if "WORKER_RUN" in line]
    assert shown[-1].endswith("and 5 more")
    assert max(map(len, shown)) < 1200


@pytest.mark.parametrize("workers", [None, 1])
def test_a_clients_modifiers_are_in_its_statistics(workers: int | None, capsys: pytest.CaptureFixture[str]):
    gt.init(workers, modifiers={"client": [Counts, NumpyStats]})
    assert (gt.ones(2) + 1).tolist() == [2, 2]
    stats = gt.debug.get_client_stats()
    assert stats["modifiers"] == {"Counts": {"seen": 2}, "NumpyStats": BAD_STATS["NumpyStats"]}
    assert stats["batches_sent"] > 0
    gt.debug.print_worker_stats()
    assert re.search(
        r"^client\n(.*\n)*  modifiers +{'Counts': {'seen': 2}", capsys.readouterr().out, re.MULTILINE
    )


def test_a_client_without_modifiers_says_nothing_of_any(capsys: pytest.CaptureFixture[str]):
    gt.init()
    assert gt.ones(2).tolist() == [1, 1]
    assert "modifiers" not in gt.debug.get_client_stats()
    gt.debug.print_worker_stats()
    assert "client\n" not in capsys.readouterr().out


class Broken:
    """Raises when it sees a product."""

    def process(self, cmd: Any) -> Iterator[Any]:
        if isinstance(cmd, Op) and cmd.op == "mul":
            raise LookupError("no products today")
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("layer", ["client", "dispatcher", "worker"])
def test_a_modifier_that_raises_fails_that_tensor_with_its_cause_and_nothing_else(layer: str):
    gt.init(modifiers={layer: [Broken()]})
    x = gt.ones(2)
    product, total = x * x, x + x
    with pytest.raises(
        WorkerError, match=r"modifier Broken failed on Op\(.*mul.*LookupError: no products today"
    ):
        (product + 1).tolist()
    assert total.tolist() == [2, 2]
    del product, total
    assert x.tolist() == [1, 1]


class Yields:
    """Replaces products by something else."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def process(self, cmd: Any) -> Iterator[Any]:
        product = isinstance(cmd, Op) and cmd.op == "mul"
        yield self.what(cmd) if product else cmd

    def get_stats(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("layer", ["client", "dispatcher", "worker"])
@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda cmd: None, "None is a NoneType, and not an instruction"),
        (lambda cmd: WorkerHotPathStart("x"), "may not issue WorkerHotPathStart"),
        (lambda cmd: Replay(0, [], [], [], []), "may not issue Replay: only a connection may"),
        (lambda cmd: Op(cmd.result, "add", cmd.inputs, {"scalar": object()}, 0), "unsupported"),  # type: ignore[dict-item]
    ],
    ids=["nothing", "a mark", "a part of repeats", "an attribute that cannot travel"],
)
def test_a_modifier_that_yields_something_else_fails_that_tensor(layer: str, what: Any, message: str):
    gt.init(modifiers={layer: [Yields(what)]})
    x = gt.ones(2)
    product = x * x
    with pytest.raises(WorkerError, match=rf"modifier Yields failed on Op\(.*mul.*{message}"):
        product.tolist()
    assert (x + x).tolist() == [2, 2]


@pytest.mark.parametrize("layer", ["client", "dispatcher"])
def test_a_modifier_before_the_dispatcher_may_not_issue_what_only_that_may(layer: str):
    gt.init(modifiers={layer: [Yields(lambda cmd: ShardOp(cmd.inputs[0], 1, 0, 0, 1, cmd.result))]})
    x = gt.ones(2)
    with pytest.raises(WorkerError, match="a client may not issue ShardOp: only a dispatcher may"):
        (x * x).tolist()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: gt.init(modifiers={"server": []}),
            ValueError,
            "client, dispatcher, worker, and not for 'server'",
        ),
        (lambda: streams.load("nothing"), ValueError, "package.module:Class"),
        (lambda: streams.load("no.such:Thing"), ImportError, "no"),
        (
            lambda: gt.init(modifiers={"worker": [Rename]}),  # type: ignore[arg-type]
            TypeError,
            r"modifier Rename could not be made: TypeError: .*missing 2 required.*without arguments",
        ),
        (
            lambda: gt.init(modifiers={"client": [object()]}),  # type: ignore[arg-type]
            TypeError,
            r"<object object at .*> is not a stream modifier: it has no method process",
        ),
        (
            lambda: gt.init(workers=1, modifiers={"worker": [Broken()]}),
            TypeError,
            "a modifier for another process is named",
        ),
    ],
)
def test_a_modifier_that_cannot_be_is_refused(call: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("module", ["gt.server", "gt.worker"])
def test_a_command_line_refuses_an_unknown_modifier(module: str):
    done = run_python("-m", module, "--modifier", "no_such:Thing", fails=True)
    assert "No module named 'no_such'" in done.stderr
    assert "Traceback" not in done.stderr
