"""Programs that wait for each other or share work: locks, tickets, flags and queues.

Programs take their turns in the order of their ids, in every mode, so every result is compared.
"""

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal

I32 = torch.int32


@triton.jit
def split_matmul_under_a_lock(
    a, b, c, locks, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr
):
    tile = tl.program_id(0)
    part = tl.program_id(1)
    across = tl.cdiv(N, BN)
    row = tile // across * BM + tl.arange(0, BM)
    col = tile % across * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(tl.cdiv(K, BK * PARTS)):
        k = (i * PARTS + part) * BK + tl.arange(0, BK)
        x = tl.load(a + row[:, None] * K + k[None, :], (row[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + col[None, :], (k[:, None] < K) & (col[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    at = c + row[:, None] * N + col[None, :]
    inside = (row[:, None] < M) & (col[None, :] < N)
    while tl.atomic_cas(locks + tile, 0, 1) == 1:
        pass
    tl.store(at, tl.load(at, inside) + acc, inside)
    tl.debug_barrier()
    tl.atomic_xchg(locks + tile, 0)


def split_arguments(g: torch.Generator) -> Arguments:
    return {
        "a": normal(g, 40, 70), "b": normal(g, 70, 30), "c": torch.zeros(40, 30),
        "locks": torch.zeros(6, dtype=torch.int32), "M": 40, "N": 30, "K": 70,
        "BM": 16, "BN": 16, "BK": 16, "PARTS": 3,
    }  # fmt: skip


@triton.jit
def streamed_sums(x, out, partial, ready, size, per_program, BLOCK: tl.constexpr):
    """Rows of `size` blocks, cut into equal shares: who begins a row waits for those who go on with it."""
    pid = tl.program_id(0)
    at = pid * per_program
    end = at + per_program
    while at < end:
        row = at // size
        stop = tl.minimum(end, (row + 1) * size)
        acc = 0.0
        for block in range(at, stop):
            acc += tl.sum(tl.load(x + block * BLOCK + tl.arange(0, BLOCK)))
        if at % size != 0:
            tl.store(partial + pid, acc)
            tl.debug_barrier()
            tl.atomic_xchg(ready + pid, 1)
        else:
            reached = stop
            other = pid + 1
            while reached < (row + 1) * size:
                while tl.atomic_cas(ready + other, 1, 1) != 1:
                    pass
                acc += tl.load(partial + other)
                reached += per_program
                other += 1
            tl.store(out + row, acc)
        at = stop


def streamed_arguments(g: torch.Generator) -> Arguments:
    return {
        "x": normal(g, 3 * 7, 8), "out": torch.zeros(3), "partial": torch.zeros(7),
        "ready": torch.zeros(7, dtype=torch.int32), "size": 7, "per_program": 3, "BLOCK": 8,
    }  # fmt: skip


@triton.jit
def last_one_sums(x, out, partial, arrived, size, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(partial + pid, tl.sum(tl.load(x + at, at < size, other=0.0)))
    tl.debug_barrier()
    if tl.atomic_add(arrived, 1) == tl.num_programs(0) - 1:
        acc = 0.0
        for i in range(tl.num_programs(0)):
            acc += tl.load(partial + i, volatile=True)
        tl.store(out, acc)
        tl.store(arrived, 0)


@triton.jit
def in_turn(out, turn):
    pid = tl.program_id(0)
    while tl.atomic_add(turn, 0) != pid:
        pass
    tl.store(out + pid, tl.load(turn) * 10)
    tl.atomic_add(turn, 1)


@triton.jit
def locked_update(lock, value, x, BLOCK: tl.constexpr):
    """A spin lock around a read, a change and a write."""
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mine = tl.load(x + pid * BLOCK + at)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(value + at, tl.load(value + at) * 2 + mine)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_ticket_sums(x, partials, counter, out, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    """The program that draws the last ticket adds up what the others left."""
    pid = tl.program_id(0)
    tl.store(partials + pid, tl.sum(tl.load(x + pid * BLOCK + tl.arange(0, BLOCK)), 0))
    tl.debug_barrier()
    if tl.atomic_add(counter, 1, sem="acq_rel") == PROGRAMS - 1:
        tl.store(out, tl.sum(tl.load(partials + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def chained_sum(x, flags, totals, BLOCK: tl.constexpr):
    """A running sum over programs: each waits for the one before."""
    pid = tl.program_id(0)
    mine = tl.sum(tl.load(x + pid * BLOCK + tl.arange(0, BLOCK)), 0)
    if pid > 0:
        while tl.atomic_add(flags + pid - 1, 0) == 0:
            pass
        mine += tl.load(totals + pid - 1)
    tl.store(totals + pid, mine)
    tl.debug_barrier()
    tl.atomic_xchg(flags + pid, 1)


@triton.jit
def chained_by_volatile(flags, totals):
    pid = tl.program_id(0)
    mine = pid + 1
    if pid > 0:
        while tl.load(flags + pid - 1, volatile=True) == 0:
            pass
        mine = mine * 2 + tl.load(totals + pid - 1)
    tl.store(totals + pid, mine)
    tl.debug_barrier()
    tl.store(flags + pid, 1)


@triton.jit
def chained_by_poll(flags, totals):
    pid = tl.program_id(0)
    mine = pid + 1
    if pid > 0:
        tl.atomic_poll(flags + pid - 1, 1)
        mine = mine * 2 + tl.atomic_load(totals + pid - 1)
    tl.atomic_store(totals + pid, mine)
    tl.atomic_store(flags + pid, 1)


@triton.jit
def work_queue(head, jobs, out, n):
    """Programs take jobs until there are none: who took which is not compared, that all are done is."""
    job = tl.atomic_add(head, 1)
    while job < n:
        v = tl.load(jobs + job)
        tl.store(out + job, v * v)
        job = tl.atomic_add(head, 1)


def doubled_in_turn(a: Arguments) -> dict[str, torch.Tensor]:
    value = a["value"].clone()
    for mine in a["x"]:
        value = value * 2 + mine
    return {"value": value}


def chain(n: int) -> list[int]:
    totals = [1]
    for pid in range(1, n):
        totals.append((pid + 1) * 2 + totals[-1])
    return totals


def chain_case(name: str, kernel: object) -> Case:
    return Case(
        name,
        kernel,
        lambda g: {"flags": torch.zeros(6, dtype=I32), "totals": torch.zeros(6, dtype=I32)},
        (6,),
        lambda a: {"flags": torch.ones(6, dtype=I32), "totals": torch.tensor(chain(6), dtype=I32)},
    )


CASES = [
    Case(
        "split_matmul_under_a_lock",
        split_matmul_under_a_lock,
        split_arguments,
        (6, 3),
        lambda a: {"c": a["a"] @ a["b"]},
        1e-4,
        1e-4,
        reorders=True,
    ),
    Case(
        "streamed_sums",
        streamed_sums,
        streamed_arguments,
        (7,),
        lambda a: {"out": a["x"].reshape(3, -1).sum(1)},
        1e-5,
        1e-5,
        reorders=True,
        scratch=("partial", "ready"),
    ),
    Case(
        "last_one_sums",
        last_one_sums,
        lambda g: {
            "x": normal(g, 33),
            "out": torch.zeros(1),
            "partial": torch.zeros(9),
            "arrived": torch.zeros(1, dtype=torch.int32),
            "size": 33,
            "BLOCK": 4,
        },
        (9,),
        lambda a: {"out": a["x"].sum()[None]},
        1e-5,
        1e-5,
        scratch=("partial",),
    ),
    Case(
        "in_turn",
        in_turn,
        lambda g: {"out": torch.zeros(5, dtype=torch.int32), "turn": torch.zeros(1, dtype=torch.int32)},
        (5,),
        lambda a: {
            "out": torch.arange(5, dtype=torch.int32) * 10,
            "turn": torch.tensor([5], dtype=torch.int32),
        },
    ),
    Case(
        "spin_lock",
        locked_update,
        lambda g: {
            "lock": torch.zeros(1, dtype=I32),
            "value": integers(g, 0, 9, 4),
            "x": integers(g, 0, 9, 6, 4),
            "BLOCK": 4,
        },
        (6,),
        doubled_in_turn,
    ),
    Case(
        "last_program_sums",
        last_ticket_sums,
        lambda g: {
            "x": integers(g, 0, 99, 8, 16),
            "partials": torch.zeros(8, dtype=I32),
            "counter": torch.zeros(1, dtype=I32),
            "out": torch.zeros(1, dtype=I32),
            "BLOCK": 16,
            "PROGRAMS": 8,
        },
        (8,),
        lambda a: {
            "partials": a["x"].sum(1).int(),
            "counter": torch.tensor([8], dtype=I32),
            "out": a["x"].sum().int().reshape(1),
        },
    ),
    Case(
        "running_sum_over_programs",
        chained_sum,
        lambda g: {
            "x": integers(g, 0, 99, 6, 8),
            "flags": torch.zeros(6, dtype=I32),
            "totals": torch.zeros(6, dtype=I32),
            "BLOCK": 8,
        },
        (6,),
        lambda a: {"flags": torch.ones(6, dtype=I32), "totals": a["x"].sum(1).cumsum(0).int()},
    ),
    chain_case("waiting_on_a_volatile_load", chained_by_volatile),
    *([chain_case("waiting_on_a_poll", chained_by_poll)] if hasattr(tl, "atomic_poll") else []),
    Case(
        "work_queue",
        work_queue,
        lambda g: {
            "head": torch.zeros(1, dtype=I32),
            "jobs": integers(g, 0, 99, 13),
            "out": torch.zeros(13, dtype=I32),
            "n": 13,
        },
        (4,),
        lambda a: {"head": torch.tensor([17], dtype=I32), "out": a["jobs"] ** 2},
    ),
]
