# pyright: reportArgumentType=false
"""What a kernel can touch: its arguments' storages, and tensors whose addresses it loads. Nothing else."""

import gc
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import triton_viz
from triton_viz.clients import RaceDetector, Sanitizer
from triton_viz.core.config import cfg
from triton_viz.core.data import Issue
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.errors import AccessError
from triton_viz.executor import raw_memory, storages
from triton_viz.executor.address_origin import Origin
from triton_viz.executor.affine import Affine
from triton_viz.executor.memory import Memory


@pytest.fixture(params=["at once", "one by one", "threads"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """The ways in which a launch can run."""
    before = cfg.vectorized, cfg.num_sms
    cfg.vectorized, cfg.num_sms = request.param != "one by one", 3 if request.param == "threads" else 1
    yield
    cfg.vectorized, cfg.num_sms = before


def traced(kernel: Any) -> Any:
    return triton_viz.trace("tracer")(kernel)


def issues_of(client: Any, kernel: Any, *args: Any, **kwargs: Any) -> list[Issue]:
    triton_viz.clear()
    triton_viz.trace(client)(kernel)[(2,)](*args, **kwargs)
    return [record for record in triton_viz.launches[-1].records if isinstance(record, Issue)]


def apart(a: torch.Tensor, b: torch.Tensor) -> int:
    """How many elements b begins after a."""
    return (b.data_ptr() - a.data_ptr()) // a.element_size()


# --- pointers of arguments ---


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


def name(kernel: Any) -> str:
    return kernel.fn.__name__


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


@triton.jit
def stores_at_address(address, out, BLOCK: tl.constexpr):
    tl.store(address.to(tl.pointer_type(tl.float32)) + tl.arange(0, BLOCK), 7.0)


def test_an_address_that_is_a_number_leads_to_arguments_only():
    out, other = torch.zeros(16), torch.zeros(16)
    with pytest.raises(AccessError, match="Another live tensor"):
        traced(stores_at_address)[(1,)](other.data_ptr(), out, BLOCK=16)
    assert not other.any()
    traced(stores_at_address)[(1,)](out.data_ptr(), out, BLOCK=16)
    assert out.tolist() == [7.0] * 16


# --- pointers that are loaded ---


@triton.jit
def fills(table, offset, BLOCK: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(p + offset + tl.arange(0, BLOCK), 7.0)


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


# --- addresses of all sizes ---


@pytest.mark.parametrize("address", [2**47, 2**48 - 4096, 2**52 - 4096, 2**55])
def test_an_address_above_that_of_most_machines_is_like_any_other(address: int, monkeypatch: Any):
    """No memory is there on most machines: the check is real, and what is touched is watched."""
    info = TensorInfo("x", (16,), (1,), "float32", address, 4, (address, address + 64))
    memory = Memory([info])
    assert memory.holds(address, address + 64)
    assert not memory.holds(address, address + 65)
    assert not memory.outside(np.array([address]), np.array([address + 64])).any()
    window = raw_memory.window(
        Affine(np.array([address + 60]), (-4,), (16,), 0, 0), 1, 0, np.dtype(np.float32)
    )
    assert window.__array_interface__["data"][0] == address + 60
    assert window.strides == (0, -4)
    flat, index = raw_memory._flat(np.array([address + 8, address + 60]), np.dtype(np.float32))
    assert flat is not None
    assert flat.__array_interface__["data"][0] + 4 * index.max() == address + 60


def test_loaded_tensors_are_published_as_one_object():
    """A thread that reads while another one adopts sees both, or neither."""
    argument, target = torch.zeros(4), torch.zeros(4)
    memory = Memory([TensorInfo.of("x", argument)])
    before = memory._storages
    memory.resolve(Origin((np.array([[target.data_ptr()]]),)))
    assert before.adopted == []
    assert before.limits(np.array([target.data_ptr()])) is None
    assert [info.storage for info in memory.adopted] == [TensorInfo.of("", target).storage]
    assert memory._storages is not before


def test_a_tensor_that_two_threads_find_keeps_the_name_that_it_got_first():
    target = torch.zeros(4)
    memory, address = Memory([TensorInfo.of("x", torch.zeros(4))]), target.data_ptr()

    class Meanwhile:
        """A lock that another thread, which looks for the same address, gets first."""

        def __enter__(self) -> None:
            memory._lock = threading.RLock()
            memory._adopt([address])

        def __exit__(self, *error: object) -> None: ...

    memory._lock = Meanwhile()  # type: ignore[assignment]
    memory._adopt([address])
    assert [info.name for info in memory.adopted] == ["unnamed0"]


def test_looking_for_tensors_disturbs_no_other_thread():
    """A tuple that is being built must not be held by anyone else."""
    stop, errors = threading.Event(), []

    def build() -> None:
        while not stop.is_set():
            try:
                tuple(n for n in range(40))
            except SystemError as error:
                errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns often
    thread = threading.Thread(target=build)
    thread.start()
    target, kept = torch.zeros(4), [torch.nn.Parameter(torch.zeros(2)) for _ in range(20)]
    many: list[Any] = [[] for _ in range(100_000)]  # so that it takes a while
    try:
        for _ in range(4):
            found = {id(tensor) for tensor in storages._live_tensors()}
            assert {id(tensor) for tensor in (target, *kept)} <= found
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert (errors, len(many)) == ([], 100_000)


def test_looking_for_tensors_changes_none():
    """A lazy clone has no memory of its own before it is written; asking for a pointer to it is a write."""
    target = torch.zeros(16)
    lazy = torch._lazy_clone(torch.zeros(4))  # type: ignore[attr-defined]
    table = torch.tensor([target.data_ptr()])
    traced(fills)[(1,)](table, 0, BLOCK=16)
    assert target.tolist() == [7.0] * 16
    assert torch._C._is_cow_tensor(lazy)  # type: ignore[attr-defined]


def test_an_address_leads_to_a_tensor_as_long_as_any_lives():
    """The one that was looked at first may be gone."""
    target = torch.zeros(16)
    address = target.data_ptr()
    live = storages.LiveTensors()
    first, second = (torch.empty(0).set_(target) for _ in range(2))
    assert [tensor.data_ptr() for _, _, tensor in live.at([address])] == [address]
    del target, first
    ((_, info, tensor),) = live.at([address])
    assert tensor is second
    assert info.shape == (16,)
    del tensor, second
    assert list(live.at([address])) == []


def test_tensors_that_were_frozen_are_hidden_and_the_error_says_so():
    """The process of the tests has frozen what it imported."""
    assert gc.get_freeze_count()
    target = torch.zeros(16)
    with pytest.raises(AccessError, match=r"nor in any other live tensor \(those that gc\.freeze\(\) has"):
        traced(stores_at_address)[(1,)](2**44, target, BLOCK=16)
