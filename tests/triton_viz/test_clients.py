"""The client interface: the order and arguments of callbacks, with one client and with several."""

import contextlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import triton_viz
from tests.triton_viz.helpers import client_kernels, kernels
from tests.triton_viz.helpers.watching import Vectorized, Watch, line_of, traced
from triton_viz.clients import Sanitizer, Tracer
from triton_viz.clients.utils import record
from triton_viz.core.client import ClientManager, ForLoopCallbacks, OpCallbacks
from triton_viz.core.data import Atomic, Compute, Dot, Issue, Load, Op, Other, Reduce, Store
from triton_viz.core.records.columns import Programs
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.dsls.triton.grid_launch import launch as launch_grid
from triton_viz.dsls.triton.ops.arithmetic import ArithmeticOps
from triton_viz.dsls.triton.wrappers import unwrap
from triton_viz.errors import SanitizerError, UnsupportedError
from triton_viz.executor.value import Value

pytestmark = pytest.mark.usefixtures("no_launches")


def ints(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.int32)


# --- loops ---


class Loops(Watch):
    """Records the callbacks of loops, and their programs."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def grid_idx_callback(self, grid_idx: Any) -> None:
        self.heard.append(("program", grid_idx[0]))

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        return ForLoopCallbacks(
            before_loop_callback=lambda line, count: self.heard.append(("before", line, count)),
            loop_iter_callback=lambda line, index: self.heard.append(("iteration", line, index)),
            after_loop_callback=lambda line: self.heard.append(("after", line)),
        )


class LoopsTogether(Loops):
    """`Loops`, vectorized."""

    vectorized: ClassVar[bool] = True

    def grid_idx_callback(self, grid_idx: Programs) -> None:
        self.heard.append(("programs", grid_idx.count))


def iterations(line: int, count: int, *inner: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The expected callbacks of a whole loop."""
    each = [step for index in range(count) for step in (("iteration", line, index), *inner)]
    return [("before", line, count), *each, ("after", line)]


def test_loop_callbacks_are_called_before_during_and_after_a_loop():
    loops = Loops()
    traced(loops, client_kernels.counted)[(2,)](torch.ones(3), torch.zeros(2), 3)
    line = line_of(client_kernels.counted, "for k")
    assert loops.heard == [("program", 0), *iterations(line, 3), ("program", 1), *iterations(line, 3)]


def test_loop_callbacks_are_called_for_a_loop_without_iterations():
    loops = Loops()
    traced(loops, client_kernels.counted)[(1,)](torch.ones(3), torch.zeros(1), 0)
    assert loops.heard[1:] == iterations(line_of(client_kernels.counted, "for k"), 0)


@pytest.mark.parametrize("kind", [Loops, LoopsTogether])
def test_loop_callbacks_are_called_for_nested_loops(kind):
    loops = kind()
    traced(loops, client_kernels.nested)[(1,)](torch.ones(6), torch.zeros(1))
    outer, inner = (line_of(client_kernels.nested, f"for {name}") for name in "ab")
    assert loops.heard[1:] == iterations(outer, 2, *iterations(inner, 3))


def test_how_often_a_while_runs_is_not_known_before():
    loops = Loops()
    traced(loops, client_kernels.until_done)[(3,)](ints(3))
    line = line_of(client_kernels.until_done, "while")
    last = loops.heard.index(("program", 2)) + 1
    assert loops.heard[last:] == [("before", line, None), *iterations(line, 2)[1:]]


def test_programs_with_unequal_trip_counts_share_a_loop_as_long_as_the_longest():
    alone, together = Loops(), LoopsTogether()
    line = line_of(client_kernels.as_often_as_its_number, "for k")
    for client in (alone, together):
        out = torch.zeros(4)
        traced(client, client_kernels.as_often_as_its_number)[(4,)](torch.ones(4), out)
        assert out.tolist() == [0, 1, 2, 3]
    assert together.heard == [("programs", 4), *iterations(line, 3)]
    assert alone.heard == [step for i in range(4) for step in (("program", i), *iterations(line, i))]


@pytest.mark.parametrize("kind", [Loops, LoopsTogether])
def test_a_loop_that_a_program_returns_from_has_an_end_too(kind):
    loops = kind()
    traced(loops, client_kernels.sum_until)[(1,)](torch.full((9,), 2.0), torch.zeros(1), 9)
    line = line_of(client_kernels.sum_until, "for k")
    assert loops.heard[1:] == [("before", line, 9), *iterations(line, 3)[1:]]


