"""The specification of triton_viz's core, statement by statement: each test quotes it and runs it."""

import importlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton.language as tl
from triton.runtime.interpreter import GridExecutor, InterpretedFunction, InterpreterBuilder
from triton.runtime.jit import JITFunction

import triton_viz
from examples import nki_rms_norm
from tests.triton_viz.helpers import client_kernels, kernels
from tests.triton_viz.helpers.watching import Everything, Vectorized, Watch, launch_add, line_of, traced
from triton_viz.clients import Profiler, Sanitizer, Tracer
from triton_viz.core import patch
from triton_viz.core.client import ClientManager, OpCallbacks
from triton_viz.core.data import Launch, Load, Op, Store
from triton_viz.core.trace import NKITrace, TritonTrace
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.dsls.nki.nki_builder import Builder
from triton_viz.dsls.triton.ops.lane_builder import LaneBuilder
from triton_viz.visualizer.interface import create_app

pytestmark = pytest.mark.usefixtures("no_launches")


def test_a_launch_is_appended_to_the_global_list():
    """launch: "a single traced kernel invocation; stored as a `Launch` record and appended to the global
    `launches` list"; record: "any `Op`-derived object emitted by clients during a launch".
    """
    for count in (1, 2, 3):
        launch_add()
        assert len(triton_viz.launches) == count
    assert all(isinstance(launch, Launch) for launch in triton_viz.launches)
    assert triton_viz.launches is importlib.import_module("triton_viz.core.trace").launches
    assert [type(one) for one in triton_viz.launches[-1].records] == [Load, Load, Store]


def builder_attributes() -> list[Any]:
    dsl = OPERATION_REGISTRY["triton"]
    return [getattr(dsl.namespace, name) for name in dsl.operations] + [tl.tensor.__add__]


@pytest.mark.parametrize("fails", [False, True])
def test_a_patch_scope_ends(fails: bool):
    """patch scope: "the period where ops/loops/lang are monkey-patched to route through callbacks"."""
    before, inside = builder_attributes(), []

    class Looking(Vectorized):
        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            return OpCallbacks(before_callback=self.look if op_type is Store else None)

        def look(self, **told: Any) -> None:
            inside.append(builder_attributes())
            if fails:
                raise LookupError

    if fails:
        with pytest.raises(triton_viz.errors.KernelError):
            launch_add(Looking())
    else:
        launch_add(Looking())
    assert inside[0] != before
    assert builder_attributes() == before


def test_backends():
    """backend: "a DSL execution target (`triton` or `nki`) used to select patch/adapter registries".

    "`trace()` returns a `TritonTrace` or `NKITrace` wrapper"; "`NKITrace` uses its own interpreter builder;
    it does not share Triton JIT behavior".
    """
    assert {"triton", "nki"} <= set(OPERATION_REGISTRY)
    assert isinstance(triton_viz.trace("tracer")(kernels.add), TritonTrace)
    assert isinstance(nki_rms_norm.rms_norm, NKITrace)
    assert OPERATION_REGISTRY["triton"].namespace is LaneBuilder
    assert OPERATION_REGISTRY["nki"].namespace is Builder
    assert not issubclass(Builder, LaneBuilder)
    calls = [GridExecutor.__call__, JITFunction.__call__]
    with patch.patch_calls("nki", ClientManager()):
        assert [GridExecutor.__call__, JITFunction.__call__] == calls
    assert not hasattr(nki_rms_norm.rms_norm, "jit_fn")
    rows = np.random.default_rng(0).random((256, 64), np.float32)
    expected = rows / np.sqrt((rows**2).mean(axis=1, keepdims=True) + 1e-6)
    assert np.allclose(nki_rms_norm.rms_norm[2](rows), expected, atol=1e-4)
    assert triton_viz.launches[-1].kernel == "rms_norm"


