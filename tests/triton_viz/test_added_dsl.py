"""A language that a program registers as in docs/adding-a-dsl.md: `trace` and clients work with it."""

import contextlib
import dataclasses
import math
import threading
from typing import Any

import numpy as np
import pytest

import triton_viz
from triton_viz.clients import Profiler, Tracer
from triton_viz.core.client import ClientManager
from triton_viz.core.data import Load, Record, Reduce, Store
from triton_viz.core.records.columns import Numbers, Programs
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.core.trace import KernelTrace
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.dsls.base import DSL, Accessed, Call, Here
from triton_viz.errors import KernelError, UnsupportedError
from triton_viz.executor.affine import Affine
from triton_viz.executor.value import Value

pytestmark = pytest.mark.usefixtures("no_launches", "registered")

_thread = threading.local()


class Builder:
    """The ops: read or write a column of a matrix, or find its largest element."""

    def fetch(self, column: np.ndarray) -> Value:
        return Value(column[None], column.dtype)

    def put(self, column: np.ndarray, values: Value) -> None:
        column[...] = values.data[0]

    def largest(self, inputs: tuple[Value, ...], axis: int) -> tuple[Value, ...]:
        return (Value(inputs[0].data.max(axis=1 + axis), inputs[0].dtype),)


class Nothing:
    """No tensors besides the arguments."""

    adopted: list[TensorInfo] = []  # noqa: RUF012 - nothing is added


def _accessed(column: np.ndarray) -> Accessed:
    address = np.array([column.__array_interface__["data"][0]])
    pointers = Value(None, column.dtype, affine=Affine(address, column.strides, column.shape, 0, 2**62))
    return Accessed(pointers, None, Nothing(), lambda v: v.data, column.itemsize)


def _fetch(builder: Builder, column: np.ndarray) -> dict[str, Any]:
    return {"accessed": _accessed(column)}


def _put(builder: Builder, column: np.ndarray, values: Value) -> dict[str, Any]:
    return {"accessed": _accessed(column), "values": values}


def _largest(builder: Builder, inputs: tuple[Value, ...], axis: int) -> dict[str, Any]:
    shape = inputs[0].shape
    return {"combine": "max", "axis": axis, "input": shape, "output": shape[:axis] + shape[axis + 1 :]}


def launch(call: Call, grid: Any, manager: ClientManager) -> Any:
    """Run all programs. Returns the list of their results."""
    x, y, z = (*(grid or ()), 1, 1, 1)[:3]
    size = x, y, z
    for name, argument in call.arguments.items():
        manager.arg_callback(name, argument)
    manager.grid_callback(size)
    _thread.kernel, _thread.builder = call.fn, Builder()
    results = []
    try:
        for number in range(math.prod(size)):
            _thread.programs = Programs(size, Numbers(1, number))
            manager.grid_idx_callback(_thread.programs)
            results.append(call.fn(**call.arguments))
    finally:
        _thread.programs = None
    return results


class Kernel:
    """The result of the language's decorator."""

    def __init__(self, fn: Any):
        self.fn = fn

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> str:
        return "not traced"


COLUMNS = DSL(
    name="columns",
    namespace=Builder,
    operations={"fetch": (Load, _fetch), "put": (Store, _put), "largest": (Reduce, _largest)},
    patch_calls=contextlib.nullcontext,
    patch_loops=lambda callbacks: contextlib.nullcontext(),
    here=lambda: Here(_thread.kernel, _thread.programs, ()),
    loops_file=__file__,
    launch=launch,
    is_running=lambda: getattr(_thread, "programs", None) is not None,
    kernel_classes=(Kernel,),
)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATION_REGISTRY, "columns", COLUMNS)


# The language, as kernels use it.


def program_id() -> int:
    return _thread.programs.only()[0]


def fetch(matrix: np.ndarray) -> Value:
    return _thread.builder.fetch(matrix[:, program_id()])


def put(matrix: np.ndarray, value: Value) -> None:
    _thread.builder.put(matrix[:, program_id()], value)


def largest(value: Value) -> Value:
    return _thread.builder.largest((value,), 0)[0]


def maxima(x, out, where=0):
    if program_id() == where:
        raise LookupError(f"program {where}")
    found = largest(fetch(x))
    put(out, found)
    return float(found.data[0])


def arguments() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(12.0).reshape(4, 3), np.zeros((1, 3))


def launched(kernel: Any) -> list[Record]:
    x, out = arguments()
    assert kernel[(3,)](x, out, where=9) == [9, 10, 11]
    np.testing.assert_array_equal(out, x.max(axis=0, keepdims=True))
    launch = triton_viz.launches[-1]
    assert (launch.kernel, launch.grid, launch.file) == ("maxima", (3, 1, 1), __file__)
    assert launch.source.startswith("def maxima(")
    assert [tensor.name for tensor in launch.tensors] == ["x", "out"]
    return launch.records


