"""Every op of a PyTorch program has the module and the line of the user's code that issued it."""

import copy
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import gt
import gt.torch
from gt.client import session
from gt.torch import scopes
from tests.gt.device.op_sites import DEVICE, modules, sites_of, x
from tests.gt.device.op_sites import line as line_of
from tests.programs import TIMEOUT

pytestmark = pytest.mark.usefixtures("server")


def line(mark: str) -> int:
    """The number of the line of this file that ends so."""
    return line_of(mark, Path(__file__).read_text())


class Block(nn.Module):
    """Two layers, the second of which is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)  # first
        return self.second(self.second(x)) + 1  # rest


class Net(nn.Module):
    """Blocks, which a backward pass recomputes if `recomputed` is set."""

    def __init__(self, again: str = "") -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.again = again

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            if self.again == "forward":
                x = checkpoint(block.forward, x, use_reentrant=False)
            else:
                reentrant = self.again == "reentrant"
                x = checkpoint(block, x, use_reentrant=reentrant) if self.again else block(x)
        return x


def test_modules_are_named_as_in_named_modules_and_lines_are_those_of_the_model():
    net, given = Net().to(DEVICE), x(2, 4)
    found = sites_of(lambda: net(given).cpu())
    called = {"blocks.0", "blocks.0.first", "blocks.0.second.0", "blocks.0.second.1"}
    assert {one.module for one in found} == called | {name.replace("0", "1", 1) for name in called}
    assert {one.line for one in found if one.module.endswith("first")} == {line("# first")}
    assert {one.line for one in found if not one.module.endswith("first")} == {line("# rest")}
    assert [one.op for one in found if one.module == "blocks.0.second.1"] == ["relu", "relu"]


@pytest.mark.parametrize("again", ["module", "reentrant", "forward"])
def test_ops_that_a_checkpoint_recomputes_are_marked(again: str):
    net, given = Net(again).to(DEVICE), x(2, 4).requires_grad_()

    def train() -> None:
        net(given).sum().backward()  # train
        assert given.grad is not None
        given.grad.cpu()

    train()
    found = sites_of(train)
    of_block = [one for one in found if one.module.startswith("blocks.0")]
    assert ("linear", "blocks.0.first", "recompute") in {one[:3] for one in of_block}
    assert ("matmul", "blocks.0.first", "backward", line("# train")) in of_block
    if again != "forward":
        assert ("blocks.0.second.1", "backward") in modules(of_block)


def test_the_backward_pass_of_a_backward_pass_has_the_modules_too():
    model, given = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)).to(DEVICE), x(2, 4)
    given.requires_grad_()

    def penalty() -> Any:
        (slope,) = torch.autograd.grad(model(given).sum(), given, create_graph=True)
        (slope**2).sum().backward()  # penalty
        assert model[0].weight.grad is not None
        return model[0].weight.grad.cpu()

    found = [one for one in sites_of(penalty) if one.line == line("# penalty")]
    assert {"0", "1", "2"} <= {one.module for one in found if one.phase == "backward"}


def test_functional_calls_vmap_and_copies_keep_the_paths():
    net, given = Net().to(DEVICE), x(3, 2, 4)
    parameters = dict(net.named_parameters())

    def call(parameters: Any, one: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(net, parameters, (one,))

    plain = modules(sites_of(lambda: net(given).cpu()))
    assert ("blocks.1.second.0", "") in plain
    assert modules(sites_of(lambda: call(parameters, given).cpu())) == plain
    assert modules(sites_of(lambda: torch.func.vmap(call, (None, 0))(parameters, given).cpu())) == plain
    gradient = torch.func.grad(lambda parameters: call(parameters, given).sum())
    found = modules(sites_of(lambda: gradient(parameters)["blocks.0.first.weight"].cpu()))
    assert {("blocks.0.first", ""), ("blocks.0.first", "backward")} <= found
    twin = copy.deepcopy(net)
    assert modules(sites_of(lambda: twin(given).cpu())) == plain


class Encoder(nn.Module):
    """Its submodule is called by a method that is not `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4)])

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers[0](x)


class Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError(x.shape)


def test_outermost_modules_are_named_by_their_class_unless_a_method_of_a_module_calls_them():
    given, linear, encoder = x(2, 4), nn.Linear(4, 4).to(DEVICE), Encoder().to(DEVICE)
    assert modules(sites_of(lambda: linear(given).cpu())) == {("Linear", "")}
    assert modules(sites_of(lambda: encoder.encode(given).cpu())) == {("layers.0", "")}
    assert modules(sites_of(lambda: (given * 2).cpu())) == {("", "")}


def test_a_module_that_raises_is_left():
    given, linear, broken = x(2, 4), nn.Linear(4, 4).to(DEVICE), nn.Sequential(nn.ReLU(), Broken())
    for _ in range(2):
        with pytest.raises(ValueError, match="2, 4"):
            broken(given)
        assert scopes.current() is scopes.OUTSIDE
        assert modules(sites_of(lambda: linear(given).cpu())) == {("Linear", "")}


def test_modules_that_are_made_in_each_forward_pass_add_no_sites():
    given = x(2, 4)

    class Fresh(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.Softmax(dim=-1)(x)

    fresh = nn.Sequential(Fresh()).to(DEVICE)
    assert modules(sites_of(lambda: fresh(given).cpu())) == {("0.Softmax", "")}
    kept = []
    known = len(session.current().site_texts)
    for _ in range(20):
        kept.append(fresh(given))
        fresh(given)
    assert len(session.current().site_texts) <= known + 2  # these two lines


def test_hooks_belong_to_their_module_and_have_their_own_lines():
    model, given = nn.Sequential(nn.Linear(4, 4)).to(DEVICE), x(2, 4)

    def double(module: nn.Module, given: Any, result: Any) -> torch.Tensor:
        return result * 2  # hook

    model[0].register_forward_hook(double)
    found = sites_of(lambda: model(given).cpu())  # hooked
    assert [one[:2] for one in found] == [("linear", "0"), ("mul", "0")]
    assert [one.line for one in found] == [line("# hooked"), line("# hook")]


def test_threads_do_not_mix():
    """Each thread is in the forward pass of its own model while the others are in theirs."""
    given, barrier = x(2, 4), threading.Barrier(3)

    class Waiting(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            barrier.wait(timeout=TIMEOUT)
            return x * 2

    def train(name: str) -> None:
        model = nn.Sequential()
        model.add_module(name, nn.Sequential(nn.Linear(4, 4), Waiting()))
        model.to(DEVICE)
        for _ in range(3):
            model(given).sum().backward()
        grads[name] = [one.grad for one in model.parameters()]

    grads: dict[str, Any] = {}
    names = ("red", "green", "blue")

    def run() -> None:
        threads = [threading.Thread(target=train, args=(name,)) for name in names]
        for one in threads:
            one.start()
        for one in threads:
            one.join(timeout=TIMEOUT)
        assert len(grads) == 3

    found = sites_of(run)
    for name in names:
        mine = [one for one in found if one.module.startswith(name)]
        assert [one.op for one in mine if one.module == f"{name}.1" and not one.phase] == ["mul"] * 3
        assert [one.op for one in mine if one.module == f"{name}.0"].count("linear") == 3
        assert {one.phase for one in mine} == {"", "backward"}


def test_a_loss_on_the_cpu_goes_backward_in_the_callers_thread():
    linear, given = nn.Linear(4, 4).to(DEVICE), x(2, 4)

    def train() -> Any:
        linear(given).sum().cpu().backward()  # from the CPU
        assert linear.weight.grad is not None
        return linear.weight.grad.cpu()

    found = [one for one in sites_of(train) if one.phase]
    gradient, *rest = found
    assert gradient == ("full", "", "backward", line("# from the CPU"))  # 1.0, which arrives from the CPU
    assert {one[1:] for one in rest} == {("Linear", "backward", line("# from the CPU"))}


def test_an_optimizer_whose_class_was_used_before_and_a_closure_differ():
    linear, given = nn.Linear(4, 1).to(DEVICE), x(2, 4)
    optimizer = torch.optim.LBFGS(linear.parameters(), max_iter=1)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = linear(given).sum()
        loss.backward()
        return loss

    found = modules(sites_of(lambda: optimizer.step(closure)))
    assert {("Linear", ""), ("Linear", "backward"), ("LBFGS.step", "")} <= found


def test_a_failure_on_a_worker_names_the_line_and_the_module():
    model = nn.Sequential(nn.ModuleDict({"words": nn.Embedding(4, 2)})["words"], nn.Linear(2, 2)).to(DEVICE)
    wrong = torch.tensor([[1, 7]]).to(DEVICE)
    result = model(wrong)  # out of range
    where = rf"embedding.*issued at {__file__}:{line('# out of range')} in 0, failed on .*index"
    with pytest.raises(gt.errors.WorkerError, match=where):
        result.cpu()


def test_a_failure_in_a_backward_pass_names_the_module_of_the_forward_pass():
    class Wrong(torch.autograd.Function):
        """Its backward pass asks a worker for a row that is not there."""

        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            (given,) = ctx.saved_tensors
            return nn.functional.embedding(torch.full((2,), 9, device=DEVICE), given)

    class Layer(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return Wrong.apply(x)

    model, given = nn.Sequential(nn.Identity(), Layer()), x(2, 4).requires_grad_()
    model(given).sum().backward()  # goes wrong
    where = rf"{__file__}:{line('# goes wrong')} in the backward pass of 1, failed on"
    assert given.grad is not None
    with pytest.raises(gt.errors.WorkerError, match=where):
        given.grad.cpu()


def test_two_models_at_once_have_their_own():
    given, teacher, student = x(2, 4), Net().to(DEVICE), nn.Sequential(nn.Linear(4, 4)).to(DEVICE)

    def distil() -> Any:
        loss = (student(given) - teacher(given).detach()).pow(2).sum()  # distil
        loss.backward()
        return loss.item()

    found = sites_of(distil)
    assert ("linear", "0", "", line("# distil")) in found
    assert ("linear", "blocks.1.first", "", line("# first")) in found
    assert {one.module for one in found if one.phase} == {"", "0"}


def test_the_debug_output_has_the_module_and_the_line(monkeypatch, capsys):
    linear, given = nn.Linear(4, 4).to(DEVICE), x(2, 4)
    monkeypatch.setenv("GT_DEBUG_CLIENT", "1")
    linear(given).cpu()  # debugged
    shown = capsys.readouterr().err
    assert "op=linear input=2 input=0 input=1" in shown
    assert f"module=Linear at={__file__}:{line('# debugged')}" in shown


def test_scopes_do_not_disturb_tracing():
    model, given = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.ones(2, 4)
    traced = torch.fx.symbolic_trace(model)
    assert [node.op for node in traced.graph.nodes] == [
        "placeholder",
        "call_module",
        "call_module",
        "output",
    ]
    torch.testing.assert_close(traced(given), model(given))
    exported = torch.export.export(model, (given,))
    torch.testing.assert_close(exported.module()(given), model(given))
    model[0].register_forward_hook(lambda module, given, result: result.neg())  # it calls through `__call__`
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(given), model(given))
