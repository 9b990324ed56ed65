"""The specification of triton_viz, statement by statement: its document on clients, and all file maps.

Each test quotes the statement and runs it. What differs, and why, is in ARCHITECTURE.md. The documents on the
core and on the visualizer are in test_seed_triton_viz_core.py and test_seed_triton_viz_page.py.
"""

import importlib
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

import triton_viz
from tests.programs import TIMEOUT
from tests.triton_viz.helpers import client_kernels, kernels
from tests.triton_viz.helpers.watching import Everything, Vectorized, Watch, launch_add, line_of, traced
from triton_viz.clients import Profiler, RaceDetector, Sanitizer, Tracer
from triton_viz.core import patch
from triton_viz.core.client import Client, ClientManager, OpCallbacks
from triton_viz.core.config import cfg
from triton_viz.core.data import Dot, Load, Op, Record, Store
from triton_viz.core.records.accesses import Tensors
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.core.trace import _normalize_client
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.dsls.triton.compiler.compile import Compiled
from triton_viz.errors import SanitizerError
from triton_viz.executor import executor

pytestmark = pytest.mark.usefixtures("no_launches")


FILES = {
    "triton_viz/clients/tracer/tracer.py": "Tracer",
    "triton_viz/clients/profiler/profiler.py": "Profiler",
    "triton_viz/clients/sanitizer/sanitizer.py": "Sanitizer",
    "triton_viz/clients/utils.py": "kernel_call_path",
    "triton_viz/core/trace.py": "trace TritonTrace NKITrace launches",
    "triton_viz/core/client.py": "Client ClientManager",
    "triton_viz/core/patch.py": "PatchOp patch_op patch_calls patch_for_loop",
    "triton_viz/core/data.py": "Launch Op Load Store Dot",
    "triton_viz/core/config.py": "cfg",
    "triton_viz/visualizer/interface.py": "create_app update_global_data",
    "triton_viz/visualizer/draw.py": "get_visualization_data collect_launch",
    "triton_viz/visualizer/analysis.py": "analyze_records",
    "triton_viz/visualizer/tooltip.py": "element_tip",
}


MOVED = {
    "TritonTrace": "triton_viz.dsls.triton.triton_trace",
    "NKITrace": "triton_viz.dsls.nki.nki_trace",
}
"""Where a file is a front for a class of a language."""


@pytest.mark.parametrize(("path", "names"), FILES.items(), ids=FILES)
def test_file_map(path: str, names: str):
    """The file maps of all three documents: each thing is in the file that they name, or imported from it."""
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for name in names.split():
        found = getattr(module, name)
        home = getattr(found, "__module__", module.__name__)
        assert home == MOVED.get(name, module.__name__) or not inspect.isclass(found)


def test_callbacks_in_order():
    """client: "a `Client` subclass with callback hooks invoked by `ClientManager`".

    "`grid_callback()` fires once per launch to set up sampling", "`grid_idx_callback()` fires per program
    index", "`OpCallbacks.before_callback` runs before op execution; `after_callback` after", "`finalize()`
    returns the records for this launch".
    """
    client = Everything()
    traced(client, client_kernels.counted)[(2,)](torch.ones(3), torch.zeros(2), 3)
    loop = ("loop", line_of(client_kernels.counted, "for k"), 3)
    program = [loop, *(("iteration", k) for k in range(3)), "end of loop", "before", "after"]
    assert [heard for heard in client.heard if heard[0] != "register" and heard != "register loops"] == [
        ("pre_run", "counted"),
        *(("arg", name) for name in ("x", "out", "n")),
        ("grid", (2, 1, 1)),
        *(("program", (0, 0, 0)), *program),
        *(("program", (1, 0, 0)), *program),
        ("post_run", "counted"),
        "finalize",
    ]


def test_registration_is_once():
    """Specified: "Registration is called once per op type when patching"; of loops, "once when patching"."""
    client = Everything()
    traced(client, client_kernels.counted)[(2,)](torch.ones(3), torch.zeros(2), 3)
    types = [heard[1] for heard in client.heard if heard[0] == "register"]
    assert len(types) == len(set(types)) > 5
    assert client.heard.count("register loops") == 1


