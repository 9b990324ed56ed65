"""`if` and early `return`: programs of a grid that go different ways."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, blocks, integers, normal, per_program, scalars

I32 = torch.int32


@triton.jit
def if_on_program(x, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    if pid % 2 == 0:
        v = v * 10
    tl.store(out + at, v)


@triton.jit
def three_ways(x, out, BLOCK: tl.constexpr):
    """Each way assigns the same names different values, and one of them loads."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    scale = 1
    if pid % 3 == 0:
        v = v + 100
        scale = 2
    elif pid % 3 == 1:
        v = v - tl.load(x + pid)
        scale = pid
    else:
        v = -v
    tl.store(out + at, v * scale)


@triton.jit
def ways_that_store(x, left, right, BLOCK: tl.constexpr):
    """Only the way taken leaves anything behind."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    if tl.sum(v, 0) > 0:
        tl.store(left + at, v)
    else:
        tl.store(right + at, v, mask=v < 0)


@triton.jit
def nested_ifs(x, out):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    r = 0
    if v > 0:
        if v > 50:
            r = 2
            if v % 2 == 0:
                r = 3
        else:
            r = 1
    else:
        if v < -50:
            r = -2
        else:
            r = -1
    tl.store(out + pid, r)


@triton.jit
def leave_early(x, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + 1)


@triton.jit
def leave_on_data(flags, x, out, left, BLOCK: tl.constexpr):
    """Two ways out, one after a store."""
    pid = tl.program_id(0)
    flag = tl.load(flags + pid)
    if flag == 0:
        return
    tl.store(left + pid, flag)
    if flag == 1:
        return
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * flag)


@triton.jit
def grade(v):
    """Different values returned from different branches."""
    if v > 50:
        return v * 2
    else:
        return v - 1000


@triton.jit
def grade_early(v, low):
    if v < low:
        return low
    return v


@triton.jit
def pair_of(v):
    if v % 2 == 0:
        return v, v + 1
    else:
        return v - 1, v


@triton.jit
def values_from_branches(x, out):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    even, odd = pair_of(v)
    tl.store(out + pid * 4, grade(v))
    tl.store(out + pid * 4 + 1, grade_early(v, 10))
    tl.store(out + pid * 4 + 2, even)
    tl.store(out + pid * 4 + 3, grade(grade_early(odd, 60)))


@triton.jit
def defined_in_both(x, out, BLOCK: tl.constexpr):
    """Names first seen inside the branches, used after."""
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if pid < 3:
        block = tl.load(x + at)
        scalar = 5
    else:
        block = tl.load(x + at + pid) * 2
        scalar = pid
    tl.store(out + pid * BLOCK + at, block + scalar)


@triton.jit
def pointers_by_branch(x, y, out, BLOCK: tl.constexpr):
    """Which tensor is read is decided at run time."""
    pid = tl.program_id(0)
    if pid % 2 == 0:
        source = x
    else:
        source = y
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(source + at))


@triton.jit
def if_with_reduction(x, out, BLOCK: tl.constexpr):
    """A collective op inside a branch that few programs take."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    r = v
    if tl.max(v, 0) > 90:
        r = tl.cumsum(v, 0)
        if tl.min(v, 0) < 5:
            r = tl.sort(r, descending=True)
    tl.store(out + at, r)


@triton.jit
def same_address(out, first):
    """Programs that write to one element; those that write store the same value."""
    pid = tl.program_id(0)
    if pid > 2:
        tl.store(first, 42)
    tl.store(out + pid, pid)


def row(pid: int, values: list[int], xs: list[int]) -> list[int]:
    if pid % 3 == 0:
        return [(v + 100) * 2 for v in values]
    if pid % 3 == 1:
        return [(v - xs[pid]) * pid for v in values]
    return [-v for v in values]


def stored(a: Arguments) -> dict[str, torch.Tensor]:
    positive = a["x"].sum(1, True) > 0
    negative = ~positive & (a["x"] < 0)
    return {"left": torch.where(positive, a["x"], -9.0), "right": torch.where(negative, a["x"], -9.0)}


def nested(pid: int, v: int) -> int:
    if v > 0:
        return 1 if v <= 50 else 3 if v % 2 == 0 else 2
    return -2 if v < -50 else -1


