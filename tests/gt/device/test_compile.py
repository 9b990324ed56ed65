"""torch.compile of functions on the device: every backend gives the results of eager mode on the CPU."""

import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.checkpoint import checkpoint

from gt.errors import WorkerError
from gt.server.embedded import LocalServer
from gt.torch import compiling, device_graph
from tests.gt.helpers.hot_server import stats
from tests.programs import TIMEOUT

pytestmark = [
    # What PyTorch says about itself while it compiles.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def _leaf(*size: int) -> torch.Tensor:
    return torch.randn(*size, requires_grad=True)


def _graph_break(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    torch._dynamo.graph_break()
    return y.sin()


def _branch(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.sum() > 0 else x - 1


def _change_input(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    x[0].mul_(2)
    return x * y


def _change_view(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    flat = x.view(-1)
    flat[2:5] += y
    return flat[::2], x


def _aliases(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x * 2
    return y, y.view(-1), y.t(), x.t(), x


def _without_gradient(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = x * 3
    return y + x


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]], dict[str, Any]]] = {
    "one graph": (lambda x, y: (x @ y).relu() + 1, lambda n: (_leaf(3, 4), _leaf(4, 5)), {"fullgraph": True}),
    "dynamic shapes": (
        lambda x: (x * 2).sum(0) + x.shape[0],
        lambda n: (_leaf(3 + n, 4),),
        {"dynamic": True},
    ),
    "sizes as results": (lambda x: (x.shape[0] * 2, None, x + 1), lambda n: (_leaf(3 + n, 4),), {}),
    "a graph break": (_graph_break, lambda n: (_leaf(3, 4),), {}),
    "control flow on data": (_branch, lambda n: (_leaf(3, 4),), {}),
    "a shape that depends on data": (lambda x: x[x > 0] * 2, lambda n: (_leaf(3, 4),), {}),
    "an input changed in place": (_change_input, lambda n: (torch.randn(3, 4), _leaf(3, 4)), {}),
    "a view changed in place": (_change_view, lambda n: (torch.randn(3, 4), torch.randn(3)), {}),
    "aliases": (_aliases, lambda n: (_leaf(3, 4),), {}),
    "aliases without gradients": (_aliases, lambda n: (torch.randn(3, 4),), {}),
    "floats that change": (lambda x, f: x * f + f, lambda n: (_leaf(3, 4), 0.5 + n / 4), {}),
    "a number on the CPU": (lambda x, f: x * f, lambda n: (_leaf(3, 4), torch.tensor(1.5 + n)), {}),
    "an integer on the CPU": (lambda x, f: x * f, lambda n: (_leaf(3, 4), torch.tensor(2 + n)), {}),
    "constants of the CPU": (
        lambda x: x * torch.tensor(2.0) + torch.arange(4).to(x.device),
        lambda n: (_leaf(3, 4),),
        {},
    ),
    "no_grad inside": (_without_gradient, lambda n: (_leaf(3, 4),), {}),
    "expanded results": (
        lambda x: (x.expand(5, 3, 4), (x * 2).expand(5, 3, 4)),
        lambda n: (_leaf(3, 4),),
        {},
    ),
    "strided inputs": (lambda x: x.t().contiguous() + x.t(), lambda n: (torch.randn(4, 3).t(),), {}),
    "several results": (lambda x: (*x.split(2), *x.sort(0)), lambda n: (_leaf(6, 4),), {}),
    "complex numbers": (
        lambda x: torch.view_as_real(torch.fft.fft(x).conj() * 2),
        lambda n: (_leaf(4, 4),),
        {},
    ),
    "attention": (
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        lambda n: (_leaf(2, 2, 5, 4),),
        {},
    ),
    "a checkpoint": (
        lambda x, w: checkpoint(lambda a: (a @ w).sin(), x, use_reentrant=False),
        lambda n: (_leaf(3, 4), _leaf(4, 4)),
        {},
    ),
    "nothing but its input": (lambda x: x, lambda n: (_leaf(3, 4),), {}),
}


_OTHERS = ("dynamic shapes", "a graph break", "control flow on data", "an input changed in place")
"""Programs that run with other backends, too, unless all tests run."""


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        pytest.param(name, backend, marks=() if usual else pytest.mark.thorough)
        for name in PROGRAMS
        for backend in ("tapestry", "inductor", "aot_eager", "eager")
        for usual in [backend == "tapestry" or (backend == "inductor" and name in _OTHERS)]
    ],
)
@pytest.mark.filterwarnings("ignore:torch.compile")
def test_a_compiled_function_gives_what_the_cpu_gives(name: str, backend: str):
    torch.manual_seed(0)
    function, make, options = PROGRAMS[name]
    compiled = torch.compile(function, backend=backend, **options)
    for n in range(3):
        theirs = make(n)
        ours = [_moved(one) for one in theirs]
        expected, found = function(*theirs), compiled(*ours)
        _compare((found, ours), (expected, theirs))
        outputs = [_differentiable(one) for one in (found, expected)]
        assert len(outputs[0]) == len(outputs[1])
        if outputs[0]:
            for tensors in outputs:
                torch.stack([(one.double() ** 2).sum() for one in tensors]).sum().backward()
            _compare([_gradient(one) for one in ours], [_gradient(one) for one in theirs])


def _moved(one: Any) -> Any:
    if not isinstance(one, torch.Tensor) or (not one.dim() and not one.requires_grad):
        return one
    return one.detach().clone().to("tapestry").requires_grad_(one.requires_grad)


def _differentiable(results: Any) -> list[torch.Tensor]:
    return [one for one in tree_leaves(results) if isinstance(one, torch.Tensor) and one.requires_grad]


def _gradient(one: Any) -> Any:
    return one.grad if isinstance(one, torch.Tensor) else None


def _compare(found: Any, expected: Any) -> None:
    found, expected = tree_map(_detached, (found, list(expected) if isinstance(found, list) else expected))
    torch.testing.assert_close(tree_leaves(found), tree_leaves(expected), rtol=1e-4, atol=1e-5)


def _detached(one: Any) -> Any:
    return one.detach().cpu().resolve_conj() if isinstance(one, torch.Tensor) else one


# --- what the stream sees ---


def test_a_call_is_one_repeat(hot: LocalServer, monkeypatch):
    monkeypatch.setenv("GT_COMPILE_AFTER", "inf")

    def function(x: torch.Tensor) -> torch.Tensor:
        for n in range(20):
            x = x.sin() + n
        return x

    compiled = torch.compile(function, backend="tapestry")
    x = torch.ones(3, device="tapestry")
    compiled(x)
    before = stats(hot)
    for _ in range(5):
        compiled(x)
    after = stats(hot)
    (sequence,) = after["repetitions"]
    assert after["repetitions"][sequence] - before["repetitions"][sequence] == 5
    assert after["hot_instructions"] - before["hot_instructions"] == 5 * (40 + 39)
    assert after["total_instructions"] - before["total_instructions"] == 5 * (40 + 39 + 1), "and 5 frees"


def test_a_graph_that_repeats_is_not_compiled_if_nothing_is_to_be(hot: LocalServer, monkeypatch):
    monkeypatch.setenv("GT_COMPILE_AFTER", "inf")

    def function(x: torch.Tensor) -> torch.Tensor:
        for n in range(20):
            x = x.sin() + n
        return x

    repeated = torch.compile(function, backend="tapestry")
    for _ in range(5):
        repeated(torch.ones(3, device="tapestry"))
    found = stats(hot)
    assert set(found["repetitions"].values()) == {5}
    assert (found["compiling"], found["compiled"]) == (0, 0)


def test_a_float_that_changes_is_the_same_sequence_and_the_same_graph(hot: LocalServer, monkeypatch):
    monkeypatch.setenv("GT_COMPILE_AFTER", "inf")
    compiled = torch.compile(lambda x, f: (x * f).sin() + f, backend="tapestry")
    x = torch.ones(3, device="tapestry")
    for n in range(3):  # TorchDynamo takes the first value for a constant
        compiled(x, 0.5 + n)
    before = stats(hot)
    with torch.compiler.set_stance("fail_on_recompile"):
        for n in range(4):
            torch.testing.assert_close(
                compiled(x, 0.25 * n).cpu(), (torch.ones(3) * 0.25 * n).sin() + 0.25 * n
            )
    after = stats(hot)
    assert after["repetitions"].keys() == before["repetitions"].keys()
    assert sum(after["repetitions"].values()) == sum(before["repetitions"].values()) + 4


def test_a_graph_that_is_too_long_for_a_sequence_is_several(hot: LocalServer, monkeypatch):
    monkeypatch.setenv("GT_COMPILE_AFTER", "inf")
    monkeypatch.setattr("gt.torch.recording.MAX_SEQUENCE_OPS", 16)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kept = []
        y = x
        for n in range(12):
            values, places = y.sort(0)
            y = values + places * x - n
            kept.append(y.mean())
        return y, *kept

    compiled = torch.compile(function, backend="tapestry")
    x = torch.randn(5, 3)
    for _ in range(2):
        _compare(compiled(x.to("tapestry")), function(x))
    found = stats(hot)
    assert found["hot_sequences"] > 2
    assert set(found["repetitions"].values()) == {2}
    torch.compiler.reset()
    del compiled
    assert stats(hot)["tensors"] == 0, "values between the parts are freed"


def test_random_numbers_are_those_of_eager_mode_and_new_in_every_call():
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.5) + torch.rand(4, device=x.device) + torch.randn_like(x)

    compiled = torch.compile(function, backend="tapestry")
    x = torch.ones(4, device="tapestry")
    torch.manual_seed(1)
    found = [compiled(x).tolist() for _ in range(3)]
    torch.manual_seed(1)
    assert found == [function(x).tolist() for _ in range(3)]
    assert len({tuple(one) for one in found}) == 3
    torch.manual_seed(1)
    assert compiled(x).tolist() == found[0]


