# pyright: reportArgumentType=false
"""The memory that a kernel can access: its arguments' storages and nothing else, whatever it computes.

Tensors whose addresses it loads are in test_loaded_addresses.py.
"""

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from tests.triton_viz.helpers.reach import apart, issues_of, name, stores_at_address, traced, way
from triton_viz.clients import Sanitizer
from triton_viz.errors import AccessError

pytestmark = pytest.mark.usefixtures(way.__name__)


@triton.jit
def stores_at(x, offset, BLOCK: tl.constexpr):
    tl.store(x + offset + tl.arange(0, BLOCK), 7.0)


@triton.jit
def stores_one_at(x, offset, BLOCK: tl.constexpr):
    tl.store(x + offset, 7.0)


@triton.jit
def stores_some_at(x, offset, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + offset + at, 7.0, mask=at % 2 == 0)


@triton.jit
def stores_first_at(x, offset, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + offset + at, 7.0, mask=at < BLOCK - 1)


@triton.jit
def loads_at(x, offset, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.load(x + offset + tl.arange(0, BLOCK)) + 7.0)


@triton.jit
def adds_at(x, offset, BLOCK: tl.constexpr):
    tl.atomic_add(x + offset + tl.arange(0, BLOCK), 7.0)


@triton.jit
def swaps_at(x, offset, BLOCK: tl.constexpr):
    words = x.to(tl.pointer_type(tl.int32), bitcast=True)
    tl.atomic_cas(words + offset, 0, 7)


@triton.jit
def stores_described(x, offset, BLOCK: tl.constexpr):
    described = tl.make_tensor_descriptor(x + offset, [BLOCK], [1], [BLOCK])
    described.store([0], tl.full([BLOCK], 7.0, tl.float32))


@triton.jit
def stores_by_number(x, offset, BLOCK: tl.constexpr):
    address = x.to(tl.int64) + offset * 4
    tl.store(address.to(tl.pointer_type(tl.float32)) + tl.arange(0, BLOCK), 7.0)


@triton.jit
def stores_by_unsigned_number(x, offset, BLOCK: tl.constexpr):
    address = (x.to(tl.uint64, bitcast=True).to(tl.int64) >> 2) + offset
    tl.store((address << 2).to(tl.pointer_type(tl.float32)) + tl.arange(0, BLOCK), 7.0)


WILD = [
    stores_at,
    stores_one_at,
    stores_some_at,
    stores_first_at,
    loads_at,
    adds_at,
    swaps_at,
    stores_described,
    stores_by_number,
    stores_by_unsigned_number,
]


@pytest.mark.parametrize("kernel", WILD, ids=name)
def test_a_wild_offset_does_not_reach_another_tensor(kernel: Any):
    """Both above and below: whichever of two is allocated first."""
    tensors = [torch.zeros(64) for _ in range(2)]
    for x, other in (tensors, tensors[::-1]):
        with pytest.raises(AccessError, match="Another live tensor is there"):
            traced(kernel)[(2,)](x, apart(x, other), BLOCK=16)
        assert not x.any()
        assert not other.any()


@pytest.mark.parametrize("kernel", WILD, ids=name)
def test_what_the_storage_of_a_view_holds_can_be_reached(kernel: Any):
    whole = torch.zeros(256)
    traced(kernel)[(1,)](whole[128:144], -64, BLOCK=16)
    assert whole.any()
    with pytest.raises(AccessError):
        traced(kernel)[(1,)](whole[128:144], 128, BLOCK=16)


@pytest.mark.parametrize("kernel", WILD, ids=name)
def test_the_sanitizer_finds_it_and_goes_on(kernel: Any):
    x, other = torch.zeros(64), torch.zeros(64)
    (issue, *_) = issues_of(Sanitizer(), kernel, x, apart(x, other), BLOCK=16)
    assert issue.kind in ("out of bounds", "foreign tensor")
    assert not other.any()


def test_an_address_that_is_a_number_leads_to_arguments_only():
    out, other = torch.zeros(16), torch.zeros(16)
    with pytest.raises(AccessError, match="Another live tensor"):
        traced(stores_at_address)[(1,)](other.data_ptr(), out, BLOCK=16)
    assert not other.any()
    traced(stores_at_address)[(1,)](out.data_ptr(), out, BLOCK=16)
    assert out.tolist() == [7.0] * 16