def graded(v: int) -> int:
    return v * 2 if v > 50 else v - 1000


def branches(pid: int, v: int) -> list[int]:
    even = v - v % 2
    return [graded(v), max(v, 10), even, graded(max(even + 1, 60))]


def reduced_in_branch(a: Arguments) -> dict[str, torch.Tensor]:
    out = a["x"].clone()
    for values in out:
        high, low = int(values.max()), int(values.min())
        if high > 90:
            values[:] = values.cumsum(0)
        if high > 90 and low < 5:
            values[:] = values.sort(descending=True).values
    return {"out": out}


def data_left(a: Arguments) -> dict[str, torch.Tensor]:
    flags = a["flags"]
    return {
        "left": torch.where(flags == 0, -1, flags),
        "out": torch.where((flags > 1)[:, None], a["x"] * flags[:, None], 0),
    }


CASES = [
    Case(
        "if_on_program_id",
        if_on_program,
        blocks(-9, 9),
        (7,),
        lambda a: {"out": torch.where((torch.arange(7) % 2 == 0)[:, None], a["x"] * 10, a["x"])},
    ),
    Case(
        "if_elif_else",
        three_ways,
        blocks(-99, 99),
        (7,),
        lambda a: {
            "out": torch.tensor(
                [row(p, v, a["x"].reshape(-1).tolist()) for p, v in enumerate(a["x"].tolist())], dtype=I32
            )
        },
    ),
    Case(
        "branches_that_store",
        ways_that_store,
        lambda g: {
            "x": normal(g, 9, 8),
            "left": torch.full((9, 8), -9.0),
            "right": torch.full((9, 8), -9.0),
            "BLOCK": 8,
        },
        (9,),
        stored,
    ),
    Case("nested_ifs", nested_ifs, scalars(-99, 100, 24), (24,), per_program(nested, "x")),
    *(
        Case(
            f"early_return_after_{n}",
            leave_early,
            lambda g, n=n: {"x": normal(g, 6, 8), "out": torch.zeros(6, 8), "n": n, "BLOCK": 8},
            (6,),
            lambda a: {"out": torch.where((torch.arange(6) < a["n"])[:, None], a["x"] + 1, 0.0)},
        )
        for n in (0, 4, 6)
    ),
    Case(
        "early_return_on_data",
        leave_on_data,
        lambda g: {
            "flags": integers(g, 0, 4, 9),
            "x": integers(g, 1, 9, 9, 4),
            "out": torch.zeros(9, 4, dtype=I32),
            "left": torch.full((9,), -1, dtype=I32),
            "BLOCK": 4,
        },
        (9,),
        data_left,
    ),
    Case(
        "values_returned_from_branches",
        values_from_branches,
        scalars(0, 99, 12, 4),
        (12,),
        per_program(branches, "x"),
    ),
    Case(
        "names_defined_in_branches",
        defined_in_both,
        lambda g: {"x": integers(g, 0, 99, 32), "out": torch.zeros(7, 8, dtype=I32), "BLOCK": 8},
        (7,),
        lambda a: {
            "out": torch.stack([a["x"][:8] + 5 if p < 3 else a["x"][p : p + 8] * 2 + p for p in range(7)])
        },
    ),
    Case(
        "pointer_chosen_by_branch",
        pointers_by_branch,
        lambda g: {"x": normal(g, 6, 8), "y": normal(g, 6, 8), "out": torch.zeros(6, 8), "BLOCK": 8},
        (6,),
        lambda a: {"out": torch.where((torch.arange(6) % 2 == 0)[:, None], a["x"], a["y"])},
    ),
    Case("collectives_in_a_branch", if_with_reduction, blocks(0, 99, 12), (12,), reduced_in_branch),
    Case(
        "store_to_one_address_in_a_branch",
        same_address,
        lambda g: {"out": torch.zeros(5, dtype=I32), "first": torch.zeros(1, dtype=I32)},
        (5,),
        lambda a: {"out": torch.arange(5, dtype=I32), "first": torch.tensor([42], dtype=I32)},
    ),
    Case(
        "store_in_a_branch_no_program_takes",
        same_address,
        lambda g: {"out": torch.zeros(3, dtype=I32), "first": torch.zeros(1, dtype=I32)},
        (3,),
        lambda a: {"out": torch.arange(3, dtype=I32)},
    ),
]
