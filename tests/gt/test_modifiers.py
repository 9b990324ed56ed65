"""Stream modifiers: at every layer, composed, and as the guide shows them."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gt
from gt.client import session
from gt.inspect.tape import read_tape
from gt.stream import tensor_ids
from gt.stream.instructions import Op, Site
from tests.gt.helpers.renaming import Rename
from tests.gt.helpers.stream_modifiers import DoublesProducts
from tests.programs import ROOT, run_python

GUIDE = ROOT / "docs/writing-a-stream-modifier.md"


@pytest.fixture(autouse=True)
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(session, "_current", None)
    yield
    gt.close()


def guide_code() -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL))


def test_the_guides_code_runs_and_prints_the_output_in_the_guide():
    printed = run_python("-c", guide_code()).stdout.splitlines()
    assert printed == re.findall(r"print\(.*\)  # (.*)", guide_code())


def test_the_guides_modifiers_run_in_other_processes_too(tmp_path: Path):
    classes = guide_code().partition("import gt\n\ncounter")[0]
    (tmp_path / "my_module.py").write_text(classes)
    program = """
import gt
modifiers = {"worker": ["my_module:DivideByMultiplying"], "dispatcher": ["my_module:Counter"]}
gt.init(workers=1, engine="numpy", modifiers=modifiers)
x = gt.tensor([1.0, 2.0])
assert (x / x).tolist() == [1, 1]
(worker,) = gt.debug.get_worker_stats().values()
print(worker["modifiers"], gt.debug.get_dispatcher_stats()["modifiers"]["Counter"]["Op"], worker["tensors"])
"""
    done = run_python("-c", program, environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert done.stdout == "{'DivideByMultiplying': {'replaced': 1}} 1 1\n"


@pytest.mark.parametrize("layer", ["client", "dispatcher", "worker"])
def test_modifiers_of_a_layer_run_one_after_the_other(layer: str):
    first, second = Rename("add", "sub"), Rename("sub", "mul")
    gt.init(modifiers={layer: [first, second]})
    x = gt.tensor([3.0])
    assert (x + x).tolist() == [9]
    assert (first.get_stats(), second.get_stats()) == ({"count": 1}, {"count": 1})


def test_modifiers_of_all_layers_see_the_output_of_the_layer_before():
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
gt.init(workers=2, engine="numpy", modifiers={{layer: [doubles] for layer in layers}})
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
doubles = "tests.gt.helpers.stream_modifiers:DoublesProducts"
gt.init(workers=2, engine="numpy", modifiers={"worker": [doubles]})
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
