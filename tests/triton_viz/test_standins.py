"""Without a GPU, stand-ins answer queries of libraries before a launch; other uses of a GPU still fail."""

import concurrent.futures
import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
import triton.testing
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

import triton_viz
from tests.programs import TIMEOUT
from triton_viz.dsls.triton.gpu_standins import DEVICE, driver_is_active, standing_in
from triton_viz.errors import AccessError, UnsupportedError

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine's GPU answers for itself")

PATCHED = (torch.cuda, torch.accelerator, driver, triton.language.target_info)


@pytest.fixture
def standin() -> Iterator[Any]:
    with standing_in():
        yield driver.active


def nothing(x):
    pass


def test_there_is_still_no_gpu(standin):
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        torch.empty(1, device="cuda")


def test_tritons_driver_describes_one_device(standin):
    target = standin.get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cuda", 90, 32)
    properties = standin.utils.get_device_properties(standin.get_current_device())
    assert properties["multiprocessor_count"] == 132
    assert properties["warpSize"] == 32
    assert properties["max_shared_mem"] == 232448
    assert standin.get_current_stream(0) == 0
    assert standin.get_device_capability() == (9, 0)
    standin.set_current_device(0)
    assert driver.default is standin


def test_tensors_for_tritons_device_are_made_on_the_cpu(standin):
    assert torch.ones(3, device=standin.get_active_torch_device()).device.type == "cpu"


def test_tritons_bandwidth_is_that_of_the_device_described(standin):
    assert triton.testing.get_dram_gbps() == pytest.approx(3352, rel=1e-3)


def test_a_benchmark_runs_its_function(standin):
    runs: list[int] = []
    times = standin.get_benchmarker()(lambda: runs.append(1), quantiles=(0.5, 0.2, 0.8))
    assert runs == [1]
    assert len(times) == 3
    standin.clear_cache(standin.get_empty_cache_for_benchmark())


@pytest.mark.parametrize(
    ("ty", "expected"),
    [("*fp32", "void*"), ("i32", "int32_t"), ("u64", "uint64_t"), ("i1", "int8_t"), ("fp32", "float")],
)
def test_tritons_types_have_names_in_cpp(standin, ty, expected):
    assert standin.map_python_to_cpp_type(ty) == expected


def test_a_kernel_that_asks_for_its_target_may_not_use_ptx(standin):
    assert not tl.target_info.is_cuda.fn()
    assert not tl.target_info.cuda_capability_geq.fn(8)


OURS = [None, 0, -1, "cpu", torch.device("cpu"), torch.device("cpu", 0)]
THEIRS = [1, "cuda", "cuda:0", torch.device("cuda", 1), "xpu"]


@pytest.mark.parametrize("device", OURS, ids=str)
def test_torch_answers_for_a_cpu_tensors_device(standin, device):
    assert torch.cuda.get_device_properties(device) is DEVICE
    assert torch.cuda.get_device_properties(device).multi_processor_count == 132
    assert torch.cuda.get_device_capability(device) == (9, 0)
    assert "stand-in" in torch.cuda.get_device_name(device)
    torch.cuda.synchronize(device)
    torch.cuda.set_device(device)
    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.current_stream(device)):
        assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("device", THEIRS, ids=str)
@pytest.mark.parametrize(
    "ask", ["get_device_properties", "get_device_capability", "synchronize", "current_stream", "device"]
)
def test_torch_raises_its_own_errors_for_a_real_gpu(device, ask):
    def attempt() -> None:
        result = getattr(torch.cuda, ask)(device)
        with result if ask == "device" else contextlib.nullcontext():
            pass

    def answer() -> str:
        with pytest.raises((AssertionError, RuntimeError, TypeError, ValueError)) as caught:
            attempt()
        return f"{type(caught.value).__name__}: {caught.value}"

    without = answer()
    with standing_in():
        assert answer() == without


def test_guards_around_a_launch_take_a_cpu_tensor(standin):
    x = torch.ones(3)
    with torch.cuda.device_of(x), torch.cuda.device(x.device), torch.cuda.device(x.device.index):
        pass
    with torch.cuda.device(x.get_device()), torch.accelerator.device_index(x.device.index):
        pass
    with torch.accelerator.device_index(torch.accelerator.current_device_index()):
        torch.accelerator.synchronize()


def test_a_guard_is_still_torchs_guard(standin):
    guard = torch.cuda.device("cpu")
    assert isinstance(guard, torch.cuda.device_of.__mro__[1])


