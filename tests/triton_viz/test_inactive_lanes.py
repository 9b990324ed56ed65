# pyright: reportArgumentType=false
"""Inactive lanes may hold operands that are invalid for an op: that is neither an error nor an endless
loop."""

import pytest
import torch
import triton
import triton.language as tl

import triton_viz
from triton_viz.errors import KernelError

pytestmark = pytest.mark.usefixtures("no_launches")

N = 8


@triton.jit
def gathers(x, out, limit, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)
    if pid < limit:
        tl.store(out + pid * BLOCK + at, tl.gather(values, (at + pid * pid) // (pid + 1), 0))


@triton.jit
def gathers_one(x, out, limit, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if pid < limit:
        tl.store(out + pid * BLOCK + at, tl.gather(tl.load(x + at), at * 0 + pid * 3, 0))


@triton.jit
def describes(x, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid % 4 == 0:
        described = tl.make_tensor_descriptor(x + pid, [n], [1], [BLOCK])
        tl.store(out + pid * BLOCK + tl.arange(0, BLOCK), described.load([0]))


@triton.jit
def describes_rows(x, out, stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid % 4 == 0:
        described = tl.make_tensor_descriptor(x, [2, BLOCK], [stride + pid, 1], [1, BLOCK])
        tl.store(out + pid * BLOCK + tl.arange(0, BLOCK), described.load([1, 0]).reshape([BLOCK]))


@triton.jit
def halvings(n):
    count = 0
    while n != 1:
        n //= 2
        count += 1
    return count


@triton.jit
def maps(x, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    if pid % 2 == 1:
        tl.store(out + at, tl.map_elementwise(halvings, values))


def test_an_index_of_a_gather_is_checked_at_its_use():
    x, out = torch.arange(8.0), torch.full((5, N), -1.0)
    triton_viz.trace()(gathers_one)[(5,)](x, out, 3, BLOCK=N)
    assert out[:, 0].tolist() == [0, 3, 6, -1, -1]
    out.fill_(-1)
    triton_viz.trace()(gathers)[(5,)](x, out, 2, BLOCK=N)
    assert out[:2].tolist() == [x.tolist(), [(i + 1) // 2 for i in range(8)]]
    with pytest.raises(KernelError, match=r"tl\.gather picks index 0 to 9 of an axis of 8"):
        triton_viz.trace()(gathers_one)[(5,)](x, out, 4, BLOCK=N)


def test_a_descriptor_is_aligned_where_it_is_made():
    storage = torch.zeros(68)
    x = storage[(-storage.data_ptr() // 4) % 4 :][:64].copy_(torch.arange(64.0))  # at a multiple of 16 bytes
    out = torch.full((8, N), -1.0)
    triton_viz.trace()(describes)[(8,)](x, out, 60, BLOCK=N)
    assert out[:, 0].tolist() == [0, -1, -1, -1, 4, -1, -1, -1]
    out.fill_(-1)
    triton_viz.trace()(describes_rows)[(8,)](x, out, 8, BLOCK=N)
    assert out[:, 0].tolist() == [8, -1, -1, -1, 12, -1, -1, -1]
    with pytest.raises(KernelError, match="base must be aligned to 16 bytes"):
        triton_viz.trace()(describes)[(8,)](x[1:], out, 60, BLOCK=N)
    with pytest.raises(KernelError, match="strides must be multiples of 16 bytes"):
        triton_viz.trace()(describes_rows)[(8,)](x, out, 9, BLOCK=N)


@pytest.mark.skipif(
    not hasattr(tl, "map_elementwise"), reason="this release of Triton has no map_elementwise"
)
def test_an_elementwise_function_is_called_for_active_lanes_only():
    """For 0 it would never end."""
    x = torch.tensor([[0, 0], [1, 2], [0, 0], [8, 9]], dtype=torch.int32)
    out = torch.full_like(x, -1)
    triton_viz.trace()(maps)[(4,)](x, out, BLOCK=2)
    assert out.tolist() == [[-1, -1], [0, 1], [-1, -1], [3, 3]]
