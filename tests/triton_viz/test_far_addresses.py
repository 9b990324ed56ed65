# pyright: reportArgumentType=false, reportOperatorIssue=false
"""Blocks of any base and step: addresses that wrap around into a tensor are valid, others an AccessError."""

from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import example, given, settings
from hypothesis import strategies as st

import triton_viz
from tests.programs import run_python
from tests.triton_viz.helpers.watching import Watch
from triton_viz.core.data import Access, Issue, Op
from triton_viz.errors import AccessError

pytestmark = pytest.mark.usefixtures("no_launches")

N, SIZE = 4, 16


@triton.jit
def fills(x, base, step, BLOCK: tl.constexpr):
    tl.store(x + base + tl.arange(0, BLOCK).to(tl.int64) * step, 1.0)


@triton.jit
def fills_some(x, base, step, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + base + at.to(tl.int64) * step, 1.0, mask=(at > 0) & (at < BLOCK - 1))


@triton.jit
def fills_odd(x, base, step, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + base + at.to(tl.int64) * step, 1.0, mask=at % 2 == 1)


@triton.jit
def fills_one(x, base, step, BLOCK: tl.constexpr):
    tl.store(x + base + step, 1.0)


@triton.jit
def adds(x, base, step, BLOCK: tl.constexpr):
    tl.atomic_add(x + base + tl.arange(0, BLOCK).to(tl.int64) * step, 1.0)


@triton.jit
def loads(x, base, step, BLOCK: tl.constexpr):
    found = tl.load(x + base + tl.arange(0, BLOCK).to(tl.int64) * step)
    tl.store(x, 1.0 + tl.sum(found) * 0)


KERNELS = {
    fills: range(N),
    fills_some: range(1, N - 1),
    fills_odd: range(1, N, 2),
    fills_one: range(1, 2),
    adds: range(N),
    loads: range(N),
}
"""Each kernel with the elements of its block that it accesses."""


class Told(Watch):
    """A client of one program at a time, with callbacks before accesses."""

    def register_op_callback(self, op_type: type[Op]) -> Any:
        told = triton_viz.OpCallbacks(before_callback=lambda **_: None)
        return told if issubclass(op_type, Access) else triton_viz.OpCallbacks()


FAR = [2**m + off for m in (58, 59, 60, 61, 62) for off in (-4, -1, 0, 1, 4)]
NUMBERS = st.integers(-SIZE, SIZE) | st.sampled_from(FAR) | st.sampled_from([-far for far in FAR])


CLIENTS: dict[str, Any] = {name: name for name in ("tracer", "race_detector", "sanitizer")}
CLIENTS |= {"none": (), "told": Told()}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.fn.__name__)
@settings(max_examples=12, deadline=None)
@given(base=NUMBERS, step=NUMBERS, client=st.sampled_from(sorted(CLIENTS)))
@example(base=2**60, step=2**60, client="none")
@example(base=2**60, step=2**61, client="told")
@example(base=2**60, step=2**61, client="sanitizer")
@example(base=0, step=2**61 - 1, client="tracer")
@example(base=0, step=2**61 - 1, client="sanitizer")
@example(base=0, step=2**62, client="race_detector")
def test_a_block_is_where_its_wrapped_addresses_are(kernel: Any, base: int, step: int, client: str):
    offsets = [(base + n * step) * 4 for n in KERNELS[kernel]]
    wrapped = [(offset + 2**63) % 2**64 - 2**63 for offset in offsets]
    inside = all(0 <= offset < 4 * SIZE for offset in wrapped)
    x = torch.zeros(SIZE)
    triton_viz.clear()
    launch = triton_viz.trace(CLIENTS[client])(kernel)[(1,)]
    if not inside and client != "sanitizer":
        with pytest.raises(AccessError, match=r"program \(0, 0, 0\): address(es)? 0x"):
            launch(x, base, step, BLOCK=N)
        assert not x.any()
        return
    launch(x, base, step, BLOCK=N)
    if kernel is not loads:
        touched = {offset // 4 for offset in wrapped if 0 <= offset < 4 * SIZE}
        assert set(x.nonzero().flatten().tolist()) == touched
    if client == "sanitizer":
        kinds = {record.kind for record in triton_viz.launches[-1].records if isinstance(record, Issue)}
        assert kinds <= {"overflow"} if inside else kinds


FAR_APART = """
import numpy as np
import torch, triton, triton.language as tl
import triton_viz

@triton_viz.trace("tracer")
@triton.jit
def copies(a, b, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    p = tl.where(tl.program_id(0) == 0, a, b)
    tl.store(out + tl.program_id(0) * BLOCK + at, tl.load(p + at))

near = torch.from_numpy(np.full(1 << 14, 1, np.float32))  # on the heap
far = torch.from_numpy(np.full(1 << 24, 2, np.float32))  # above it, with free memory in between
out = torch.empty(1 << 15)
copies[(2,)](near, far, out, BLOCK=1 << 14)
print(out[: 1 << 14].unique().item(), out[1 << 14 :].unique().item())
"""


def test_two_tensors_are_read_together_however_much_memory_is_between_them(tmp_path: Path):
    """NumPy copies what seems to overlap with its copy, and a copy of both that is between them does."""
    program = tmp_path / "far_apart.py"
    program.write_text(FAR_APART)
    assert run_python(str(program), fresh=True).stdout.split() == ["1.0", "2.0"]