def test_the_stream_has_nothing_left_to_do(standin):
    stream = torch.cuda.current_stream()
    stream.wait_stream(torch.cuda.default_stream())
    stream.synchronize()
    assert stream.query()
    assert stream.cuda_stream == 0
    assert torch.accelerator.current_stream().stream_id == stream.stream_id


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
def test_an_untraced_launch_says_where_it_can_run(standin):
    with pytest.raises(UnsupportedError, match=r"no GPU to launch this kernel on: launch it inside `with"):
        JITFunction(nothing)[(1,)](torch.ones(1))


def state() -> list[dict[str, Any]]:
    """All attributes that stand-ins and traces replace."""
    kinds = (JITFunction, InterpretedFunction, Autotuner, Heuristics)
    return [dict(vars(owner)) for owner in (*PATCHED, *kinds)]


@triton.jit
def double(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, 2 * tl.load(x + at))


@triton.jit
def fails(x, BLOCK: tl.constexpr):
    tl.store(x + (1 << 40), 1.0)


def run(kernel: Any, x: torch.Tensor) -> None:
    kernel[(1,)](x, BLOCK=4)


def test_everything_is_put_back():
    before = state()
    with contextlib.suppress(KeyError), standing_in():
        assert state() != before
        raise KeyError
    assert state() == before
    assert not driver_is_active()
    with pytest.raises(RuntimeError, match="0 active drivers"):
        driver.active  # noqa: B018


def test_what_a_program_replaced_between_two_launches_is_put_back(monkeypatch: pytest.MonkeyPatch):
    with triton_viz.trace():
        pass
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: f"replaced for {device}")
    with triton_viz.trace():
        assert "H100" in torch.cuda.get_device_name()
        assert torch.cuda.get_device_name("cuda:1") == "replaced for cuda:1"
    assert torch.cuda.get_device_name() == "replaced for None"


def test_making_a_trace_changes_nothing():
    before = state()
    traced = triton_viz.trace()(double)
    triton_viz.trace("sanitizer")
    assert state() == before
    x = torch.ones(4)
    traced[(1,)](x, BLOCK=4)
    assert x.tolist() == [2.0] * 4
    assert state() == before
    with pytest.raises(AccessError):
        triton_viz.trace()(fails)[(1,)](x, BLOCK=4)
    assert state() == before


def test_a_grid_may_ask_about_the_device():
    before, asked = state(), []

    def grid(_: Any) -> tuple[int]:
        asked.append(torch.cuda.get_device_properties(0).multi_processor_count)
        return (1,)

    triton_viz.trace()(double)[grid](torch.ones(4), BLOCK=4)
    assert asked == [DEVICE.multi_processor_count]
    assert state() == before


def test_answers_last_as_long_as_a_with():
    before = state()
    with triton_viz.trace():
        assert torch.cuda.current_device() == 0
        with triton_viz.trace("sanitizer"):
            triton_viz.trace()(double)[(1,)](torch.ones(4), BLOCK=4)
            assert torch.cuda.current_device() == 0
        assert torch.cuda.current_device() == 0
        with pytest.raises(AccessError):
            run(fails, torch.ones(4))
        assert torch.cuda.current_device() == 0
    assert state() == before
    with pytest.raises(ZeroDivisionError), triton_viz.trace():
        _ = 1 / 0
    assert state() == before


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_scopes_may_close_in_any_order(order: tuple[int, ...]):
    before = state()
    triton_viz.clear()
    scopes = [triton_viz.trace() for _ in range(3)]
    for scope in scopes:
        scope.__enter__()
    for n, position in enumerate(order):
        scopes[position].__exit__(None, None, None)
        if n < 2:  # the others still trace
            x = torch.ones(4)
            run(double, x)
            assert x.tolist() == [2.0] * 4
            assert len(triton_viz.launches) == n + 1
            assert torch.cuda.current_device() == 0
    assert state() == before


def test_scopes_of_several_threads_overlap():
    before = state()
    entered, leave = threading.Barrier(3, timeout=TIMEOUT), [threading.Event(), threading.Event()]

    def work(n: int) -> None:
        with triton_viz.trace():
            entered.wait()
            assert leave[n].wait(TIMEOUT)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(work, n) for n in range(2)]
        entered.wait()
        leave[0].set()
        futures[0].result(60)
        assert torch.cuda.current_device() == 0
        run(double, torch.ones(4))
        leave[1].set()
        futures[1].result(60)
    assert state() == before


def test_a_driver_that_was_set_is_used(monkeypatch):
    theirs: Any = object()
    monkeypatch.setattr(driver, "_active", theirs)
    before = [dict(vars(owner)) for owner in PATCHED]
    with standing_in():
        assert driver.active is theirs
        assert [dict(vars(owner)) for owner in PATCHED] == before
