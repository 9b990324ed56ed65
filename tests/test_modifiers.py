"""Stream modifiers: at every layer, composed, and as the guide shows them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gt
from gt.client import session
from gt.errors import WorkerError
from gt.transport import modifiers as streams
from gt.transport.protocol import Op
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
