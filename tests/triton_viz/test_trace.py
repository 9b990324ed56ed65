"""Tracing: results are correct, records describe the ops, and nothing stays patched."""

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import GridExecutor, InterpretedFunction, interpreter_builder
from triton.runtime.jit import JITFunction

import triton_viz
from examples import matmul
from tests.programs import run_python
from tests.triton_viz.helpers import kernels
from tests.triton_viz.helpers.watching import Counter, accesses, line_of, ops_of
from triton_viz.clients import Tracer
from triton_viz.core.client import ClientManager, OpCallbacks
from triton_viz.core.data import Access, Atomic, Dot, Launch, Load, Op, Store
from triton_viz.core.trace import TritonTrace
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.errors import AccessError, KernelError, UnsupportedError

pytestmark = pytest.mark.usefixtures("no_launches")


def traced_add(n: int = 10, block: int = 4) -> Launch:
    x, y, out = torch.arange(n) * 1.0, torch.ones(n), torch.zeros(n)
    triton_viz.trace()(kernels.add)[(triton_cdiv(n, block),)](x, y, out, n, BLOCK=block)
    torch.testing.assert_close(out, x + y)
    return triton_viz.launches[-1]


def triton_cdiv(n: int, block: int) -> int:
    return -(-n // block)


def test_a_launch_says_what_ran():
    launch = traced_add()
    assert (launch.kernel, launch.grid) == ("add", (3, 1, 1))
    assert [(t.name, t.shape, t.dtype) for t in launch.tensors] == [
        (name, (10,), "float32") for name in ("x", "y", "out")
    ]
    assert launch.file == kernels.__file__
    assert "tl.store(out + at" in launch.source


def test_every_program_leaves_its_loads_and_stores_in_order():
    launch = traced_add()
    assert [type(r).__name__ + ":" + r.tensor for r in accesses(launch) if r.program == (1, 0, 0)] == [
        "Load:x",
        "Load:y",
        "Store:out",
    ]
    for record in accesses(launch):
        first = record.program[0] * 4
        np.testing.assert_array_equal(record.offsets, np.arange(first, first + 4))
        np.testing.assert_array_equal(record.mask, np.arange(first, first + 4) < 10)


def test_records_name_the_source_line():
    launch = traced_add()
    store = line_of(kernels.add, "tl.store")
    assert {r.call_path[-1].line for r in launch.records} == {store}
    assert {Path(r.call_path[0].file).name for r in launch.records} == {"kernels.py"}


def test_a_nested_function_shows_the_whole_call_path():
    x, out = torch.randn(3, 5), torch.zeros(3)
    triton_viz.trace()(kernels.row_norm)[(3,)](x, out, 5, BLOCK=8)
    torch.testing.assert_close(out, x.norm(dim=1))
    load = triton_viz.launches[-1].records[0]
    assert isinstance(load, Load)
    assert [site.function for site in load.call_path] == ["row_norm", "load_row"]
    assert [site.line for site in load.call_path] == [
        line_of(kernels.row_norm, "load_row("),
        line_of(kernels.load_row, "tl.load("),
    ]


def test_matmul_over_a_two_dimensional_grid():
    a, b, c = torch.randn(32, 48), torch.randn(48, 64), torch.zeros(32, 64)
    matmul.matmul[lambda args: (2, 4)](a, b, c, 32, 64, 48, TILE=16)
    torch.testing.assert_close(c, a @ b)
    launch = triton_viz.launches[-1]
    assert launch.grid == (2, 4, 1)
    dots = [op for op in ops_of(launch) if isinstance(op, Dot)]
    assert len(launch.records) == 3 * 3 + 1, "one record for all programs, per op and iteration"
    assert len(dots) == 2 * 4 * 3
    assert {(d.left, d.right, d.result) for d in dots} == {((16, 16), (16, 16), (16, 16))}


def test_atomics_are_records_too_and_are_guarded():
    bins, x = torch.zeros(4, dtype=torch.int32), torch.tensor([0, 1, 1, 3, 3, 3, 3, 0], dtype=torch.int32)
    kernel = triton_viz.trace()(kernels.count)
    kernel[(2,)](x, bins, 8, BLOCK=4)
    assert bins.tolist() == [2, 2, 0, 4]
    atomics = [op for op in ops_of(triton_viz.launches[-1]) if isinstance(op, Atomic)]
    assert [(record.tensor, record.offsets.tolist()) for record in atomics] == [
        ("bins", [0, 1, 1, 3]),
        ("bins", [3, 3, 3, 0]),
    ]
    with pytest.raises(AccessError, match=r"kernel count, program \(0, 0, 0\)"):
        kernel[(2,)](x + 10_000, bins, 8, BLOCK=4)
    assert bins.tolist() == [2, 2, 0, 4]


def test_compare_and_swap_is_an_atomic():
    lock, out = torch.zeros(1, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    triton_viz.trace()(kernels.first_wins)[(3,)](lock, out)
    assert (lock.tolist(), out.tolist()) == ([1], [0, 1, 1])
    assert [type(op).__name__ for op in ops_of(triton_viz.launches[-1])] == ["Atomic", "Store"] * 3


def test_descriptors_are_loads_and_stores():
    x, out = torch.arange(256.0).reshape(16, 16), torch.zeros(16, 16)
    triton_viz.trace()(kernels.copy_by_descriptor)[(4,)](x, out, ROWS=4, COLUMNS=16)
    torch.testing.assert_close(out, x)
    load = accesses(triton_viz.launches[-1])[2]
    assert (type(load), load.tensor, load.offsets.min(), load.offsets.max()) == (Load, "x", 64, 127)


@pytest.mark.parametrize(
    ("view", "index"),
    [
        (lambda base: base.T[:4, :2], lambda r, c: (c, r)),
        (lambda base: base[2:6, 4:6], lambda r, c: (r + 2, c + 4)),
        (lambda base: base[::2, ::4][:4, :2], lambda r, c: (r * 2, c * 4)),
        (lambda base: base[:4, 5:6].expand(4, 2), lambda r, c: (r, 5)),
    ],
    ids=["transposed", "sliced", "stepped", "expanded"],
)
def test_views_map_to_the_right_elements(view, index):
    base = torch.arange(64.0).reshape(8, 8)
    x, out = view(base), torch.zeros(4, 2)
    triton_viz.trace()(kernels.copy_strided)[(1,)](x, out, *x.stride(), ROWS=4, COLUMNS=2)
    torch.testing.assert_close(out, x)
    launch = triton_viz.launches[-1]
    load = launch.at((0, 0, 0))[0]
    assert isinstance(load, Load)
    info = launch.tensors[0]
    touched = info.elements(load.offsets).tolist()
    if 0 in x.stride():  # one element has several indices: the first of them
        assert touched == [[0, 0], [2, 2], [4, 4], [6, 6]]
    else:
        assert touched == [[0, 1], [2, 3], [4, 5], [6, 7]]
    for r in range(4):
        for c in range(2):
            assert base[index(r, c)] == x[r, c]


def test_three_runs_are_three_launches_with_their_own_records():
    kernel = triton_viz.trace()(kernels.add)
    x, out = torch.ones(8), torch.zeros(8)
    for n in (2, 4, 8):
        kernel[(1,)](x, x, out, n, BLOCK=8)
    assert triton_viz.launches is __import__("triton_viz.core.trace", fromlist=["launches"]).launches
    assert [int(accesses(launch)[0].mask.sum()) for launch in triton_viz.launches] == [2, 4, 8]
    assert len({launch.id for launch in triton_viz.launches}) == 3
    assert len({id(launch.records) for launch in triton_viz.launches}) == 3


def test_several_clients_see_every_op():
    counter = Counter()
    kernel = triton_viz.trace(client=["tracer", counter])(kernels.add)
    x, out = torch.ones(8), torch.zeros(8)
    kernel[(2,)](x, x, out, 8, BLOCK=4)
    assert (counter.ops["Load"], counter.ops["Store"]) == (4, 2)
    assert len(triton_viz.launches[-1].records) == 3, "also of programs that ran one by one"
    assert triton_viz.launches[-1].ops == 6
    assert counter.calls == [
        "pre_run",
        *(f"arg {name}" for name in ("x", "y", "out", "n", "BLOCK")),
        "grid (2, 1, 1)",
        "program (0, 0, 0)",
        "program (1, 0, 0)",
        "post_run",
    ]


def test_finalize_is_idempotent():
    tracer = Tracer()
    x, out = torch.ones(4), torch.zeros(4)
    triton_viz.trace(tracer)(kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert len(tracer.finalize()) == 3
    assert tracer.finalize() == tracer.finalize()
    manager = ClientManager([tracer, Tracer()])
    assert list(manager.clients) == ["tracer"], "one client a name"


def test_every_registered_op_has_a_record_type_and_exists():
    for dsl in OPERATION_REGISTRY.values():
        for name, (op_type, adapter) in dsl.operations.items():
            assert issubclass(op_type, Op)
            assert callable(getattr(dsl.namespace, name))
            assert callable(adapter)


def patched_places() -> list[object]:
    return [
        GridExecutor.__call__,
        JITFunction.__call__,
        InterpretedFunction.__call__,
        tl.load,
        tl.core.load,
        tl.sum,
        tl.tensor.__add__,
        *(name in vars(interpreter_builder) for name in OPERATION_REGISTRY["triton"].operations),
        "set_grid_idx" in vars(interpreter_builder),
    ]


class Interrupting(Counter):
    """Raises KeyboardInterrupt in the second program."""

    NAME = "interrupting"

    def grid_idx_callback(self, grid_idx):
        if grid_idx == (1, 0, 0):
            raise KeyboardInterrupt


def test_everything_is_restored_after_success_failure_and_interruption():
    before = patched_places()
    traced_add()
    assert patched_places() == before
    kept = list(triton_viz.launches)

    with pytest.raises(KernelError):
        triton_viz.trace()(kernels.raises)[(1,)](torch.ones(4), BLOCK=4)
    assert patched_places() == before

    x, out = torch.ones(8), torch.zeros(8)
    with pytest.raises(KeyboardInterrupt):
        triton_viz.trace(Interrupting)(kernels.add)[(2,)](x, x, out, 8, BLOCK=4)
    assert patched_places() == before
    assert triton_viz.launches == kept, "earlier launches are kept"
    traced_add()


def test_threads_take_turns_and_leave_nothing_patched():
    before = patched_places()
    kernel = triton_viz.trace()(kernels.add)
    different = []

    def launch() -> None:
        for n in range(1, 6):
            x, out = torch.full((8,), float(n)), torch.zeros(8)
            kernel[(2,)](x, x, out, 8, BLOCK=4)
            if out.tolist() != [2.0 * n] * 8:
                different.append(out)

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert different == []
    assert [len(launch.records) for launch in triton_viz.launches] == [3] * 20
    assert patched_places() == before


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e5m2, torch.float8_e4m3fn], ids=str)
def test_values_of_narrow_floats_are_shown_and_saved(dtype: torch.dtype, tmp_path: Path):
    x = torch.tensor([1.0, -2.5, 0.0, 3.0]).to(dtype)
    out = torch.zeros(4).to(dtype)
    triton_viz.trace(Tracer(values=True))(kernels.shift)[(1,)](x, out, 0, BLOCK=4)
    assert out.float().tolist() == x.float().tolist()
    triton_viz.save(tmp_path / "trace.tvz")
    triton_viz.load(tmp_path / "trace.tvz")
    for op in accesses(triton_viz.launches[-1]):
        assert op.values is not None
        assert op.values.tolist() == [x.float().tolist()]


def test_a_load_shows_the_value_before_a_store_to_the_same_element():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    triton_viz.trace(Tracer(values=True))(kernels.add)[(2,)](x, x, x, 4, BLOCK=2)
    assert x.tolist() == [2, 4, 6, 8]
    load, _, store = (op.values for op in accesses(triton_viz.launches[-1])[3:])
    assert load is not None
    assert store is not None
    assert (load.tolist(), store.tolist()) == ([[3, 4]], [[6, 8]])


def test_a_fully_masked_access_touches_no_tensor():
    x, out = torch.ones(4), torch.zeros(4)
    triton_viz.trace()(kernels.add)[(2,)](x, x, out, 4, BLOCK=4)
    last = ops_of(triton_viz.launches[-1])[-1]
    assert isinstance(last, Store)
    assert (last.program, last.tensor, last.mask.any()) == ((1, 0, 0), "", np.False_)


def test_bad_input_says_what_to_do():
    with pytest.raises(UnsupportedError, match=r"Write @triton_viz\.trace\(\) above @triton\.jit"):
        triton_viz.trace()(lambda: None)
    with pytest.raises(UnsupportedError, match=r"'racer' is not a client: give .*'tracer'"):
        triton_viz.trace("racer")
    with pytest.raises(UnsupportedError, match="no backend is called 'cuda'"):
        triton_viz.trace(backend="cuda")
    kernel = triton_viz.trace()(kernels.add)
    x = torch.ones(4)
    for grid in ((1, 2, 3, 4), "4", ()):
        with pytest.raises(UnsupportedError, match=r"kernel add: a grid is one to three sizes"):
            kernel[grid](x, x, x, 4, BLOCK=4)
    for grid in ((2.7,), (-1,)):
        with pytest.raises(UnsupportedError, match="sizes are integers"):
            kernel[grid](x, x, x, 4, BLOCK=4)
    with pytest.raises(TypeError, match="kernel add: the launch lacks argument 'BLOCK'"):
        kernel[(1,)](x, x, x, 4)
    with pytest.raises(UnsupportedError, match="kernel cannot run on a tensor of device meta"):
        kernel[(1,)](torch.ones(4, device="meta"), x, x, 4, BLOCK=4)
    with pytest.raises(UnsupportedError, match=r"cannot take a tensor of layout torch\.sparse_coo"):
        kernel[(1,)](x.to_sparse(), x, x, 4, BLOCK=4)
    assert triton_viz.launches == []


class Relaunching(Counter):
    """Launches another kernel from its own callback."""

    NAME = "relaunching"

    def register_op_callback(self, op_type):
        def launch(**arguments):
            x = torch.ones(4)
            triton_viz.trace()(kernels.scale)[(1,)](x, 2.0, BLOCK=4)
            assert x.tolist() == [2.0] * 4

        return OpCallbacks(after_callback=launch) if op_type is Store else OpCallbacks()


def test_a_client_may_launch_a_kernel_from_a_callback():
    before = patched_places()
    x, out = torch.ones(8), torch.zeros(8)
    triton_viz.trace([Relaunching(), "tracer"])(kernels.add)[(2,)](x, x, out, 8, BLOCK=4)
    assert out.tolist() == [2.0] * 8
    assert [launch.kernel for launch in triton_viz.launches] == ["scale", "scale", "add"]
    assert [type(op).__name__ for op in triton_viz.launches[-1].records] == ["Load", "Load", "Store"]
    assert patched_places() == before


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    from triton_viz.core.config import Config

    monkeypatch.setenv("TRITON_VIZ_NUM_SMS", "3")
    monkeypatch.setenv("TRITON_VIZ_VECTORIZED", "0")
    monkeypatch.setenv("TRITON_VIZ_VALUES", "1")
    config = Config.from_environment()
    assert (config.num_sms, config.vectorized, config.values, config.enabled) == (3, False, True, True)
    monkeypatch.setenv("TRITON_VIZ_NUM_SMS", "many")
    with pytest.raises(ValueError, match="TRITON_VIZ_NUM_SMS is a number of threads, not 'many'"):
        Config.from_environment()


def test_turned_off_trace_returns_the_kernel_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_viz.config, "enabled", False)
    assert triton_viz.trace()(kernels.add) is kernels.add


