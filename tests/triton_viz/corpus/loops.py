"""`for`: equal and unequal trip counts, nested, empty, with hints to the compiler."""

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal

I32 = torch.int32


@triton.jit
def sum_of_segment(starts, x, out, BLOCK: tl.constexpr):
    """Ragged rows: unequal trip counts, some zero, with a block carried along."""
    pid = tl.program_id(0)
    first, last = tl.load(starts + pid), tl.load(starts + pid + 1)
    total = tl.zeros([BLOCK], tl.int32)
    for at in range(first, last, BLOCK):
        place = at + tl.arange(0, BLOCK)
        total += tl.load(x + place, mask=place < last, other=0)
    tl.store(out + pid, tl.sum(total, 0))


@triton.jit
def trip_count_of_program(out):
    pid = tl.program_id(0)
    total = 0
    for n in range(pid):
        total += n * n
    tl.store(out + pid, total)


@triton.jit
def steps_and_directions(out, count):
    """Ranges with a start, a stop and a step."""
    pid = tl.program_id(0)
    total = 0
    for n in range(pid, count, 3):
        total = total * 2 + n
    for n in range(count, pid, -2):
        total += n
    for n in tl.range(0, pid):
        total += n * 100
    tl.store(out + pid, total)


@triton.jit
def triangle(out, n):
    """Loops in loops whose counts depend on both."""
    pid = tl.program_id(0)
    total = 0
    for i in range(n):
        for j in range(i, pid):
            total += i * 10 + j
        total += 1
    tl.store(out + pid, total)


@triton.jit
def branch_in_loop(x, out, n, BLOCK: tl.constexpr):
    """Which iterations write is decided by data; the loop variable is used after."""
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    written = 0
    for i in range(n):
        v = tl.load(x + pid * n + i)
        if v > 5:
            tl.store(out + (pid * n + i) * BLOCK + at, v + at)
            written += 1
        elif v == 0:
            tl.store(out + (pid * n + i) * BLOCK + at, -1, mask=at < 2)
    tl.store(x + pid * n, written)


