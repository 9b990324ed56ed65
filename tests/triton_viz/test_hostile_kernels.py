"""No kernel, argument or interruption crashes the process: each gives an error with its cause."""

import contextlib
import gc
import inspect
import os
import random
import signal
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton.language as tl
from torch.testing._internal.two_tensor import TwoTensor
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

import triton_viz
from tests.thorough import fewer, some
from tests.triton_viz.corpus import hostile
from tests.triton_viz.corpus.launching import difference
from tests.triton_viz.helpers.generating import module_of
from triton_viz.core.client import Client, ForLoopCallbacks, OpCallbacks
from triton_viz.core.data import Load
from triton_viz.dsls.triton.control_flow import lane_loops
from triton_viz.dsls.triton.ops.lane_builder import LaneBuilder
from triton_viz.errors import AccessError, KernelError, UnsupportedError
from triton_viz.executor import executor

pytestmark = pytest.mark.usefixtures("no_launches")


def traced(kernel: Any) -> Any:
    return triton_viz.trace("tracer")(kernel)


def added(x: Any, grid: Any = (3,), **changed: Any) -> float:
    out = torch.zeros(10)
    traced(hostile.add)[grid](**{"x": x, "y": torch.ones(10), "out": out, "n": 10, "BLOCK": 4, **changed})
    return out.sum().item()


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads, and chunks of two programs, so that every thread runs a chunk."""
    monkeypatch.setattr(triton_viz.config, "num_sms", 4)
    monkeypatch.setattr(executor, "FIRST_LANES", 2)


# --- Ctrl-C ---


def everything() -> dict[tuple[str, str], Any]:
    """All attributes that a launch patches."""
    places = [tl, tl.core, tl.math, tl.standard, tl.tensor, tl.dtype, tl.pointer_type, tl.block_type]
    places += [tl.constexpr, tl.core.tensor_descriptor_base, LaneBuilder, JITFunction, InterpretedFunction]
    return {(place.__name__, name): value for place in places for name, value in vars(place).items()}


@pytest.fixture
def alarm() -> Iterator[Any]:
    """Send SIGINT after a time of computation. (The other timer is that of a test's time limit.)

    The signal is handled on the computing thread, so this is for a launch on one thread.
    """
    before = signal.signal(signal.SIGVTALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    yield lambda seconds: signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Send SIGINT after a moment, like a terminal does for Ctrl-C."""
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.cancel()
    timer.join()


DROPPED = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Python drops a KeyboardInterrupt in a finalizer or the garbage collector, with a warning."""


@DROPPED
def test_ctrl_c_at_any_moment_leaves_nothing_patched(alarm):
    kernel = traced(hostile.with_everything)
    x, out = torch.ones(8), torch.zeros(8)
    kernel[(2,)](x, out, BLOCK=4)
    before, handler, moments = everything(), signal.getsignal(signal.SIGINT), random.Random(0)

    def launch_until_interrupted() -> None:
        alarm(moments.uniform(0.0001, 0.006))
        for _ in range(100):
            kernel[(2,)](x, out, BLOCK=4)

    for _ in range(fewer(300)):
        with contextlib.suppress(KeyboardInterrupt):
            launch_until_interrupted()
        now = everything()
        assert [name for name in before if now.get(name) is not before[name]] == []
        assert now.keys() == before.keys()
        assert signal.getsignal(signal.SIGINT) is handler
    triton_viz.clear()
    out.zero_()
    kernel[(2,)](x, out, BLOCK=4)
    assert out.tolist() == [6.0] * 4 + [14.0] * 4


@DROPPED
@pytest.mark.usefixtures("threads")
def test_ctrl_c_ends_an_endless_loop_on_other_threads(ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        traced(hostile.endless)[(9,)](torch.ones(1), torch.zeros(1))
    assert [t.name for t in threading.enumerate() if t.name.startswith("triton_viz")] == []


@DROPPED
@pytest.mark.parametrize("sms", [1, 4])
def test_a_grid_of_billions_starts_at_once_and_can_be_interrupted(ctrl_c, monkeypatch, sms: int):
    monkeypatch.setattr(triton_viz.config, "num_sms", sms)
    x, out = torch.ones(10), torch.zeros(10)
    with pytest.raises(KeyboardInterrupt):
        triton_viz.trace(())(hostile.add)[(2**31 - 1,)](x, x, out, 10, BLOCK=4)
    assert out.tolist() == [2.0] * 10


# --- threads ---


@pytest.mark.parametrize("vectorized", [True, False])
def test_programs_that_part_and_then_count_do_so_once_on_threads_too(monkeypatch, vectorized: bool):
    monkeypatch.setattr(triton_viz.config, "vectorized", vectorized)
    x, count = torch.zeros(17, 4), torch.zeros(1, dtype=torch.int32)
    traced(hostile.count_then_part)[(17,)](x, count, BLOCK=4)
    monkeypatch.setattr(triton_viz.config, "num_sms", 4)
    monkeypatch.setattr(executor, "FIRST_LANES", 2)
    for _ in range(5):
        again, counted = torch.zeros(17, 4), torch.zeros(1, dtype=torch.int32)
        traced(hostile.count_then_part)[(17,)](again, counted, BLOCK=4)
        assert counted.item() == count.item() == 6
        assert again.tolist() == x.tolist()
        assert not difference(triton_viz.launches[0], triton_viz.launches[-1])
    assert x[:, 0].tolist() == [1 + (i // 3 * 10 if i % 3 == 1 else 0) for i in range(17)]


class Launching(Client):
    """Launches a kernel from the callback of every load."""

    NAME = "launching"
    vectorized = True

    def pre_run_callback(self, fn: Any) -> None: ...
    def post_run_callback(self, fn: Any) -> None: ...
    def arg_callback(self, name: str, arg: Any) -> None: ...
    def grid_callback(self, grid: Any) -> None: ...
    def grid_idx_callback(self, grid_idx: Any) -> None: ...

    def register_op_callback(self, op_type: Any) -> OpCallbacks:
        def launch(**_: Any) -> None:
            assert added(torch.ones(10)) == 20

        return OpCallbacks(before_callback=launch if op_type is Load else None)

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        return ForLoopCallbacks()

    def finalize(self) -> list[Any]:
        return []


def test_a_launch_from_a_callback_on_a_thread_is_refused_and_does_not_hang(monkeypatch):
    x, out = torch.ones(8), torch.zeros(8)
    kernel = triton_viz.trace(Launching())(hostile.with_everything)
    kernel[(2,)](x, out, BLOCK=4)
    assert out.tolist() == [6.0] * 4 + [14.0] * 4
    monkeypatch.setattr(triton_viz.config, "num_sms", 2)
    with pytest.raises(UnsupportedError, match=r"only while config\.num_sms is 1"):
        kernel[(2,)](x, out, BLOCK=4)


def test_programs_that_wait_for_each_other_are_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lane_loops, "SPINS_TOGETHER", 10)
    monkeypatch.setattr(lane_loops, "SPINS_ALONE", 50)
    with pytest.raises(KernelError, match=r"program \(0, 0, 0\): .*two cannot wait for each other"):
        traced(hostile.wait_for_each_other)[(2,)](torch.zeros(2, dtype=torch.int32))


# --- wild pointers ---

ACCESSES = [
    hostile.load_from,
    hostile.load_one,
    hostile.load_some,
    hostile.store_to,
    hostile.add_atomically,
    hostile.load_described,
    hostile.far_apart,
]
FAR = [2**31, -(2**31), 2**44, 2**46, 2**58, 2**60, 2**61 - 4, -(2**61) + 4]


@pytest.mark.parametrize("kernel", ACCESSES, ids=lambda kernel: kernel.fn.__name__)
def test_every_invalid_pointer_is_an_error(kernel: Any):
    x, out = torch.zeros(48)[16:32].clone(), torch.zeros(16)
    address = x.data_ptr()
    null, top, last = -address // 4, (2**47 - address) // 4, (2**63 - address) // 4 - 4
    for offset in some([*FAR, null, top, last], 3, first=ACCESSES.index(kernel) % 3):
        with pytest.raises(AccessError, match=r"program \(0, 0, 0\): address(es)? 0x"):
            traced(kernel)[(1,)](x, offset, out, BLOCK=4)
    assert not x.any()


def test_the_error_names_the_program_and_the_addresses():
    x, out = torch.ones(10), torch.zeros(5)
    end = out.data_ptr() + 20
    wrong = rf"program \(1, 0, 0\): addresses {end:#x} to {end + 20:#x} are not in the memory"
    with pytest.raises(AccessError, match=wrong):  # programs 1 and 2, of which the last is masked
        traced(hostile.add)[(3,)](x, x, out, 10, BLOCK=4)


def test_tensors_without_memory_of_their_own_do_not_disturb_the_search_for_an_owner():
    bystander = TwoTensor(torch.ones(4), torch.ones(4))
    with pytest.raises(AccessError, match="nor in any other live tensor"):
        traced(hostile.load_from)[(1,)](torch.ones(4), 2**40, torch.zeros(4), BLOCK=4)
    assert bystander.shape == (4,)


class Unwilling(torch.Tensor):
    """A tensor whose attributes and methods raise errors."""

    @classmethod
    def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("do not ask")


def test_attributes_of_foreign_tensor_classes_are_not_used():
    bystander = torch.ones(4).as_subclass(Unwilling)
    with pytest.raises(AccessError, match="nor in any other live tensor"):
        traced(hostile.load_from)[(1,)](torch.ones(4), 2**40, torch.zeros(4), BLOCK=4)
    assert type(bystander) is Unwilling


def test_tensors_that_pointers_led_to_are_let_go():
    table, out = torch.zeros(2, dtype=torch.int64), torch.zeros(8)
    one, two = torch.ones(4), torch.full((4,), 2.0)
    table[0], table[1] = one.data_ptr(), two.data_ptr()
    traced(hostile.follow)[(2,)](table, out, BLOCK=4)
    assert out.tolist() == [1.0] * 4 + [2.0] * 4
    left = weakref.ref(one), weakref.ref(two)
    del one, two
    gc.collect()
    assert [tensor() for tensor in left] == [None, None]


# --- arguments, grids, and being called ---


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.ones(10, dtype=torch.complex64), "'x': a kernel cannot take a tensor of type torch.complex64"),
        (np.ones(10), r"'x': .* give torch.from_numpy"),
        ([torch.ones(10)], "'x': a kernel cannot take a list: give a tuple"),
        (torch.ones(10, device="meta"), "'x': .* device meta"),
        (torch.ones(10).to_sparse(), "'x': .* layout torch.sparse_coo"),
        (
            TwoTensor(torch.ones(10), torch.ones(10)),
            "'x': a kernel cannot take a TwoTensor: it has no memory",
        ),
        (None, r"add, program \(0, 0, 0\): TypeError: .* is of numbers, not of .* and None"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_argument_that_no_kernel_takes_is_named(x: Any, message: str):
    with pytest.raises((UnsupportedError, KernelError), match=message):
        added(x)


def test_numbers_of_numpy_are_numbers():
    assert added(torch.ones(10), n=np.int64(10), BLOCK=np.int32(4)) == 20


@pytest.mark.parametrize(
    "grid",
    [
        3,
        np.int64(3),
        (np.int32(3),),
        [3, 1],
        torch.Size([3]),
        torch.tensor(3),
        lambda meta: -(-10 // meta["BLOCK"]),
    ],
    ids=lambda grid: type(grid).__name__,
)
def test_a_grid_is_anything_that_counts(grid: Any):
    assert added(torch.ones(10), grid) == 20


@pytest.mark.parametrize("grid", [(3.0,), (True,), (), (1, 1, 1, 1), None, "3", (-1,)], ids=str)
def test_only_sizes_are_a_grid(grid: Any):
    with pytest.raises(UnsupportedError, match="kernel add: a grid"):
        added(torch.ones(10), grid)


def test_kernels_take_as_many_tensors_as_are_given_and_some_by_position_only():
    out = torch.zeros(4)
    traced(hostile.any_number_of_tensors)[(1,)](out, torch.ones(4), torch.full((4,), 2.0))
    assert out.tolist() == [3.0] * 4
    traced(hostile.by_position_only)[(1,)](torch.ones(4), out, 5)
    assert out.tolist() == [5.0] * 4


@pytest.mark.parametrize("kernel", [hostile.add, lambda x: x])
def test_a_decorator_without_parentheses_says_so(kernel: Any):
    with pytest.raises(UnsupportedError, match=r"write @triton_viz.trace\(\), with \(\)"):
        triton_viz.trace(kernel)


def test_a_traced_kernel_looks_like_what_it_wraps():
    kernel = traced(hostile.add)
    assert (kernel.__name__, kernel.__doc__, kernel.__module__) == ("add", "Adds.", hostile.__name__)
    assert kernel.arg_names == ["x", "y", "out", "n", "BLOCK"]
    assert list(inspect.signature(kernel).parameters) == kernel.arg_names
    assert kernel.src.startswith("def add(")


def test_a_kernel_called_without_a_grid_says_what_is_missing():
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=r"called without a grid: write add\[grid\]"):
            traced(hostile.add)(torch.ones(4))
        added(torch.ones(10))


@pytest.mark.parametrize("sms", [1, 4])
def test_an_error_names_the_program_that_was_there(monkeypatch: pytest.MonkeyPatch, sms: int):
    monkeypatch.setattr(triton_viz.config, "num_sms", sms)
    with pytest.raises(KernelError, match=r"program \(3, 0, 0\): ValueError: arange"):
        traced(hostile.wrong_in_one)[(9,)](torch.zeros(9), WRONG=3)
    with pytest.raises(KernelError, match=r"program \(0, 0, 0\): ValueError: arange"):
        traced(hostile.wrong_in_a_combination)[(2,)](torch.arange(1024.0), torch.zeros(2), BLOCK=1024)


def test_a_kernel_is_what_it_was_when_it_was_defined_though_its_file_has_changed(tmp_path: Path):
    text = (
        "import triton, triton.language as tl\n\n\n@triton.jit\ndef five(out):\n"
        "    tl.store(out + tl.program_id(0), 5)\n"
    )
    file = tmp_path / "edited.py"
    file.write_text(text)
    five = module_of(file).five
    file.write_text("# more\n# lines\n\n" + text.replace("5", "9"))
    os.utime(file, (1, 1))
    out = torch.zeros(2)
    traced(five)[(2,)](out)
    assert out.tolist() == [5, 5]
    assert triton_viz.launches[-1].source.endswith("tl.store(out + tl.program_id(0), 5)\n")