@pytest.mark.parametrize("grid", [(3,), (2, 3), (2, 1, 3)])
def test_grid_indices(grid: tuple[int, ...]):
    """grid index: "the (x, y, z) program coordinate currently executing inside the interpreter"; "each
    program index triggers `grid_idx_callback`".
    """
    client = Everything()
    x = torch.ones(4)
    traced(client, kernels.add)[grid](x, x, x.clone(), 4, BLOCK=4)
    sizes = (*grid, 1, 1)[:3]
    heard = [told[1] for told in client.heard if told[0] == "program"]
    assert sorted(heard) == list(itertools.product(*map(range, sizes)))


def test_the_wrapper_keeps_both_functions():
    """Specified: "For Triton, the wrapper keeps both the JIT function and an interpreted function"."""
    kernel = triton_viz.trace("tracer")(kernels.add)
    assert kernel.jit_fn is kernels.add
    assert isinstance(kernel.interpreted_fn, InterpretedFunction)
    x, out = torch.arange(4.0), torch.zeros(4)
    kernel.interpreted_fn[(1,)](x, x, out, 4, BLOCK=4)
    assert out.tolist() == [0, 2, 4, 6]
    assert "tt.load" in kernel.warmup(x, x, out, 4, BLOCK=4, grid=(1,)).asm["ttir"]
    assert triton_viz.launches == []


def test_patch_run_executes_a_grid_for_the_clients():
    """Specified: "`ClientManager.patch_run()` patches ops, loops, and language helpers", "Interpreter
    executes a grid", "Each patched op calls client callbacks via standardized adapters".
    """
    client = Everything()
    manager = ClientManager([client])
    out = torch.zeros(2)
    with manager.patch_run(client_kernels.counted.fn, "triton"):
        InterpretedFunction(client_kernels.counted.fn)[(2,)](torch.ones(3), out, 3)
    assert out.tolist() == [3, 3]
    assert client.heard.count("after") == 2
    assert client.heard.count("end of loop") == 2


def test_adapters_are_standardized():
    """Specified: "invoking adapter -> callbacks -> original": what callbacks receive is the same for every
    backend.
    """
    told: dict[str, list[set[str]]] = {}

    class Names(Watch):
        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            def keep(**names: Any) -> None:
                told.setdefault(op_type.__name__, []).append(set(names))

            return OpCallbacks(before_callback=keep if op_type in (Load, Store) else None)

    launch_add(Names())
    triton_viz.trace(Names(), backend="nki")(nki_rms_norm.rms_norm.fn)[2](np.ones((256, 64), np.float32))
    assert all(names == {"tensor", "offsets", "mask"} for names in told["Load"])
    assert all(names == {"tensor", "offsets", "mask", "values"} for names in told["Store"])
    assert len(told["Store"]) == 4, "two programs of each backend"


def test_finalize_aggregates_and_the_launch_has_the_records():
    """Specified: "`ClientManager.finalize()` aggregates records and attaches them to the `Launch`"."""
    clients = [Tracer(), Profiler(), Sanitizer()]
    manager = triton_viz.trace(clients)(kernels.add).client_manager
    launch_add(clients)
    together = [one for client in clients for one in client.finalize()]
    assert triton_viz.launches[-1].records == together == manager.finalize()


def test_patch_calls_replaces_for_the_duration():
    """Specified: "`patch_calls()` replaces `GridExecutor.__call__` and `JITFunction.__call__` for the
    duration", and "only patches at the outermost scope; nested calls do not re-patch".
    """
    before = GridExecutor.__call__, JITFunction.__call__
    manager = ClientManager()
    with patch.patch_calls("triton", manager):
        inside = GridExecutor.__call__, JITFunction.__call__
        assert inside[0] is not before[0]
        assert inside[1] is not before[1]
        with patch.patch_calls("triton", manager):
            assert (GridExecutor.__call__, JITFunction.__call__) == inside
        assert (GridExecutor.__call__, JITFunction.__call__) == inside
    assert (GridExecutor.__call__, JITFunction.__call__) == before