def test_a_record_made_in_a_loop_callback_leads_to_the_loop():
    class AtLoops(Vectorized):
        def __init__(self) -> None:
            self.made: list[Other] = []

        def register_for_loop_callback(self) -> ForLoopCallbacks:
            return ForLoopCallbacks(
                loop_iter_callback=lambda line, i: self.made.append(
                    record(Other, name="iteration", inputs=())
                )
            )

    client = AtLoops()
    traced(client, client_kernels.counted)[(2,)](torch.ones(2), torch.zeros(2), 2)
    line = line_of(client_kernels.counted, "for k")
    assert [[site.line for site in op.call_path] for op in client.made] == [[line], [line]]
    assert [op.iterations for op in client.made] == [((line, 0),), ((line, 1),)]


# --- arguments of callbacks ---


class Calls(Watch):
    """Keeps the arguments of callbacks, by type of op."""

    def __init__(self) -> None:
        self.before: dict[type[Op], list[dict[str, Any]]] = {}
        self.after: dict[type[Op], list[dict[str, Any]]] = {}

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        return OpCallbacks(
            before_callback=lambda **told: self.before.setdefault(op_type, []).append(told),
            after_callback=lambda **told: self.after.setdefault(op_type, []).append(told),
        )


class CallsTogether(Calls):
    vectorized: ClassVar[bool] = True


def test_a_plain_client_gets_plain_arrays_of_its_one_program():
    calls = Calls()
    x, y, out = torch.arange(4.0), torch.ones(4), torch.zeros(4)
    traced(calls, kernels.add)[(1,)](x, y, out, 3, BLOCK=4)
    first, _ = calls.after[Load]
    assert set(first) == {"tensor", "offsets", "mask", "result"}
    assert first["tensor"].name == "x"
    assert first["offsets"].tolist() == [0, 1, 2, 3]
    assert first["mask"].tolist() == [True, True, True, False]
    assert first["result"][:3].tolist() == [0, 1, 2]
    (store,) = calls.before[Store]
    assert (store["tensor"].name, store["values"][:3].tolist()) == ("out", [1, 2, 3])
    assert isinstance(store["values"], np.ndarray)
    assert "result" not in store


def test_results_of_several_parts_are_arrays_too():
    calls = Calls()
    traced(calls, kernels.row_norm)[(1,)](torch.ones(1, 4), torch.zeros(1), 4, BLOCK=4)
    (reduced,) = calls.after[Reduce]
    assert (reduced["combine"], reduced["axis"], reduced["input"]) == ("sum", 0, (4,))
    assert [part.tolist() for part in reduced["result"]] == [4.0]


class Asked(Watch):
    """Counts the registrations of callbacks when a launch is patched."""

    def __init__(self) -> None:
        self.ops: Counter[type[Op]] = Counter()
        self.loops = 0

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        self.ops[op_type] += 1
        return OpCallbacks()

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        self.loops += 1
        return ForLoopCallbacks()


@pytest.mark.parametrize("backend", ["triton", "nki"])
def test_callbacks_are_registered_once_for_each_op_type_and_once_for_loops(backend: str):
    types = {op_type for op_type, _ in OPERATION_REGISTRY[backend].operations.values()}
    first, second = Asked(), Asked()
    second.NAME = "second"  # type: ignore[misc] - so that both are clients of the launch
    for launches in (1, 2):
        with ClientManager([first, second]).patch_run(client_kernels.counted.fn, backend):
            pass
        for asked in (first, second):
            assert asked.ops == dict.fromkeys(types, launches)
            assert asked.loops == launches


def test_a_vectorized_client_gets_all_programs_at_once():
    calls = CallsTogether()
    x, y, out = torch.arange(8.0), torch.ones(8), torch.zeros(8)
    traced(calls, kernels.add)[(2,)](x, y, out, 7, BLOCK=4)
    first, _ = calls.after[Load]
    assert isinstance(first["result"], Value)
    assert first["result"].data.shape == (2, 4)
    assert first["accessed"].elements.at(1).elements(0).tolist() == [4, 5, 6, 7]
    assert first["accessed"].elements.touched(2).tolist() == [4, 3]
    assert [first["accessed"].elements.touched_by(lane) for lane in range(2)] == [4, 3]


