"""Programs that wait for each other: locks, tickets and flags, held well and badly."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.catalogue.entry import Bug, Entry, first_axis

I32 = torch.int32


@triton.jit
def under_a_lock(lock, total, x):
    mine = tl.load(x + tl.program_id(0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) * 2 + mine)
    tl.atomic_xchg(lock, 0)


@triton.jit
def under_an_exchanged_lock(lock, total, x):
    mine = tl.load(x + tl.program_id(0))
    while tl.atomic_xchg(lock, 1) == 1:
        pass
    tl.store(total, tl.load(total) * 2 + mine)
    tl.atomic_xchg(lock, 0)


@triton.jit
def under_two_locks(lock, total, x):
    """Odd and even programs take different locks for the same thing."""
    pid = tl.program_id(0)
    mine = tl.load(x + pid)
    while tl.atomic_cas(lock + pid % 2, 0, 1) == 1:
        pass
    before = tl.load(total)  # BUG
    tl.store(total, before + mine)  # BUG
    tl.atomic_xchg(lock + pid % 2, 0)


@triton.jit
def a_lock_for_each(lock, total, x):
    """Odd and even programs take different locks for different things."""
    pid = tl.program_id(0)
    mine = tl.load(x + pid)
    while tl.atomic_cas(lock + pid % 2, 0, 1) == 1:
        pass
    tl.store(total + pid % 2, tl.load(total + pid % 2) + mine)
    tl.atomic_xchg(lock + pid % 2, 0)


@triton.jit
def opened_too_early(lock, total, x):
    mine = tl.load(x + tl.program_id(0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    before = tl.load(total)  # BUG
    tl.atomic_xchg(lock, 0)
    tl.store(total, before + mine)  # BUG


@triton.jit
def closed_too_late(lock, total, x):
    mine = tl.load(x + tl.program_id(0))
    before = tl.load(total)  # BUG
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, before + mine)  # BUG
    tl.atomic_xchg(lock, 0)


@triton.jit
def relaxed_lock(lock, total, x):
    """The lock is taken in no order with what it guards."""
    mine = tl.load(x + tl.program_id(0))
    while tl.atomic_cas(lock, 0, 1, sem="relaxed") == 1:
        pass
    before = tl.load(total)  # BUG
    tl.store(total, before + mine)  # BUG
    tl.atomic_xchg(lock, 0, sem="relaxed")


@triton.jit
def last_one_sums(x, parts, counter, out, PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(parts + pid, tl.load(x + pid) * 2)
    if tl.atomic_add(counter, 1) == PROGRAMS - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def last_one_sums_relaxed(x, parts, counter, out, PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(parts + pid, tl.load(x + pid) * 2)  # BUG
    if tl.atomic_add(counter, 1, sem="relaxed") == PROGRAMS - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, PROGRAMS)), 0))  # BUG


@triton.jit
def last_one_sums_by_number(x, parts, counter, out, PROGRAMS: tl.constexpr):
    """The last by number, who need not be the last to come."""
    pid = tl.program_id(0)
    tl.store(parts + pid, tl.load(x + pid) * 2)  # BUG
    tl.atomic_add(counter, 1)
    if pid == PROGRAMS - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, PROGRAMS)), 0))  # BUG


@triton.jit
def between_two_counts(counter, total, x):
    """Counting before and after is no lock: no program reads the count."""
    pid = tl.program_id(0)
    mine = tl.load(x + pid)
    tl.atomic_add(counter, 1)
    before = tl.load(total)  # BUG
    tl.store(total, before + mine)  # BUG
    tl.atomic_add(counter, 1)


@triton.jit
def each_after_the_one_before(flags, totals):
    pid = tl.program_id(0)
    mine = pid + 1
    if pid > 0:
        while tl.atomic_add(flags + pid - 1, 0) == 0:
            pass
        mine += tl.load(totals + pid - 1)
    tl.store(totals + pid, mine)
    tl.atomic_xchg(flags + pid, 1)


@triton.jit
def each_after_all_before(flags, totals, out):
    """Waits for the one before only, who has waited for the one before that: the first is long done."""
    pid = tl.program_id(0)
    tl.store(totals + pid, pid + 1)
    if pid > 0:
        while tl.atomic_add(flags + pid - 1, 0) == 0:
            pass
        tl.store(out + pid, tl.load(totals))
    tl.atomic_xchg(flags + pid, 1)


@triton.jit
def after_all_others(flags, totals, out):
    """The last one waits for each of the others, who do not wait for each other."""
    pid = tl.program_id(0)
    tl.store(totals + pid, pid + 1)
    tl.atomic_xchg(flags + pid, 1)
    if pid == 3:
        for other in range(3):
            while tl.atomic_add(flags + other, 0) == 0:
                pass
        tl.store(out, tl.sum(tl.load(totals + tl.arange(0, 4)), 0))


@triton.jit
def raised_too_early(flags, totals):
    """The flag goes up before the total is there."""
    pid = tl.program_id(0)
    mine = pid + 1
    if pid > 0:
        while tl.atomic_add(flags + pid - 1, 0) == 0:
            pass
        mine += tl.load(totals + pid - 1)  # BUG
    tl.atomic_xchg(flags + pid, 1)
    tl.store(totals + pid, mine)  # BUG


@triton.jit
def after_a_volatile_flag(flags, totals):
    pid = tl.program_id(0)
    mine = pid + 1
    if pid > 0:
        while tl.load(flags + pid - 1, volatile=True) == 0:
            pass
        mine += tl.load(totals + pid - 1)
    tl.store(totals + pid, mine)
    tl.store(flags + pid, 1)


@triton.jit
def without_waiting(flags, totals):
    pid = tl.program_id(0)
    mine = pid + 1
    if pid > 0:
        mine += tl.load(totals + pid - 1)  # BUG
    tl.store(totals + pid, mine)  # BUG
    tl.atomic_xchg(flags + pid, 1)


@triton.jit
def tickets(counter, out):
    """Who comes first stores first: no two have one ticket."""
    ticket = tl.atomic_add(counter, 1)
    tl.store(out + ticket, tl.program_id(0))


@triton.jit
def tickets_that_wrap(counter, out, SLOTS: tl.constexpr):
    ticket = tl.atomic_add(counter, 1, sem="relaxed")
    tl.store(out + ticket % SLOTS, tl.program_id(0))  # BUG


def locked(locks: int = 1, totals: int = 1):
    return lambda: {
        "lock": torch.zeros(locks, dtype=I32),
        "total": torch.zeros(totals, dtype=I32),
        "x": torch.arange(1, 5, dtype=I32),
    }


def parted():
    return {
        "x": torch.randn(4),
        "parts": torch.zeros(4),
        "counter": torch.zeros(1, dtype=I32),
        "out": torch.zeros(1),
        "PROGRAMS": 4,
    }


def counted():
    return {
        "counter": torch.zeros(1, dtype=I32),
        "total": torch.zeros(1, dtype=I32),
        "x": torch.arange(1, 5, dtype=I32),
    }


def flagged(*more: str):
    return lambda: {name: torch.zeros(4, dtype=I32) for name in ("flags", "totals", *more)}


FOUR = first_axis(0, 1, 2, 3)

ENTRIES = [
    Entry("under_a_lock", under_a_lock, locked(), (4,)),
    Entry("under_an_exchanged_lock", under_an_exchanged_lock, locked(), (4,)),
    Entry("under_two_locks", under_two_locks, locked(2), (4,), Bug("race", "total", FOUR)),
    Entry("a_lock_for_each", a_lock_for_each, locked(2, 2), (4,)),
    Entry("lock_opened_too_early", opened_too_early, locked(), (4,), Bug("race", "total", FOUR)),
    Entry("lock_closed_too_late", closed_too_late, locked(), (4,), Bug("race", "total", FOUR)),
    Entry("relaxed_lock", relaxed_lock, locked(), (4,), Bug("race", "total", FOUR)),
    Entry("last_one_sums", last_one_sums, parted, (4,)),
    Entry("last_one_sums_relaxed", last_one_sums_relaxed, parted, (4,), Bug("race", "parts", FOUR)),
    Entry("last_one_sums_by_number", last_one_sums_by_number, parted, (4,), Bug("race", "parts", FOUR)),
    Entry("between_two_counts", between_two_counts, counted, (4,), Bug("race", "total", FOUR)),
    Entry("each_after_the_one_before", each_after_the_one_before, flagged(), (4,)),
    Entry("each_after_all_before", each_after_all_before, flagged("out"), (4,)),
    Entry("after_all_others", after_all_others, flagged("out"), (4,)),
    Entry("flag_raised_too_early", raised_too_early, flagged(), (4,), Bug("race", "totals", FOUR)),
    Entry("after_a_volatile_flag", after_a_volatile_flag, flagged(), (4,)),
    Entry("without_waiting", without_waiting, flagged(), (4,), Bug("race", "totals", FOUR)),
    Entry(
        "tickets",
        tickets,
        lambda: {"counter": torch.zeros(1, dtype=I32), "out": torch.zeros(4, dtype=I32)},
        (4,),
    ),
    Entry(
        "tickets_that_wrap",
        tickets_that_wrap,
        lambda: {"counter": torch.zeros(1, dtype=I32), "out": torch.zeros(3, dtype=I32), "SLOTS": 3},
        (4,),
        Bug("race", "out", first_axis(0, 3)),
    ),
]