def test_patch_op_wraps_with_patch_op():
    """Specified: "`patch_op()` wraps each op with `PatchOp`, invoking adapter -> callbacks -> original".

    "`GridExecutor` + `interpreter_builder` are patched to intercept operations": that of our own builder, in
    place of the interpreter's, whose ops stay as they are.
    """
    interpreters = dict(vars(InterpreterBuilder))
    client = Everything()
    with patch.patch_op("triton", ClientManager([client])):
        assert isinstance(LaneBuilder.create_masked_store, patch.PatchOp)
        assert not isinstance(LaneBuilder.create_masked_load, patch.PatchOp), "no client asked for it"
        assert dict(vars(InterpreterBuilder)) == interpreters
    assert not isinstance(LaneBuilder.create_masked_store, patch.PatchOp)


def test_patch_for_loop_instruments_loops():
    """Specified: "`patch_for_loop()` instruments Python `for` loops in interpreter AST"."""
    client = Everything()
    traced(client, client_kernels.nested)[(1,)](torch.ones(6), torch.zeros(1))
    outer, inner = (line_of(client_kernels.nested, f"for {name} ") for name in "ab")
    assert [heard for heard in client.heard if heard[0] == "loop"] == [
        ("loop", outer, 2),
        ("loop", inner, 3),
        ("loop", inner, 3),
    ]


def test_a_new_core_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Specified: "Add a new `Op` subclass", "Update the DSL registry to map a backend op to the new `Op`
    type", "Update clients to emit the new record if needed"; an op payload needs no more than that to be
    drawn.
    """

    class SquareRoot(Op, frozen=True, tag=True, kw_only=True):
        """A record of a test."""

        shape: tuple[int, ...]

    operations = OPERATION_REGISTRY["triton"].operations
    monkeypatch.setitem(
        operations, "create_sqrt", (SquareRoot, lambda builder, value: {"shape": value.shape})
    )
    traced("tracer", kernels.row_norm)[(2,)](torch.ones(2, 4), torch.zeros(2), 4, BLOCK=4)
    (found,) = [one for one in triton_viz.launches[-1].records if isinstance(one, SquareRoot)]
    assert (found.shape, found.programs.count) == ((), 2)
    triton_viz.save(tmp_path / "new.tvz")
    triton_viz.load(tmp_path / "new.tvz")
    assert found in triton_viz.launches[-1].records
    payloads = create_app().test_client().get("/api/data").get_json()["visualization_data"]
    assert [op["fields"] for op in payloads if op["type"] == "SquareRoot"] == [{"shape": []}]


@pytest.mark.parametrize("vectorized", [False, True])
def test_clients_can_ignore_op_types(vectorized: bool):
    """Specified: "clients can ignore op types they do not care about; `OpCallbacks()` is a no-op"."""
    kind = Vectorized if vectorized else Watch
    assert launch_add(kind()).tolist() == (2 * torch.arange(8.0)).tolist()
    assert triton_viz.launches[-1].records == []


def test_a_traced_kernel_inside_another_bypasses_run(monkeypatch: pytest.MonkeyPatch):
    """Specified: "`TritonTrace.__call__` bypasses `run()` when invoked inside another kernel"."""
    inner = triton_viz.trace("tracer")(kernels.square)
    monkeypatch.setattr(kernels, "square", inner)
    ran: list[Any] = []
    monkeypatch.setattr(TritonTrace, "run", lambda self, *args, **kwargs: ran.append(self), raising=True)
    out = torch.zeros(2)
    with triton_viz.trace("tracer"):
        kernels.row_norm[(2,)](torch.full((2, 4), 3.0), out, 4, BLOCK=4)  # type: ignore[arg-type]
    assert out.tolist() == [6, 6]
    assert ran == []
    with pytest.raises(triton_viz.errors.UnsupportedError, match="called without a grid"):
        inner(1)