def test_a_record_does_not_show_the_clients_own_lines():
    class Recording(Vectorized):
        def __init__(self) -> None:
            self.records: list[Op] = []

        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            return OpCallbacks(after_callback=self.on_load if op_type is Load else None)

        def on_load(self, accessed: Any, result: Any) -> None:
            self.records.append(record(Load, elements=accessed.elements))

        def finalize(self) -> list[Op]:
            return self.records

    traced(Recording(), kernels.row_norm)[(3,)](torch.ones(3, 4), torch.zeros(3), 4, BLOCK=4)
    (load,) = triton_viz.launches[-1].records
    assert [site.function for site in load.call_path] == ["row_norm", "load_row"]
    assert {Path(site.file).name for site in load.call_path} == {"kernels.py"}
    assert load.programs.count == 3


# --- several clients ---


def test_one_plain_client_makes_the_launch_run_one_program_at_a_time_for_all():
    plain, together = Calls(), CallsTogether()
    together_name = type("Named", (CallsTogether,), {"NAME": "together"})()
    x, out = torch.ones(8), torch.zeros(8)
    traced([plain, together_name], kernels.add)[(2,)](x, x, out, 8, BLOCK=4)
    assert len(plain.after[Store]) == len(together_name.after[Store]) == 2
    assert [told["accessed"].elements.elements(0).tolist() for told in together_name.after[Store]] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]
    traced(together, kernels.add)[(2,)](x, x, out, 8, BLOCK=4)
    assert len(together.after[Store]) == 1


def test_traces_above_each_other_are_all_their_clients():
    loops, calls = Loops(), type("Named", (Calls,), {"NAME": "calls"})()
    kernel = triton_viz.trace(calls)(triton_viz.trace([loops, "tracer"])(client_kernels.counted))
    kernel[(1,)](torch.ones(2), torch.zeros(1), 2)
    assert ("before", line_of(client_kernels.counted, "for k"), 2) in loops.heard
    assert len(calls.after[Load]) == 2
    assert len(triton_viz.launches) == 1
    assert len(triton_viz.launches[-1].records) == 3