def test_before_sees_memory_without_the_op_and_after_with_it():
    """Specified: "`register_op_callback()` allows the user to add extra code to run before/after an op is
    ran".
    """
    out = torch.zeros(4)

    class Looking(Vectorized):
        def __init__(self) -> None:
            self.seen: list[list[float]] = []

        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            look = (lambda **told: self.seen.append(out.tolist())) if op_type is Store else None
            return OpCallbacks(before_callback=look, after_callback=look)

    client, x = Looking(), torch.ones(4)
    traced(client, kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert client.seen == [[0, 0, 0, 0], [2, 2, 2, 2]]


def test_ops_are_dsl_agnostic():
    """op: "A tensor operation (e.g. load/store/matmul). Ops are DSL-agnostic"."""
    types = [{kind for kind, _ in OPERATION_REGISTRY[name].operations.values()} for name in ("triton", "nki")]
    assert {Load, Store, Dot} <= types[0] & types[1]


def test_records_are_ops_and_findings_of_clients():
    """record: "a concrete `Op` instance or analysis record emitted by a client"."""
    launch_add(["tracer", "profiler", "sanitizer", "race_detector"])
    records = triton_viz.launches[-1].records
    assert all(isinstance(record, Record) for record in records)
    assert {Load, Store} == {type(record) for record in records if isinstance(record, Op)}
    assert {"KernelProfile", "Verdict"} <= {type(r).__name__ for r in records if not isinstance(r, Op)}


@pytest.mark.parametrize("others", [[], ["tracer"], ["sanitizer"]], ids=str)
def test_op_overrider(others: list[Any]):
    """op overrider: "an optional callback that replaces an operation (e.g. skip loads in profiler)".

    "Profiler may skip ops to reduce overhead; do not assume real data is available", and "`op_overrider` can
    bypass expensive ops if you only need metadata".
    """
    profiler = Profiler(skip_loads=True)
    out = launch_add([*others, profiler])
    assert out.tolist() == [0.0] * 8, "loads were skipped"
    (report,) = profiler.report().launches
    assert sum(site.bytes for site in report.sites if site.kind == "load") == 2 * 8 * 4, "but counted"


def test_block_sampling():
    """block sampling: "selecting a subset of grid indices for profiling"."""
    profiler = Profiler(sample=4)
    out = launch_add(profiler, n=64, programs=16)
    stored = [block for block in range(1, 16) if out[4 * block : 4 * block + 4].any()]
    assert 3 <= len(stored) <= 4
    (report,) = profiler.report().launches
    assert sum(site.bytes for site in report.sites if site.kind == "store") == 64 * 4, "scaled to the grid"


def test_callbacks_are_invoked_by_patch_op():
    """Specified: "Core patching: callbacks are invoked by `PatchOp` in `core/patch.py`"."""
    callers: list[str] = []

    class Asking(Vectorized):
        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            return OpCallbacks(after_callback=self.ask if op_type is Load else None)

        def ask(self, **told: Any) -> None:
            frames = inspect.stack(context=0)
            callers.append(
                next(f.function for f in frames if isinstance(f.frame.f_locals.get("self"), patch.PatchOp))
            )

    launch_add(Asking())
    assert callers == ["__call__", "__call__"]


@pytest.mark.parametrize("backend", ["triton", "nki"])
def test_the_registry_determines_what_can_be_hooked(backend: str):
    """Specified: "Op registry: determines which op types can be hooked for each backend".

    "Required: every op in `OPERATION_REGISTRY` must map to an `Op` type."
    """
    client = Everything()
    with ClientManager([client]).patch_run(kernels.add.fn, backend):
        pass
    dsl = OPERATION_REGISTRY[backend]
    hooked = {heard[1] for heard in client.heard if heard[0] == "register"}
    assert hooked == {op_type for op_type, _ in dsl.operations.values()}
    assert all(issubclass(op_type, Op) and op_type is not Op for op_type in hooked)
    assert all(callable(getattr(dsl.namespace, name)) for name in dsl.operations)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cfg, "num_sms", 4)
    monkeypatch.setattr(executor, "FIRST_LANES", 4)


@pytest.mark.usefixtures("threads")
def test_thread_local_state():
    """Specified: "Thread-local state: clients store per-thread data (grid index, sampling state)"."""
    launch_add("tracer", n=64, programs=32)
    launch = triton_viz.launches[-1]
    for program in launch.programs():
        assert [op.offsets.tolist() for op in launch.at(program) if isinstance(op, Store)] == [
            [2 * program[0], 2 * program[0] + 1]
        ]


@pytest.mark.usefixtures("threads")
def test_lock_fn_guards_shared_data():
    """Specified: "Use `lock_fn()` around any shared data mutation when `cfg.num_sms > 1`"."""

    class Counting(Watch):
        def __init__(self) -> None:
            self.count, self.meet, self.seen = 0, threading.Barrier(2), set()
            self.add = self.lock_fn(self._add)

        def grid_idx_callback(self, grid_idx: Any) -> None:
            if grid_idx[0] < 2:
                self.meet.wait(timeout=TIMEOUT)  # two threads for sure

        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            return OpCallbacks(after_callback=self.add if op_type is Store else None)

        def _add(self, **told: Any) -> None:
            self.seen.add(threading.get_ident())
            count = self.count
            threading.Event().wait(0.001)  # lets another thread in, if it may
            self.count = count + 1

    client = Counting()
    launch_add(client, n=64, programs=32)
    assert client.count == 32
    assert len(client.seen) > 1


