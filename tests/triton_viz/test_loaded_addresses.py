# pyright: reportArgumentType=false
"""Tensors that are no arguments: a kernel can access those whose addresses it loads, and nothing else."""

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.triton_viz.helpers.reach import fills, issues_of, name, traced, way
from triton_viz.clients import RaceDetector, Sanitizer
from triton_viz.errors import AccessError

pytestmark = pytest.mark.usefixtures(way.__name__)


@triton.jit
def fills_by_pointers(table, offset, BLOCK: tl.constexpr):
    pointers = table.to(tl.pointer_type(tl.pointer_type(tl.float32)))
    tl.store(tl.load(pointers + tl.program_id(0)) + offset + tl.arange(0, BLOCK), 7.0)


@triton.jit
def fills_by_numbers(table, offset, BLOCK: tl.constexpr):
    address = tl.load(table + tl.program_id(0)) + offset.to(tl.int64) * 4
    at = address + tl.arange(0, BLOCK).to(tl.int64) * 4
    tl.store(at.to(tl.pointer_type(tl.float32)), 7.0)


@triton.jit
def fills_by_halves(table, offset, BLOCK: tl.constexpr):
    address = tl.load(table + tl.program_id(0)).to(tl.uint64)
    low, high = (address & 0xFFFFFFFF).to(tl.uint32), (address >> 32).to(tl.uint32)
    whole = (high.to(tl.uint64) << 32) | low.to(tl.uint64)
    tl.store(whole.to(tl.pointer_type(tl.float32)) + offset + tl.arange(0, BLOCK), 7.0)


@triton.jit
def fills_picked(table, offset, BLOCK: tl.constexpr):
    at = tl.arange(0, 2)
    addresses = tl.load(table + at)
    address = tl.sum(tl.where(at == tl.program_id(0), addresses, 0))
    tl.store(address.to(tl.pointer_type(tl.float32)) + offset + tl.arange(0, BLOCK), 7.0)


@triton.jit
def fills_in_one_block(table, offset, BLOCK: tl.constexpr):
    addresses = tl.load(table + tl.arange(0, 2))
    rows = tl.reshape(addresses, [2, 1]).to(tl.pointer_type(tl.float32))
    tl.store(rows + offset + tl.arange(0, BLOCK)[None, :], 7.0)


@triton.jit
def fills_transposed(table, offset, BLOCK: tl.constexpr):
    rows = tl.load(table + tl.arange(0, 2)).to(tl.pointer_type(tl.float32))
    block = rows[:, None] + offset + tl.arange(0, BLOCK)[None, :]
    tl.store(tl.trans(block), 7.0)


@triton.jit
def fills_where(table, offset, BLOCK: tl.constexpr):
    first = tl.load(table).to(tl.pointer_type(tl.float32))
    second = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    p = tl.where(tl.program_id(0) == 0, first, second)
    tl.store(p + offset + tl.arange(0, BLOCK), 7.0)


@triton.jit
def fills_in_branches(table, offset, BLOCK: tl.constexpr):
    p = tl.load(table).to(tl.pointer_type(tl.float32))
    if tl.program_id(0) == 1:
        p = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    tl.store(p + offset + tl.arange(0, BLOCK), 7.0)


@triton.jit
def fills_in_a_loop(table, offset, BLOCK: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32)) + offset
    for _ in range(BLOCK):
        tl.store(p, 7.0)
        p += 1