def test_records_of_all_clients_are_the_launchs():
    class Noting(Watch):
        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            return OpCallbacks(after_callback=self.note if op_type is Store else None)

        def pre_run_callback(self, fn: Callable) -> None:
            self.notes: list[Op] = []

        def note(self, **told: Any) -> None:
            self.notes.append(record(Other, name="a store happened", inputs=()))

        def finalize(self) -> list[Any]:
            return self.notes

    x, out = torch.ones(4), torch.zeros(4)
    traced(["tracer", Noting()], kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    kinds = [type(op) for op in triton_viz.launches[-1].records]
    assert kinds == [Load, Load, Store, Other]


# --- the end of a launch ---


class Ending(Vectorized):
    """Counts the calls of `finalize`."""

    def __init__(self, name: str = "ending", found: Any = (), fails: bool = False) -> None:
        self.NAME = name  # type: ignore[misc] - one of several in a launch
        self.finalized, self.ended = 0, 0
        self._found, self._fails = found, fails

    def post_run_callback(self, fn: Callable) -> None:
        self.ended += 1
        if self._fails:
            raise LookupError(f"{self.NAME} does not end")

    def finalize(self) -> Any:
        self.finalized += 1
        return self._found if self._found is None else list(self._found)


@pytest.mark.parametrize("abort", [False, True])
@pytest.mark.parametrize("kernel", [kernels.add, client_kernels.outside])
def test_the_launcher_asks_each_client_once_for_its_records(kernel: Any, abort: bool):
    ending = Ending()
    x, out = torch.ones(4), torch.zeros(4)
    clients = [Sanitizer(abort_on_error=abort), ending]
    expected = contextlib.nullcontext()
    if abort and kernel is client_kernels.outside:
        expected = pytest.raises(SanitizerError)
    with expected:
        traced(clients, kernel)[(1,)](x, x, out, 4, BLOCK=4)
    assert (ending.finalized, ending.ended) == (1, 1)
    assert len(triton_viz.launches) == 1


def test_finalize_of_a_sanitizer_that_aborted_returns_the_same_records_each_time():
    sanitizer = Sanitizer(abort_on_error=True)
    manager = ClientManager([sanitizer])
    x = torch.ones(4)
    call = unwrap(client_kernels.outside).resolve((x, x, x, 4), {"BLOCK": 4})
    with pytest.raises(SanitizerError, match="out of bounds"), manager.patch_run(call.fn, "triton"):
        launch_grid(call, (1,), manager)
    records = manager.finalize()
    assert [record.kind for record in records if isinstance(record, Issue)] == ["out of bounds"]
    assert manager.finalize() == records
    assert sanitizer.finalize() == records


def test_a_sanitizer_that_aborted_does_not_raise_again_at_the_end_of_the_scope():
    sanitizer = Sanitizer(abort_on_error=True, execute=False)
    manager = ClientManager([sanitizer])
    x = torch.ones(4)
    call = unwrap(client_kernels.outside).resolve((x, x, x, 4), {"BLOCK": 4})
    with manager.patch_run(call.fn, "triton"), pytest.raises(SanitizerError, match="out of bounds"):
        launch_grid(call, (1,), manager)
    assert [record.kind for record in manager.finalize() if isinstance(record, Issue)] == ["out of bounds"]


def test_finalize_of_a_launch_that_never_began_is_empty():
    sanitizer, x = Sanitizer(abort_on_error=True), torch.ones(4)
    with pytest.raises(UnsupportedError, match="a grid is one to three sizes"):
        traced([sanitizer, "race_detector"], kernels.add)[(1.5,)](x, x, x, 4, BLOCK=4)
    assert sanitizer.finalize() == []
    assert triton_viz.launches == []


def test_post_run_callbacks_are_called_for_all_clients_also_if_one_fails():
    clients = [Ending("first"), Ending("second", fails=True), Ending("third")]
    x = torch.ones(4)
    with pytest.raises(LookupError, match="second does not end"):
        traced(clients, kernels.add)[(1,)](x, x, x, 4, BLOCK=4)
    assert [client.ended for client in clients] == [1, 1, 1]


def test_a_client_that_returns_no_list_is_named():
    x = torch.ones(4)
    with pytest.raises(UnsupportedError, match=r"client 'ending': finalize\(\) returned None"):
        traced(Ending(found=None), kernels.add)[(1,)](x, x, x, 4, BLOCK=4)


# --- errors ---


# --- ops ---


def test_the_tracer_records_arithmetic_on_request():
    x, out = torch.ones(8), torch.zeros(8)
    traced(Tracer(arithmetic=True), kernels.add)[(2,)](x, x, out, 8, BLOCK=4)
    launch = triton_viz.launches[-1]
    computed = [op for op in launch.records if isinstance(op, Compute)]
    assert {"get_program_id", "make_range", "fadd"} <= {op.name for op in computed}
    (added,) = [op for op in computed if op.name == "fadd"]
    assert (added.inputs, added.result, added.programs.count) == (((4,), (4,)), (4,), 2)
    names = [type(op).__name__ for op in launch.at((1, 0, 0))]
    assert names.index("Load") < len(names) - 1 - names[::-1].index("Compute") < names.index("Store")


def test_an_op_that_the_registry_does_not_know_runs_lane_by_lane_and_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delattr(ArithmeticOps, "create_exp")
    monkeypatch.delitem(OPERATION_REGISTRY["triton"].operations, "create_exp")
    x, out = torch.linspace(-2, 2, 12), torch.zeros(12)
    traced("tracer", client_kernels.softened)[(3,)](x, out, BLOCK=4)
    torch.testing.assert_close(out, x.exp())
    launch = triton_viz.launches[-1]
    assert [type(op) for op in launch.records] == [Load, Other, Store]
    other = launch.at((2, 0, 0))[1]
    assert isinstance(other, Other)
    assert (other.name, other.inputs) == ("exp", ((4,),))
    assert other.call_path[-1].line == line_of(client_kernels.softened, "tl.exp")


def test_every_kind_of_op_is_offered_to_a_client():
    offered: set[type[Op]] = set()

    class Asked(Vectorized):
        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            offered.add(op_type)
            return OpCallbacks()

    x, out = torch.ones(4), torch.zeros(4)
    traced(Asked, kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert {Load, Store, Atomic, Dot, Reduce, Compute, Other} <= offered
