"""Launches: large grids, threads, interruptions, progress, and all kernels of a `with`."""

import os
import pty
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

import triton_viz
from tests.programs import TIMEOUT, run_python
from tests.triton_viz.helpers import kernels
from tests.triton_viz.helpers.watching import functions_of
from triton_viz.errors import KernelError, UnsupportedError
from triton_viz.executor import executor

pytestmark = pytest.mark.usefixtures("no_launches")

MILLION = """
import resource, sys, torch, triton_viz
from pathlib import Path
from tests.triton_viz.helpers.kernels import add
kernel = triton_viz.trace()(add)
n = 16_000_000 - 5
x, y, out = torch.ones(n), torch.ones(n), torch.zeros(n)
kernel[(4,)](x, y, out, 64, BLOCK=16)
triton_viz.clear()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kernel[(1_000_000,)](x, y, out, n, BLOCK=16)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
triton_viz.save(sys.argv[1])
assert (out == 2).all()
(launch,) = triton_viz.launches
last = launch.at((999_999, 0, 0))[-1]
print(grown // 1024, Path(sys.argv[1]).stat().st_size, len(launch.records), launch.ops, int(last.mask.sum()))
"""


def test_a_million_programs_are_three_records_of_little_memory_and_a_small_file(tmp_path):
    done = run_python("-c", MILLION, str(tmp_path / "million.tvz"))
    megabytes, size, records, ops, stored = map(int, done.stdout.split())
    assert megabytes < 500
    assert size < 10_000_000
    assert (records, ops, stored) == (3, 3_000_000, 11)


@pytest.mark.parametrize("vectorized", [True, False])
def test_threads_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch, vectorized: bool):
    monkeypatch.setattr(triton_viz.config, "vectorized", vectorized)
    monkeypatch.setattr(executor, "FIRST_LANES", 8)
    torch.manual_seed(0)
    x = torch.randn(64) * 1000

    def run(threads: int) -> list[Any]:
        monkeypatch.setattr(triton_viz.config, "num_sms", threads)
        counter, total = torch.zeros(1, dtype=torch.int32), torch.zeros(1)
        out = torch.zeros(64, dtype=torch.int32)
        triton_viz.trace()(kernels.tickets)[(64,)](counter, out, total, x)
        late = torch.zeros(64, dtype=torch.int32)
        triton_viz.trace()(kernels.late_ticket)[(64,)](torch.zeros(1, dtype=torch.int32), late, 40)
        sums = torch.zeros(64)
        triton_viz.trace()(kernels.add)[(16,)](x, x, sums, 64, BLOCK=4)
        records = [launch.at(program) for launch in triton_viz.launches for program in launch.programs()]
        triton_viz.clear()
        return [counter.item(), total.item(), out.tolist(), late.tolist(), sums.tolist(), records]

    assert run(4) == run(1)
    assert run(4)[2] == list(range(64))


def test_an_error_on_a_thread_is_raised_with_its_program(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_viz.config, "num_sms", 3)
    monkeypatch.setattr(triton_viz.config, "vectorized", False)
    x = torch.ones(10)
    with pytest.raises(IndexError, match=r"kernel add_unmasked, program \(2, 0, 0\): address"):
        triton_viz.trace()(kernels.add_unmasked)[(3,)](x, x, torch.ones(10), 10, BLOCK=4)