def test_a_checkpoint_with_dropout_has_the_gradient_of_its_result():
    def function(x: torch.Tensor) -> torch.Tensor:
        dropped = checkpoint(lambda a: F.dropout(a * 2, 0.5), x, use_reentrant=False)
        assert isinstance(dropped, torch.Tensor)
        return dropped

    x = torch.ones(64, device="tapestry", requires_grad=True)
    result = torch.compile(function, backend="tapestry")(x)
    result.sum().backward()
    assert x.grad is not None
    assert result.detach().cpu().equal(x.grad.cpu())


def test_a_failure_is_raised_with_the_line_of_the_compiled_code():
    def function(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y.gather(0, places) + 1  # this line

    found = torch.compile(function, backend="tapestry")(
        torch.ones(3, device="tapestry"), torch.tensor([7]).to("tapestry")
    )
    line = function.__code__.co_firstlineno + 2
    with pytest.raises(WorkerError, match=rf"{__file__}:{line}, failed on .*index 7"):
        found.cpu()


def test_a_saved_input_that_is_changed_before_the_backward_pass_is_an_error():
    x, y = (torch.ones(3, device="tapestry", requires_grad=True) for _ in range(2))
    result = torch.compile(lambda x, y: x * y, backend="tapestry")(x, y)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_beyond_the_limit_of_recordings_graphs_run_op_by_op(monkeypatch):
    monkeypatch.setattr(device_graph, "MAX_RECORDINGS", 2)
    compiled = torch.compile(lambda x: (x * 2).sum(0), backend="tapestry", dynamic=True)
    for n in range(2, 7):
        x = torch.randn(n, 3)
        _compare(compiled(x.to("tapestry")), (x * 2).sum(0))


# --- other backends, and warnings ---


def test_the_default_backend_runs_eagerly_and_warns_once(monkeypatch):
    monkeypatch.setattr(compiling, "_warned", False)
    x = torch.ones(3, device="tapestry")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for function in (lambda x: x + 1, lambda x: x * 2):
            torch.compile(function)(x)
    (said,) = [str(one.message) for one in caught if "tapestry" in str(one.message)]
    assert 'run eagerly there. Use torch.compile(..., backend="tapestry")' in said


def test_programs_on_the_cpu_still_go_to_inductor(monkeypatch):
    from torch._inductor import compile_fx

    given: list[Any] = []

    def spy(module: Any, inputs: Any, **_: Any) -> Any:
        given.append(inputs)
        return module.forward

    monkeypatch.setattr(compile_fx, "compile_fx", spy)
    monkeypatch.setattr(compiling, "_warned", True)
    compiled = torch.compile(lambda x: x + 1)
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert len(given) == 1
    assert compiled(torch.ones(2, device="tapestry")).tolist() == [2, 2]
    assert len(given) == 1


def test_a_graph_without_tensors_of_the_device_runs_on_its_own_device():
    compiled = torch.compile(lambda x: x + 1, backend="tapestry")
    with pytest.warns(
        UserWarning, match="a graph without tensors of the device tapestry runs eagerly on cpu"
    ):
        assert compiled(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("argument", [{"mode": "max-autotune"}, {"options": {"max_autotune": True}}])
def test_modes_and_options_are_errors(argument: dict[str, Any]):
    (name,) = argument
    with pytest.raises(TypeError, match=f"takes no mode and no options, and was given {name}="):
        torch.compile(lambda x: x, backend="tapestry", **argument)
    torch.compile(lambda x: x, backend="tapestry", mode="default")


def test_the_device_does_not_import_torchdynamo():
    program = textwrap.dedent("""
        import sys, gt.torch, torch
        assert not any(name.startswith(("torch._dynamo", "torch._inductor")) for name in sys.modules)
        compiled = torch.compile(lambda x: x + 1, backend="tapestry")
        print(compiled(torch.ones(2, device="tapestry")).tolist())
        print("tapestry" in torch._dynamo.list_backends())
    """)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT)
    assert ran.stdout == "[2.0, 2.0]\nTrue\n", ran.stderr
