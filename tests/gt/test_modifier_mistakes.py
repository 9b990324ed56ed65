"""A modifier that raises, or yields an instruction that it may not issue, fails one tensor, with the
cause."""

from collections.abc import Iterator
from typing import Any

import pytest

import gt
from gt.client import session
from gt.errors import WorkerError
from gt.stream import modifiers as streams
from gt.stream.instructions import Op, Replay, ShardOp, WorkerHotPathStart
from tests.gt.helpers.renaming import Rename
from tests.programs import run_python


@pytest.fixture(autouse=True)
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(session, "_current", None)
    yield
    gt.close()


class Broken:
    """Raises when it sees a product."""

    def process(self, cmd: Any) -> Iterator[Any]:
        if isinstance(cmd, Op) and cmd.op == "mul":
            raise LookupError("no products today")
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("layer", ["client", "dispatcher", "worker"])
def test_a_modifier_that_raises_fails_only_that_tensor_with_the_cause(layer: str):
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
        (lambda cmd: None, "None is a NoneType, not an instruction"),
        (lambda cmd: WorkerHotPathStart("x"), "may not issue WorkerHotPathStart"),
        (lambda cmd: Replay(0, [], [], [], []), "may not issue Replay, only a connection may"),
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
def test_a_modifier_before_the_dispatcher_may_not_issue_the_dispatchers_instructions(layer: str):
    gt.init(modifiers={layer: [Yields(lambda cmd: ShardOp(cmd.inputs[0], 1, 0, 0, 1, cmd.result))]})
    x = gt.ones(2)
    with pytest.raises(WorkerError, match="a client may not issue ShardOp, only a dispatcher may"):
        (x * x).tolist()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: gt.init(modifiers={"server": []}),
            ValueError,
            "client, dispatcher, worker, but got 'server'",
        ),
        (lambda: streams.load("nothing"), ValueError, "package.module:Class"),
        (lambda: streams.load("no.such:Thing"), ImportError, "no"),
        (
            lambda: gt.init(modifiers={"worker": [Rename]}),  # type: ignore[arg-type]
            TypeError,
            r"modifier Rename could not be created: TypeError: .*missing 2 required.*without arguments",
        ),
        (
            lambda: gt.init(modifiers={"client": [object()]}),  # type: ignore[arg-type]
            TypeError,
            r"<object object at .*> is not a stream modifier: it has no method process",
        ),
        (
            lambda: gt.init(workers=1, modifiers={"worker": [Broken()]}),
            TypeError,
            "a modifier for another process must be a name",
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