def language() -> dict[str, Any]:
    """Triton's language, attribute by attribute."""
    return {
        f"{owner.__name__}.{name}": value
        for owner in (tl, tl.core, tl.math, tl.tensor, tl.dtype, tl.constexpr, tl.block_type, tl.pointer_type)
        for name, value in vars(owner).items()
        if not name.startswith("__") or callable(value)
    }


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a finalizer: see `press`
def test_ctrl_c_in_a_kernel_restores_everything():
    before = language()
    x = torch.ones(64)
    ended, lock = threading.Event(), threading.Lock()

    def press() -> None:
        """Python drops a KeyboardInterrupt in a finalizer: then a user presses Ctrl-C again."""
        while not ended.wait(0.3):
            with lock:
                if not ended.is_set():
                    os.kill(os.getpid(), signal.SIGINT)

    def launch_until_pressed() -> None:
        thread.start()
        try:
            kernel[(64,)](x, 100_000_000)
        finally:
            with lock:
                ended.set()

    kernel = triton_viz.trace()(kernels.endless)
    kernel[(64,)](x, 3)
    thread = threading.Thread(target=press)
    with pytest.raises(KeyboardInterrupt):
        launch_until_pressed()
    thread.join()
    assert language() == before
    assert len(triton_viz.launches) == 1
    kernel[(64,)](x, 1)
    assert x.tolist() == [8.0] * 64


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a terminal of its own")
def test_a_long_launch_shows_its_progress_on_a_terminal():
    code = (
        "import torch, triton_viz; from triton_viz.executor import executor\n"
        "from tests.triton_viz.helpers.kernels import endless\n"
        "executor._PROGRESS_DELAY = 0.0; executor.FIRST_LANES = executor.MOST_LANES = 16\n"
        "triton_viz.trace()(endless)[(64,)](torch.ones(64), 20)\n"
    )

    def shown(**environment: str) -> str:
        parent, child = pty.openpty()
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", code],
            {**os.environ, "PYTHONPATH": str(Path.cwd()), "TERM": "xterm", "COLUMNS": "120", **environment},
            file_actions=[(os.POSIX_SPAWN_DUP2, child, 2), (os.POSIX_SPAWN_CLOSE, parent)],
        )
        os.close(child)
        output = b""
        while True:
            try:
                piece = os.read(parent, 4096)
            except OSError:  # the other end is closed
                break
            output += piece
        os.close(parent)
        assert os.waitpid(pid, 0)[1] == 0
        return output.decode(errors="replace")

    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown())
    assert "endless" in text
    assert "64/64 programs" in text
    assert "programs/s" in text
    assert "endless" not in shown(TRITON_VIZ_PROGRESS="0")


def test_threads_share_one_progress_bar(monkeypatch: pytest.MonkeyPatch):
    made: list[Any] = []

    class Bar:
        completed = 0

        def update(self, task: int, completed: int, rate: str) -> None:
            self.completed = completed

        def stop(self) -> None: ...

    def make(kernel: str, total: int) -> tuple[Bar, int]:
        made.append(Bar())
        if len(made) == 1:  # while the first thread makes it, the second has done a program, too
            second.start()
            while second.is_alive() and functions_of(second)[-1:] != ["__call__"]:
                time.sleep(0.001)
        return made[-1], 0

    monkeypatch.setattr(executor, "_bar", make)
    monkeypatch.setattr(executor, "_PROGRESS_DELAY", -1.0)
    with executor.Progress("kernel", 2, visible=True) as progress:
        second = threading.Thread(target=progress, args=(1,))
        progress(1)
        second.join(TIMEOUT)
    assert [bar.completed for bar in made] == [2]


def test_autotuned_and_heuristics_wrapped_kernels_are_traced(caplog: pytest.LogCaptureFixture):
    kernel = triton_viz.trace()(kernels.tuned)
    for _ in range(2):
        x = torch.ones(8)
        kernel[(1,)](x, 2.0)
        assert x.tolist() == [2.0] * 4 + [1.0] * 4
    assert [record.message for record in caplog.records if "scale" in record.message] == [
        record.message for record in caplog.records[:1]
    ], "the choice is said once"
    x = torch.ones(8)
    triton_viz.trace()(kernels.derived)[(1,)](x, 3.0)
    assert x.tolist() == [3.0] * 8
    assert [launch.kernel for launch in triton_viz.launches] == ["scale"] * 3


def test_a_wrapper_above_a_trace_works_too():
    above = triton.heuristics({"BLOCK": lambda args: args["x"].numel()})(triton_viz.trace()(kernels.scale))
    x = torch.ones(4)
    above[(1,)](x, 3.0)
    assert (x.tolist(), len(triton_viz.launches)) == ([3.0] * 4, 1)