def test_add_clients_stores_unique_clients():
    """Specified: "`ClientManager.add_clients()` stores unique clients"."""
    manager, tracer = ClientManager(), Tracer()
    manager.add_clients([tracer, Profiler()])
    manager.add_clients([tracer])
    assert [client.NAME for client in manager.clients.values()] == ["tracer", "profiler"]
    manager.add_clients([Tracer(values=True)])
    assert list(manager.clients) == ["tracer", "profiler"]


REQUIRED = {
    *("pre_run_callback", "post_run_callback", "arg_callback", "grid_callback", "grid_idx_callback"),
    *("register_op_callback", "register_for_loop_callback", "finalize"),
}


def test_required_methods():
    """Specified: "Implement required methods: `pre_run_callback`, `post_run_callback`, `arg_callback`,
    `grid_callback`, `grid_idx_callback`, `register_op_callback`, `register_for_loop_callback`, `finalize`."
    """
    assert Client.__abstractmethods__ == REQUIRED


@pytest.mark.parametrize("missing", sorted(REQUIRED))
def test_a_client_that_lacks_a_required_method_cannot_be_made(missing: str):
    """The same list; `pre_warmup_callback` and the others are "Optional"."""
    members = {name: vars(Watch)[name] for name in REQUIRED}
    assert type("Whole", (Client,), {"NAME": "whole", **members})()
    del members[missing]
    with pytest.raises(TypeError, match=missing):
        type("Partial", (Client,), {"NAME": "partial", **members})()


@pytest.mark.parametrize(
    ("name", "kind"), [("tracer", Tracer), ("profiler", Profiler), ("sanitizer", Sanitizer)]
)
def test_string_based_selection(name: str, kind: type):
    """Specified: "If you want string-based selection (e.g. `trace(client='foo')`), add a case in ...
    `_normalize_client()`", which looks up the registry; and "Export the client in
    `triton_viz/clients/__init__.py`".
    """
    assert isinstance(_normalize_client(name), kind)
    assert getattr(importlib.import_module("triton_viz.clients"), kind.__name__) is kind
    launch_add(name)
    assert triton_viz.launches[-1].records


CLIENTS = [Tracer, Profiler, Sanitizer, RaceDetector, lambda: Sanitizer(abort_on_error=True)]


@pytest.mark.parametrize("make", CLIENTS)
@pytest.mark.parametrize("kernel", [kernels.add, client_kernels.outside], ids=["in bounds", "out of bounds"])
def test_finalize_is_a_list_and_idempotent(make: Callable[[], Client], kernel: Any):
    """Specified: "`finalize()` must return a list (possibly empty) and should be idempotent"."""
    client = make()
    assert client.finalize() == []
    x = torch.ones(4)
    try:
        traced([client, "sanitizer"] if client.NAME != "sanitizer" else client, kernel)[(1,)](
            x, x, x, 4, BLOCK=4
        )
    except SanitizerError:
        assert kernel is client_kernels.outside
    first = client.finalize()
    assert isinstance(first, list)
    assert client.finalize() == first
    kept = triton_viz.launches[-1].records
    assert [one for one in kept if one in first] == first


def test_warmup_when_asm_inspection_is_required():
    """Specified: "`pre_warmup_callback`/`post_warmup_callback` when ASM inspection is required", and "Warmup
    is run with the JIT function to collect ASM if needed".
    """

    class Asm(Everything):
        def pre_warmup_callback(self, jit_fn: Callable) -> bool:
            self.heard.append(("pre_warmup", jit_fn))
            return True

        def post_warmup_callback(self, jit_fn: Callable, compiled: Any) -> None:
            self.heard.append(("post_warmup", jit_fn))
            assert isinstance(compiled, Compiled)
            self.asm = compiled.asm

    client = Asm()
    launch_add(client)
    assert client.heard[:2] == [("pre_warmup", kernels.add), ("post_warmup", kernels.add)]
    assert "tt.load" in client.asm["ttir"]
    silent = Everything()
    launch_add(silent)
    assert silent.heard[0] == ("pre_run", "add"), "only if a client needs it"


def test_the_tracers_tensors_are_sorted():
    """Specified: "`Tracer` uses a sorted tensor list to map raw pointers to tensors"."""
    parts = torch.zeros(12).split(4)
    infos = [TensorInfo.of(name, parts[position]) for name, position in (("c", 2), ("a", 0), ("b", 1))]
    tensors = Tensors(infos)
    assert tensors.names == ("a", "b", "c")
    for position, name in enumerate(tensors.names):
        address = parts[position].data_ptr() + 4
        assert tensors.names[tensors.owner(address, address + 4)] == name


@pytest.mark.parametrize("kind", ["symbolic", "concrete", "off"])
def test_the_sanitizer_swaps_implementations(kind: str, monkeypatch: pytest.MonkeyPatch):
    """Specified: "`Sanitizer` swaps implementations based on config, so construction can return a different
    class".
    """
    default = type(Sanitizer())
    monkeypatch.setattr(cfg, "sanitizer", kind)
    made = Sanitizer()
    assert type(made) is not Sanitizer
    assert (type(made) is default) == (kind == "symbolic")
