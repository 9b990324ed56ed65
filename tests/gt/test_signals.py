"""Signals: the placement of tensors by name, outside of the program."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import gt
from gt.errors import ConfigError, WorkerError
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer
from tests.programs import run_python

SIGNALS = """\
rows:
  shard: {axis: 0, workers: [0, 1]}
columns:
  shard: {axis: -1}
everywhere:
  replicate: true
  compile: true
one:
  replicate: {workers: [2]}
layer:
  shard: {axis: 0}
  backward: columns
own:
  replicate: [0, 2]
  backward:
    shard: {axis: 1, workers: 2}
"""


@pytest.fixture
def signals(tmp_path: Path) -> Path:
    path = tmp_path / "signals.yaml"
    path.write_text(SIGNALS)
    return path


@pytest.fixture
def three(signals: Path) -> Iterator[ThreadServer]:
    server = ThreadServer(3, "numpy")
    with using(server):
        gt.load_config(signals)
        yield server


def layout(x: gt.Tensor | None) -> str:
    assert x is not None
    return str(x._value.client.get_layouts(x.id).placements[0])


ALL = "worker_0,worker_1,worker_2"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rows", "sharded(0)@worker_0,worker_1"),
        ("columns", f"sharded(1)@{ALL}"),
        ("everywhere", f"replicated@{ALL}"),
        ("one", "replicated@worker_2"),
        ("own", "replicated@worker_0,worker_2"),
    ],
)
def test_a_tensor_made_inside_has_the_layout_of_the_signal(three: ThreadServer, name: str, expected: str):
    with gt.signal.context(name):
        made = [gt.randn(6, 6), gt.tensor([[1.0, 2.0, 3.0]] * 3)]
        made.append(made[0] * 2)
    assert [layout(x) for x in made] == [expected] * 3
    assert (made[2] - made[0] * 2).abs().sum().item() == 0
    outside = gt.ones(3)
    assert layout(outside).startswith("replicated@worker_")


def test_a_tensor_gets_another_layout_and_gradients_flow_through(three: ThreadServer):
    x = gt.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = gt.signal.tensor(x, "rows")
    assert layout(y) == "sharded(0)@worker_0,worker_1"
    (y * y).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[2, 4], [6, 8]]


def test_enter_and_exit_nest(three: ThreadServer):
    gt.signal.enter("rows")
    gt.signal.enter("one")
    inner = gt.ones(4)
    gt.signal.exit("one")
    outer = gt.ones(4)
    gt.signal.exit()
    assert (layout(inner), layout(outer)) == ("replicated@worker_2", "sharded(0)@worker_0,worker_1")
    with pytest.raises(ConfigError, match=r"exit\('rows'\) without enter\('rows'\)"):
        gt.signal.exit("rows")
    gt.signal.enter("rows")
    with pytest.raises(ConfigError, match=r"exit\('one'\) inside 'rows'"):
        gt.signal.exit("one")
    gt.signal.exit("rows")


def test_gradients_have_the_layout_that_backward_names(three: ThreadServer):
    x, y = gt.randn(6, 6, requires_grad=True), gt.randn(6, 6, requires_grad=True)
    with gt.signal.context("layer"):
        a = x * 3
    with gt.signal.context("own"):
        b = y * 3
    (a + b).sum().backward()
    assert layout(x.grad) == f"sharded(1)@{ALL}"
    assert layout(y.grad) == "sharded(1)@worker_0,worker_1"


def test_a_scope_is_its_threads_own(three: ThreadServer):
    found: list[str] = []
    with gt.signal.context("one"):
        thread = threading.Thread(target=lambda: found.append(layout(gt.ones(4096))))
        thread.start()
        thread.join()
    assert found == [f"sharded(0)@{ALL}"]


def test_an_axis_that_a_tensor_lacks_means_whole(three: ThreadServer):
    with gt.signal.context("own"):
        assert layout(gt.tensor(3.0)) == "replicated@worker_0,worker_2"
    with gt.signal.context("rows"):
        assert layout(gt.tensor(3.0)) == "replicated@worker_0,worker_1"


def test_gt_config_names_the_file(three: ThreadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = tmp_path / "other.yaml"
    other.write_text("here: {replicate: [1]}\n")
    monkeypatch.setenv("GT_CONFIG", str(other))
    with gt.signal.context("here"):
        assert layout(gt.ones(2)) == "replicated@worker_1"


def test_signals_change_nothing_with_one_worker(signals: Path):
    with using(ThreadServer(1, "numpy")):
        gt.load_config(signals)
        with gt.signal.context("columns"):
            assert (gt.ones(2, 3) * 2).tolist() == [[2, 2, 2]] * 2


def test_signals_in_an_embedded_program(signals: Path):
    program = (
        "import gt\nwith gt.signal.context('columns'):\n    x = gt.ones(2, requires_grad=True)\n"
        "(x * 2).sum().backward()\nprint(x.grad.tolist())"
    )
    assert run_python("-c", program, environment={"GT_CONFIG": str(signals)}).stdout == "[2.0, 2.0]\n"


def test_an_unknown_worker_is_named_when_the_tensor_is_read(three: ThreadServer, tmp_path: Path):
    path = tmp_path / "far.yaml"
    path.write_text("far: {replicate: [9]}\n")
    gt.load_config(path)
    with gt.signal.context("far"):
        x = gt.ones(2)
    with pytest.raises(WorkerError, match=r"'far' names worker 9, but the workers are 0 to 2"):
        x.tolist()


MISTAKES = [
    ("layer:\n  shrad: {axis: 0}\n", 2, "unknown key 'shrad' in a signal; did you mean 'shard'?"),
    ("layer:\n  shard: {axes: 0}\n", 2, "unknown key 'axes' in shard; did you mean 'axis'?"),
    ("layer:\n  shard:\n    axis: first\n", 3, "axis must be an integer, but got 'first'"),
    (
        "layer:\n  shard:\n    axis: 0\n    workers: [0, 0]\n",
        4,
        "workers must be distinct numbers, such as [0, 1], but got",
    ),
    ("layer:\n  shard:\n    workers: [-1]\n", 3, "workers must be distinct numbers, such as [0, 1], but got"),
    ("layer:\n  shard: 0\n", 2, "shard must be a mapping of names, but got 0"),
    ("a: {replicate: true}\nb:\n  backward: aa\n", 3, "no signal is called 'aa'; did you mean 'a'?"),
    ("a: {replicate: true}\na: {replicate: true}\n", 2, "a file of signals has 'a' twice"),
    ("a:\n  replicate: true\n  shard: {axis: 0}\n", 2, "has both shard and replicate"),
    ("a:\n  compile: maybe\n", 2, "compile must be true or false, but got 'maybe'"),
    ("a:\n  replicate: {worker: [0]}\n", 2, "unknown key 'worker' in replicate; did you mean 'workers'?"),
    ("- a\n- b\n", 1, "a file of signals must be a mapping of names"),
    ("a: {shard\nb: 1\n", 2, "not valid YAML"),
    ("a:\n\tshard: 1\n", 2, "not valid YAML"),
    ("a:\n  shard: {axis: 1.5}\n", 2, "axis must be an integer, but got 1.5"),
    ("a:\n  shard: {workers: [0, two]}\n", 2, "workers must be distinct numbers, such as [0, 1], but got"),
    ("a:\nb: {replicate: true}\n", 1, "the signal 'a' must be a mapping of names, but got None"),
    ("a:\n  backward: 3\n", 2, "backward must be a mapping of names, but got 3"),
    ("a:\n  backward:\n    shard: {axis: x}\n", 3, "axis must be an integer, but got 'x'"),
    ("a:\n  backward:\n    backward: {replicate: true}\n", 3, "backward cannot have a 'backward' itself"),
    ("a: &x\n  backward: *x\n", 2, "backward cannot have a 'backward' itself"),
    ("a: {replicate: true}\n---\nb: {replicate: true}\n", 2, "found another document"),
    ("a: {replicate: true}\nb: \x00\n", 2, "not valid YAML"),
    ("a: !!python/name:os.system x\n", 1, "not a valid value"),
]


@pytest.mark.parametrize(("text", "line", "message"), MISTAKES)
def test_a_mistake_in_the_file_is_an_error_with_its_line(tmp_path: Path, text: str, line: int, message: str):
    path = tmp_path / "signals.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        gt.load_config(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert message in str(error.value)


def test_a_file_that_is_not_utf8_is_an_error_with_its_line(tmp_path: Path):
    path = tmp_path / "signals.yaml"
    path.write_bytes(b"a: {replicate: true}\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"signals.yaml:2: not valid YAML: the file is not in UTF-8"):
        gt.load_config(path)


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_an_empty_file_has_no_signals(tmp_path: Path, text: str):
    path = tmp_path / "signals.yaml"
    path.write_text(text)
    assert gt.load_config(path) == {}
    with pytest.raises(ConfigError, match="no signal is called 'layer1': there are none"):
        gt.signal.enter("layer1")


def test_an_unknown_signal_is_an_error_that_suggests_one(signals: Path):
    gt.load_config(signals)
    with pytest.raises(ConfigError, match=r"no signal is called 'colums'; did you mean 'columns'\?"):
        gt.signal.enter("colums")
    with pytest.raises(ConfigError, match="no signal is called 'xyz'; there are 'rows', 'columns'"):
        gt.signal.enter("xyz")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(ConfigError, match="No such file"):
        gt.load_config(tmp_path / "none.yaml")


def test_load_config_returns_the_signals(signals: Path):
    scopes = gt.load_config(os.fspath(signals))
    assert scopes["everywhere"].compile
    assert scopes["rows"].workers == (0, 1)


# --- showing layouts ---


def test_show_draws_rows_below_each_other(three: ThreadServer, capsys: pytest.CaptureFixture[str]):
    with gt.signal.context("rows"):
        x = gt.ones(4, 6)
    gt.debug.show(x)
    assert capsys.readouterr().out == (
        "float32[4, 6] split along axis 0 over 2 workers\n"
        "┌──────────┐\n"
        "│ worker_0 │\n"
        "│ [0:2, :] │\n"
        "├──────────┤\n"
        "│ worker_1 │\n"
        "│ [2:4, :] │\n"
        "└──────────┘\n"
    )


def test_show_draws_columns_side_by_side_and_as_a_table(
    three: ThreadServer, capsys: pytest.CaptureFixture[str]
):
    with gt.signal.context("columns"):
        x = gt.ones(4, 6)
    view = gt.debug.show(x)
    assert "│ worker_0 │ worker_1 │ worker_2 │\n│ [:, 0:2] │ [:, 2:4] │ [:, 4:6] │" in capsys.readouterr().out
    page = view._repr_html_()
    assert page.count("<td") == 3
    assert page.count("<tr>") == 1
    assert "split along axis 1 over 3 workers" in page


def test_show_reports_copies_partial_sums_and_lost_tensors(
    three: ThreadServer, capsys: pytest.CaptureFixture[str]
):
    with gt.signal.context("rows"):
        x = gt.ones(4, 6)
    total = x.sum()
    assert "as 2 terms, of which it is the sum" in str(gt.debug.show(total))
    with gt.signal.context("everywhere"):
        assert "whole on each of 3 workers" in str(gt.debug.show(gt.ones(4)))
    three.lose_worker(1)
    assert "worker_1 is gone" in str(gt.debug.show(x))