@triton.jit
def unrolled(x, out, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    for n in tl.static_range(DEPTH):
        if n % 2 == 0:
            v = v * 2 + n
        else:
            v = v - n
    for n in tl.static_range(4, 0, -2):
        v += n
    tl.store(out + at, v)


@triton.jit
def pipelined(x, out, n, BLOCK: tl.constexpr):
    """What `tl.range` says to a compiler changes nothing."""
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for i in tl.range(0, n, num_stages=3, loop_unroll_factor=2):
        total += tl.load(x + (pid * n + i) * BLOCK + at)
    for i in tl.range(n, disallow_acc_multi_buffer=True):
        total -= tl.load(x + (pid * n + i) * BLOCK + at) * 0.5
    tl.store(out + pid * BLOCK + at, total)


@triton.jit
def share_rows(x, out, rows, BLOCK: tl.constexpr):
    """Persistent programs: each takes every num_programs-th row."""
    at = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        tl.store(out + row * BLOCK + at, tl.load(x + row * BLOCK + at) + row)


@triton.jit
def moving_pointers(x, out, n, BLOCK: tl.constexpr):
    """Pointers are carried through a loop, and advanced in it."""
    pid = tl.program_id(0)
    source = x + pid * n * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.int32)
    for _ in range(n):
        total = total * 3 + tl.load(source)
        source += BLOCK
    tl.store(out + pid * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def binary_search(table, x, out, n, BLOCK: tl.constexpr):
    """A fixed number of steps on blocks: no divergence, all by `where`."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wanted = tl.load(x + at)
    low = tl.zeros([BLOCK], tl.int32)
    high = tl.zeros([BLOCK], tl.int32) + n
    for _ in range(6):
        middle = (low + high) // 2
        below = tl.load(table + middle, mask=middle < n, other=1 << 30) < wanted
        active = low < high
        low = tl.where(active & below, middle + 1, low)
        high = tl.where(active & ~below, middle, high)
    tl.store(out + at, low)


@triton.jit
def fibonacci(out):
    """Tuple assignment in a loop."""
    pid = tl.program_id(0)
    a, b = 0, 1
    for _ in range(pid):
        a, b = b, a + b
    tl.store(out + pid, a)


@triton.jit
def no_iterations(x, out, n):
    """A loop that never runs leaves its names as they were."""
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    for i in range(n):
        v = v * 0 + i
    while v < -1000:
        v += 1
    tl.store(out + pid, v)


@triton.jit
def left_early_after_loop(x, out, n):
    """Programs that return, between loops that the others still run."""
    pid = tl.program_id(0)
    total = 0
    for i in range(pid % 3):
        total += tl.load(x + i)
    if total > 60:
        tl.store(out + pid, -total)
        return
    for i in range(n):
        total += tl.load(x + i)
    tl.store(out + pid, total)


def ranges(pid: int, count: int = 9) -> int:
    total = 0
    for n in range(pid, count, 3):
        total = total * 2 + n
    return total + sum(range(count, pid, -2)) + sum(range(pid)) * 100


def written(a: Arguments) -> dict[str, torch.Tensor]:
    x, out = a["x"].clone(), a["out"].clone()
    for p, row in enumerate(a["x"].tolist()):
        for i, v in enumerate(row):
            if v > 5:
                out[p, i] = v + torch.arange(4)
            elif v == 0:
                out[p, i, :2] = -1
        x[p, 0] = sum(v > 5 for v in row)
    return {"x": x, "out": out}


def static(x: torch.Tensor) -> torch.Tensor:
    for n in range(5):
        x = x * 2 + n if n % 2 == 0 else x - n
    return x + 6


def folded(a: Arguments) -> dict[str, torch.Tensor]:
    total = torch.zeros(4, 8, dtype=I32)
    for i in range(5):
        total = total * 3 + a["x"][:, i]
    return {"out": total}


def after_loop(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"].tolist()
    sums = [sum(x[: pid % 3]) for pid in range(9)]
    return {"out": torch.tensor([-s if s > 60 else s + sum(x) for s in sums], dtype=I32)}


def fib(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def outs(n: int) -> Callable[[torch.Generator], Arguments]:
    return lambda g: {"out": torch.zeros(n, dtype=I32)}


def by_pid(function: Callable[[int], int]) -> Callable[[Arguments], dict[str, torch.Tensor]]:
    return lambda a: {"out": torch.tensor([function(pid) for pid in range(len(a["out"]))], dtype=I32)}


CASES = [
    Case(
        "ragged_sums",
        sum_of_segment,
        lambda g: {
            "starts": torch.tensor([0, 3, 3, 40, 41, 49, 57], dtype=I32),
            "x": integers(g, -99, 99, 57),
            "out": torch.zeros(6, dtype=I32),
            "BLOCK": 8,
        },
        (6,),
        lambda a: {
            "out": torch.stack([part.sum() for part in a["x"].split(a["starts"].diff().tolist())]).int()
        },
    ),
    Case(
        "range_of_program_id",
        trip_count_of_program,
        outs(9),
        (9,),
        by_pid(lambda p: sum(n * n for n in range(p))),
    ),
    Case(
        "ranges_with_steps", steps_and_directions, lambda g: outs(12)(g) | {"count": 9}, (12,), by_pid(ranges)
    ),
    Case(
        "nested_loops",
        triangle,
        lambda g: outs(7)(g) | {"n": 5},
        (7,),
        by_pid(lambda p: sum(i * 10 + j for i in range(5) for j in range(i, p)) + 5),
    ),
    Case(
        "branch_in_loop",
        branch_in_loop,
        lambda g: {"x": integers(g, 0, 10, 6, 5), "out": torch.zeros(6, 5, 4, dtype=I32), "n": 5, "BLOCK": 4},
        (6,),
        written,
    ),
    Case(
        "static_range",
        unrolled,
        lambda g: {
            "x": integers(g, 0, 10, 3, 8),
            "out": torch.zeros(3, 8, dtype=I32),
            "DEPTH": 5,
            "BLOCK": 8,
        },
        (3,),
        lambda a: {"out": static(a["x"])},
    ),
    Case(
        "range_with_hints",
        pipelined,
        lambda g: {"x": normal(g, 4, 6, 8), "out": torch.zeros(4, 8), "n": 6, "BLOCK": 8},
        (4,),
        lambda a: {"out": a["x"].sum(1) * 0.5},
        rtol=1e-5,
        atol=1e-5,
    ),
    *(
        Case(
            f"persistent_rows_{programs}_programs",
            share_rows,
            lambda g: {"x": normal(g, 10, 8), "out": torch.zeros(10, 8), "rows": 10, "BLOCK": 8},
            (programs,),
            lambda a: {"out": a["x"] + torch.arange(10)[:, None]},
        )
        for programs in (1, 4, 5, 13)
    ),
    Case(
        "pointers_advance_in_a_loop",
        moving_pointers,
        lambda g: {"x": integers(g, 0, 9, 4, 5, 8), "out": torch.zeros(4, 8, dtype=I32), "n": 5, "BLOCK": 8},
        (4,),
        folded,
    ),
    Case(
        "binary_search",
        binary_search,
        lambda g: {
            "table": integers(g, 0, 99, 50).sort().values,
            "x": integers(g, -5, 105, 32),
            "out": torch.zeros(32, dtype=I32),
            "n": 50,
            "BLOCK": 8,
        },
        (4,),
        lambda a: {"out": torch.searchsorted(a["table"], a["x"]).int()},
    ),
    Case("tuple_assignment_in_a_loop", fibonacci, outs(12), (12,), by_pid(fib)),
    Case(
        "loop_without_iterations",
        no_iterations,
        lambda g: {"x": integers(g, 0, 9, 5), "out": torch.zeros(5, dtype=I32), "n": 0},
        (5,),
        lambda a: {"out": a["x"]},
    ),
    Case(
        "return_between_loops",
        left_early_after_loop,
        lambda g: {"x": integers(g, 20, 50, 4), "out": torch.zeros(9, dtype=I32), "n": 4},
        (9,),
        after_loop,
    ),
]