def test_the_environment_turns_it_off_and_interpret_mode_changes_nothing():
    code = (
        "import triton_viz; from examples.vector_add import vector_add, run\n"
        "print(type(vector_add).__name__)\n"
        "if triton_viz.config.enabled: run(); print(len(triton_viz.launches[-1].records))"
    )

    def output(**environment: str) -> list[str]:
        return run_python("-c", code, environment=environment).stdout.split()

    assert output(TRITON_VIZ_ENABLED="0") == output(TRITON_VIZ_ENABLED="off") == ["JITFunction"]
    assert output() == output(TRITON_INTERPRET="1") == ["TritonTrace", "3"]


def test_a_traced_kernel_can_be_called_by_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernels, "square", triton_viz.trace()(kernels.square))
    assert isinstance(kernels.square, TritonTrace)
    x, out = torch.randn(2, 4), torch.zeros(2)
    triton_viz.trace()(kernels.row_norm)[(2,)](x, out, 4, BLOCK=4)
    torch.testing.assert_close(out, x.norm(dim=1))
    assert len(triton_viz.launches) == 1, "a nested call is no launch"


@triton.jit
def masked_off_for_all(x, out):
    pid = tl.program_id(0)
    tl.store(out + pid, tl.load(x + pid, mask=False, other=1.0))


def test_a_scalar_mask_that_is_false_for_all_programs_touches_nothing():
    out = torch.zeros(5)
    triton_viz.trace("tracer")(masked_off_for_all)[(5,)](torch.zeros(5), out)
    records = triton_viz.launches[-1].records
    assert [record.tensor for record in records if isinstance(record, Access)] == ["", "out"]
    assert out.tolist() == [1.0] * 5
