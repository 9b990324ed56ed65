"""Patch scopes: attributes are replaced while a launch runs, and restored afterwards."""

import threading
import time
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import GridExecutor, InterpretedFunction
from triton.runtime.jit import JITFunction

import triton_viz
from tests.programs import TIMEOUT
from tests.triton_viz.helpers import kernels
from tests.triton_viz.helpers.watching import Vectorized, Watch, functions_of, traced
from triton_viz.clients import Tracer
from triton_viz.core import patch
from triton_viz.core.client import ClientManager, OpCallbacks
from triton_viz.core.data import Load, Op, Store

pytestmark = pytest.mark.usefixtures("no_launches")


def calls() -> list[Any]:
    return [owner.__call__ for owner in (GridExecutor, JITFunction, InterpretedFunction)]


def test_calls_of_kernels_are_replaced_for_the_duration_of_a_scope():
    before = calls()
    with ClientManager().patch_run(kernels.add.fn, "triton"):
        inside = calls()
    assert all(new is not old for new, old in zip(inside, before, strict=True))
    assert calls() == before


def test_only_the_outermost_scope_patches():
    manager, before = ClientManager(), calls()

    def marker(self: Any, *args: Any, **kwargs: Any) -> None: ...

    with patch.patch_calls("triton", manager):
        GridExecutor.__call__ = marker
        with patch.patch_calls("triton", manager):
            assert GridExecutor.__call__ is marker, "it was patched again"
        assert GridExecutor.__call__ is marker, "it was put back too early"
    assert calls() == before


def test_an_interpreted_kernel_runs_on_our_executor_inside_a_scope():
    """With `patch_run` only, without `trace`: the manager's clients receive every op."""
    manager = ClientManager([Tracer(values=True)])
    kernel = triton_viz.trace(())(kernels.add)
    x, out = torch.arange(8.0), torch.zeros(8)
    with manager.patch_run(kernel.fn, "triton"):
        kernel.interpreted_fn[(2,)](x, x, out, 8, BLOCK=4)
    assert out.tolist() == (2 * x).tolist()
    records = manager.finalize()
    assert [type(record) for record in records] == [Load, Load, Store]
    assert [record.programs.count for record in records] == [2, 2, 2]
    store = records[2]
    assert isinstance(store, Store)
    assert store.values is not None
    assert store.values.reshape(-1).tolist() == out.tolist()
    assert triton_viz.launches == []


def test_outside_of_a_scope_the_interpreted_function_is_tritons():
    kernel = triton_viz.trace("tracer")(kernels.add)
    x, out = torch.arange(4.0), torch.zeros(4)
    kernel.interpreted_fn[(1,)](x, x, out, 4, BLOCK=4)
    assert out.tolist() == (2 * x).tolist()
    assert triton_viz.launches == []
    kernel[(1,)](x, x, out, 4, BLOCK=4)
    assert len(triton_viz.launches) == 1, "and tracing works after it"


@pytest.mark.parametrize("base", [Watch, Vectorized])
def test_a_client_may_launch_an_untraced_interpreted_kernel_from_a_callback(base: type[Watch]):
    untraced = InterpretedFunction(kernels.row_norm.fn)

    class Launching(base):
        def __init__(self) -> None:
            self.sums: list[list[float]] = []

        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            return OpCallbacks(after_callback=self.launch if op_type is Store else None)

        def launch(self, **told: Any) -> None:
            out = torch.zeros(2)
            untraced[(2,)](torch.ones(2, 4), out, 4, BLOCK=4)
            self.sums.append(out.tolist())

    expected = torch.zeros(2)
    traced((), kernels.row_norm)[(2,)](torch.ones(2, 4), expected, 4, BLOCK=4)
    client, tracer = Launching(), Tracer()
    x, out = torch.arange(4.0), torch.zeros(4)
    traced([client, tracer], kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert out.tolist() == (2 * x).tolist()
    assert client.sums == [expected.tolist()]
    assert [type(record) for record in triton_viz.launches[-1].records] == [Load, Load, Store]
    assert len(triton_viz.launches) == 1


def test_a_kernel_that_another_thread_interprets_meanwhile_is_no_part_of_the_launch():
    """It waits for the end of the launch, like another launch."""
    untraced, y = InterpretedFunction(kernels.add.fn), torch.zeros(4)

    class Starting(Vectorized):
        def grid_callback(self, grid: Any) -> None:
            self.other = threading.Thread(target=self.launch, daemon=True)
            self.other.start()
            while self.other.is_alive() and "_run_grid" not in functions_of(self.other):
                time.sleep(0.001)

        def launch(self) -> None:
            untraced[(1,)](torch.ones(4), torch.ones(4), y, 4, BLOCK=4)

    client = Starting()
    x, out = torch.arange(4.0), torch.zeros(4)
    traced(["tracer", client], kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    client.other.join(TIMEOUT)
    assert (out.tolist(), y.tolist()) == ([0, 2, 4, 6], [2.0] * 4)
    (launch,) = triton_viz.launches
    assert [tensor.name for tensor in launch.tensors] == ["x", "y", "out"]
    assert [type(record) for record in launch.records] == [Load, Load, Store]


@triton.jit
def twice(x):
    return x + x


def in_python(x):
    """A plain Python function, which calls a kernel."""
    return twice(x)


@triton.jit
def by_way_of_python(x, out):
    at = tl.program_id(0)
    tl.store(out + at, in_python(tl.load(x + at)))


def test_a_kernel_that_python_calls_inside_another_is_a_device_function():
    x, out = torch.arange(3.0), torch.zeros(3)
    traced("tracer", by_way_of_python)[(3,)](x, out)
    assert out.tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        twice(1)


def test_a_traced_kernel_called_inside_another_does_not_run_a_grid(monkeypatch: pytest.MonkeyPatch):
    inner = triton_viz.trace("tracer")(kernels.square)
    monkeypatch.setattr(kernels, "square", inner)
    out = torch.zeros(2)
    traced("tracer", kernels.row_norm)[(2,)](torch.full((2, 4), 3.0), out, 4, BLOCK=4)
    assert out.tolist() == torch.full((2, 4), 3.0).norm(dim=1).tolist()
    assert [launch.kernel for launch in triton_viz.launches] == ["row_norm"], "run() was bypassed"