def test_a_kernel_of_a_registered_language_is_traced():
    records = launched(triton_viz.trace("tracer", backend="columns")(maxima))
    assert [type(record) for record in records] == [Load, Reduce, Store]
    load, reduced, store = records
    assert [site.function for site in load.call_path] == ["maxima"], "lines of the language are left out"
    assert load.programs.count == 3
    assert load.at((1, 0, 0)).offsets.tolist() == [1, 4, 7, 10]  # type: ignore[union-attr]
    assert (reduced.combine, reduced.input) == ("max", (4,))  # type: ignore[attr-defined]
    assert store.tensor == "out"  # type: ignore[attr-defined]


@pytest.mark.parametrize("client", ["profiler", "race_detector", "sanitizer"])
def test_other_clients_work_with_it(client: str):
    launched(triton_viz.trace(["tracer", client], backend="columns")(maxima))


def test_a_with_traces_decorated_kernels_and_adds_clients_to_traced_kernels():
    x, out = arguments()
    own, around = Tracer(), triton_viz.trace("profiler", backend="columns")
    traced = triton_viz.trace(own, backend="columns")(maxima)
    with around:
        assert Kernel(maxima).run(x, out, 9, grid=(3,)) == [9, 10, 11]
        launched(traced)
    assert Kernel(maxima).run(x, out, 9, grid=(3,)) == "not traced"
    alone, both = triton_viz.launches
    assert not {type(record) for record in alone.records} & {Load, Store}
    assert {type(record) for record in alone.records} < {type(record) for record in both.records}


def test_an_error_of_its_kernel_names_program_and_line_and_wrong_arguments_name_the_kernel():
    traced = triton_viz.trace(backend="columns")(maxima)
    with pytest.raises(KernelError, match=r"test_added_dsl\.py:\d+: kernel maxima: LookupError: program 2"):
        traced[(3,)](*arguments(), where=2)
    with pytest.raises(UnsupportedError, match="kernel maxima: missing a required argument: 'out'"):
        traced(arguments()[0])
    with pytest.raises(UnsupportedError, match="7 is no COLUMNS kernel"):
        triton_viz.trace(backend="columns")(7)


def test_a_traced_kernel_that_another_one_calls_is_a_plain_function():
    inner = triton_viz.trace(backend="columns")(maxima)

    def outer(x, out):
        return inner(x, out, 9)

    assert triton_viz.trace(backend="columns")(outer)[(2,)](*arguments()) == [9, 10]
    assert [launch.kernel for launch in triton_viz.launches] == ["outer"]
    assert isinstance(inner, KernelTrace)


def test_a_client_that_skips_loads_is_refused_where_the_language_has_no_zeros():
    with pytest.raises(UnsupportedError, match="loads cannot be skipped: backend 'columns' has no `zeros`"):
        triton_viz.trace(Profiler(skip_loads=True), backend="columns")(maxima)[(3,)](*arguments(), 9)


def _only_chips(target: str) -> None:
    if not target.startswith("chip:"):
        raise UnsupportedError(f"a target is chip:N, not {target!r}")


def test_clients_are_given_its_compiled_kernels_and_refuse_what_is_no_target(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, str]] = []

    def compile(call: Call, target: str) -> None:
        asked.append((call.fn.__name__, target))

    dsl = dataclasses.replace(COLUMNS, compile=compile, check_target=_only_chips)
    monkeypatch.setitem(OPERATION_REGISTRY, "columns", dsl)
    triton_viz.trace(Profiler(target="chip:7"), backend="columns")(maxima)[(3,)](*arguments(), 9)
    assert asked == [("maxima", "chip:7")]
    with pytest.raises(UnsupportedError, match="no target is called 'tpu:5': cuda:90"):
        Profiler(target="tpu:5")


@pytest.fixture
def without_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {name: getattr(COLUMNS, name) for name in ("name", "namespace", "operations", "patch_calls")}
    dsl = DSL(**fields, patch_loops=COLUMNS.patch_loops, here=COLUMNS.here, loops_file=__file__)
    monkeypatch.setitem(OPERATION_REGISTRY, "bare", dsl)


@pytest.mark.usefixtures("without_launch")
def test_a_language_without_launch_is_refused_with_a_suggestion():
    with pytest.raises(
        UnsupportedError, match="'bare' is registered without a function that runs its kernels"
    ):
        triton_viz.trace(backend="bare")


def test_a_backend_that_is_not_registered_is_an_error_that_lists_those_that_are():
    listed = r"no backend is called 'colums': there are 'triton', 'nki', 'columns'\."
    with pytest.raises(UnsupportedError, match=listed):
        triton_viz.trace(backend="colums")
    with pytest.raises(UnsupportedError, match=listed), ClientManager([]).patch_run(maxima, "colums"):
        pass