def test_inside_a_with_every_kernel_is_traced_once():
    traced = triton_viz.trace()(kernels.scale)
    x = torch.ones(4)
    with triton_viz.trace():
        plain: Any = kernels.scale
        plain[(1,)](x, 2.0, BLOCK=4)
        kernels.tuned[(1,)](x, 2.0)
        kernels.derived[(1,)](x, 2.0)
        traced[(1,)](x, 2.0, BLOCK=4)
    assert x.tolist() == [16.0] * 4
    assert len(triton_viz.launches) == 4
    with triton_viz.trace(()):
        plain[(1,)](x, 0.5, BLOCK=4)
    assert x.tolist() == [8.0] * 4
    assert len(triton_viz.launches) == 4, "without a client nothing is kept"


def test_tritons_own_interpreter_before_and_after_changes_nothing():
    code = (
        "import os; os.environ['TRITON_INTERPRET'] = '1'\n"
        "import torch, triton_viz; from tests.triton_viz.helpers import kernels\n"
        "x, out = torch.randn(3, 5), torch.zeros(3)\n"
        "for _ in range(2):\n"
        "    kernels.row_norm[(3,)](x, out, 5, BLOCK=8)\n"  # calls other kernels, and so leaves tl patched
        "    theirs = out.clone(); out.zero_()\n"
        "    triton_viz.trace()(kernels.row_norm)[(3,)](x, out, 5, BLOCK=8)\n"
        "    torch.testing.assert_close(out, theirs); torch.testing.assert_close(out, x.norm(dim=1))\n"
        "print(len(triton_viz.launches))"
    )
    assert run_python("-c", code).stdout == "2\n"


def test_interpretation_asked_for_late_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    late = triton.jit(kernels.scale.fn)
    assert isinstance(late, InterpretedFunction)
    x = torch.ones(4)
    triton_viz.trace()(late)[(1,)](x, 2.0, BLOCK=4)
    triton_viz.trace()(kernels.scale)[(1,)](x, 2.0, BLOCK=4)
    assert x.tolist() == [4.0] * 4


def test_inline_assembly_is_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"kernel assembly.*inline assembly \('add\.f32") as error:
        triton_viz.trace()(kernels.assembly)[(1,)](torch.ones(4), BLOCK=4)
    assert "kernels.py" in str(error.value)


@triton.jit
def puts_two_types_together(out, OP: tl.constexpr):
    at = tl.arange(0, 4)
    if OP == "join":
        both = tl.reshape(tl.join(at, at.to(tl.float32)), (8,))
    else:
        both = tl.cat(at, at.to(tl.float32), can_reorder=True)
    tl.store(out + tl.arange(0, 8), both)


@pytest.mark.filterwarnings(r"ignore:tl.cat\(can_reorder=True\) is deprecated")
@pytest.mark.parametrize("op", ["join", "cat"])
def test_blocks_of_two_types_are_not_put_together(op: str):
    with pytest.raises(
        KernelError, match=f"tl.{op} takes blocks of one type, not of int32 and fp32: cast one"
    ):
        triton_viz.trace()(puts_two_types_together)[(1,)](torch.zeros(8), OP=op)


def test_pointers_in_memory_lead_to_live_tensors_and_nowhere_else():
    sources = [torch.full((4,), float(i)) for i in range(3)]
    pointers = torch.tensor([source.data_ptr() for source in sources])
    out = torch.zeros(3, 4)
    triton_viz.trace()(kernels.follow)[(3,)](pointers, out, BLOCK=4)
    assert out.tolist() == [[0.0] * 4, [1.0] * 4, [2.0] * 4]
    launch = triton_viz.launches[-1]
    assert [launch.at((i, 0, 0))[1].tensor for i in range(3)] == [f"*pointers[{i}]" for i in range(3)]  # type: ignore[attr-defined]
    for wild in (0, 8, 2**46, -8):
        pointers[1] = wild
        with pytest.raises(IndexError, match=r"program \(1, 0, 0\): address.* not in the memory"):
            triton_viz.trace()(kernels.follow)[(3,)](pointers, out, BLOCK=4)
    assert np.isfinite(out.numpy()).all()