@triton.jit
def fills_described(table, offset, BLOCK: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    described = tl.make_tensor_descriptor(p + offset, [BLOCK], [1], [BLOCK])
    described.store([0], tl.full([BLOCK], 7.0, tl.float32))


@triton.jit
def fills_atomically(table, offset, BLOCK: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.atomic_xchg(p + offset + tl.arange(0, BLOCK), 7.0)


@triton.jit
def fills_what_an_atomic_gave(table, offset, BLOCK: tl.constexpr):
    p = tl.atomic_add(table + tl.program_id(0), 0).to(tl.pointer_type(tl.float32))
    tl.store(p + offset + tl.arange(0, BLOCK), 7.0)


@triton.jit
def fills_masked(table, offset, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    p = tl.load(table + at, mask=at < 2, other=0).to(tl.pointer_type(tl.float32))
    place = offset + tl.arange(0, BLOCK)
    tl.store(p[:, None] + place[None, :], 7.0, mask=(at < 2)[:, None])


LOADED = [
    fills,
    fills_by_pointers,
    fills_by_numbers,
    fills_by_halves,
    fills_picked,
    fills_in_one_block,
    fills_transposed,
    fills_where,
    fills_in_branches,
    fills_in_a_loop,
    fills_described,
    fills_atomically,
    fills_what_an_atomic_gave,
    fills_masked,
]


@pytest.mark.parametrize("kernel", LOADED, ids=name)
def test_a_loaded_address_leads_to_its_tensor(kernel: Any):
    targets = [torch.zeros(32), torch.zeros(32)]
    table = torch.tensor([t.data_ptr() for t in targets])
    traced(kernel)[(2,)](table, 16, BLOCK=16)
    for target in targets:
        assert target.tolist() == [0.0] * 16 + [7.0] * 16
    assert issues_of(Sanitizer(), kernel, table, 0, BLOCK=16) == []
    for target in targets:
        assert target.tolist() == [7.0] * 32


@pytest.mark.parametrize("kernel", LOADED, ids=name)
@pytest.mark.parametrize("victim", ["not given", "other in table", "argument"])
def test_and_not_beyond_it(kernel: Any, victim: str):
    targets = [torch.zeros(32), torch.zeros(32)]
    table = torch.tensor([t.data_ptr() for t in targets] + [0] * 30)
    other = {"not given": torch.zeros(32), "other in table": targets[1], "argument": table}[victim]
    before = other.clone()
    offset = (other.data_ptr() - targets[0].data_ptr()) // 4
    with pytest.raises(AccessError, match="the tensor whose address was loaded"):
        traced(kernel)[(1,)](table, offset, BLOCK=16)
    assert torch.equal(other, before)
    found = {issue.kind for issue in issues_of(Sanitizer(), kernel, table, offset, BLOCK=16)}
    # Program 0 reaches the victim. Program 1 adds the same offset to the other target: what is there depends
    # on the allocator. A tensor in the table is not known as such before a program has loaded its address.
    kinds = {"not given": {"foreign tensor"}, "argument": {"out of bounds"}}
    assert found & kinds.get(victim, {"foreign tensor", "out of bounds"})
    assert torch.equal(other, before)


def test_an_address_in_the_midst_of_a_tensor_leads_nowhere():
    target = torch.zeros(32)
    table = torch.tensor([target.data_ptr() + 64])
    with pytest.raises(AccessError, match="Another live tensor"):
        traced(fills)[(1,)](table, 0, BLOCK=16)
    view = target[16:]
    traced(fills)[(1,)](table, 0, BLOCK=16)
    assert view.tolist() == [7.0] * 16
    traced(fills)[(1,)](table, -16, BLOCK=16)  # its storage is the whole tensor's
    assert target.tolist() == [7.0] * 32


@triton.jit
def fills_from_stored(scratch, address, BLOCK: tl.constexpr):
    p = tl.load(scratch, mask=False, other=address).to(tl.pointer_type(tl.float32))
    tl.store(p + tl.arange(0, BLOCK), 7.0)


def test_what_a_masked_load_gives_instead_was_not_loaded():
    scratch, other = torch.zeros(1, dtype=torch.int64), torch.zeros(16)
    with pytest.raises(AccessError, match="Another live tensor"):
        traced(fills_from_stored)[(1,)](scratch, other.data_ptr(), BLOCK=16)
    assert not other.any()


@triton.jit
def adds_offset_of_loaded(x, table, BLOCK: tl.constexpr):
    distance = (tl.load(table) - x.to(tl.int64)) // 4
    tl.store(x + distance + tl.arange(0, BLOCK), 7.0)


def test_a_loaded_address_as_an_offset_does_not_lead_out_of_an_argument():
    x, other = torch.zeros(16), torch.zeros(16)
    with pytest.raises(AccessError, match="Another live tensor"):
        traced(adds_offset_of_loaded)[(1,)](x, torch.tensor([other.data_ptr()]), BLOCK=16)
    assert not other.any()


@triton.jit
def grouped(lefts, rights, outs, sizes, groups, M: tl.constexpr, PROGRAMS: tl.constexpr):
    """The addressing of Triton's tutorial on grouped matrix products."""
    tile = tl.program_id(0)
    last_problem_end = 0
    for g in range(groups):
        n = tl.load(sizes + g)
        tiles = tl.cdiv(n, M)
        while tile >= last_problem_end and tile < last_problem_end + tiles:
            a_ptr = tl.load(lefts + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(rights + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(outs + g).to(tl.pointer_type(tl.float16))
            row = (tile - last_problem_end) * M + tl.arange(0, M)
            a_ptrs = a_ptr + row[:, None] * M + tl.arange(0, M)[None, :]
            b_ptrs = b_ptr + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
            tl.multiple_of(a_ptrs, [16, 16])
            c = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
            tl.store(c_ptr + row[:, None] * M + tl.arange(0, M)[None, :], c.to(tl.float16))
            tile += PROGRAMS
        last_problem_end = last_problem_end + tiles


def test_grouped_matrix_products():
    m, sizes = 16, [32, 16, 48]
    lefts = [torch.randn(n, m, dtype=torch.float16) for n in sizes]
    rights = [torch.randn(m, m, dtype=torch.float16) for _ in sizes]
    outs = [torch.zeros(n, m, dtype=torch.float16) for n in sizes]
    tables = [torch.tensor([t.data_ptr() for t in tensors]) for tensors in (lefts, rights, outs)]
    arguments = (*tables, torch.tensor(sizes, dtype=torch.int32), len(sizes))
    traced(grouped)[(2,)](*arguments, M=m, PROGRAMS=2)
    for left, right, out in zip(lefts, rights, outs, strict=True):
        torch.testing.assert_close(out, (left.float() @ right.float()).half(), rtol=1e-2, atol=1e-2)
    assert issues_of(Sanitizer(), grouped, *arguments, M=m, PROGRAMS=2) == []
    assert issues_of(RaceDetector(), grouped, *arguments, M=m, PROGRAMS=2) == []


@triton.jit
def mixes_hashes(x, out, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.load(x + at)
    for i in range(ROUNDS):
        total = (total * 31) ^ tl.load(x + (at + i) % BLOCK)
    tl.store(out + at, total)
    tl.store(out + BLOCK, tl.sum(total))


def test_large_numbers_that_are_no_addresses_stay_numbers():
    x = torch.randint(2**40, 2**62, (64,))
    out = torch.zeros(65, dtype=torch.int64)
    traced(mixes_hashes)[(2,)](x, out, ROUNDS=40, BLOCK=64)
    numbers, total = x.numpy(), x.numpy()
    with np.errstate(over="ignore"):
        for i in range(40):
            total = (total * 31) ^ np.roll(numbers, -i)
        assert out.tolist() == [*total.tolist(), int(total.sum())]
