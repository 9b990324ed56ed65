"""`while`: trip counts that data decides, each program its own."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, per_program

I32 = torch.int32


@triton.jit
def collatz(x, out):
    """How many steps to 1: every program takes its own number of them."""
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    steps = 0
    while v != 1:
        if v % 2 == 0:
            v = v // 2
        else:
            v = v * 3 + 1
        steps += 1
    tl.store(out + pid, steps)


@triton.jit
def greatest_divisor(x, y, out):
    pid = tl.program_id(0)
    a, b = tl.load(x + pid), tl.load(y + pid)
    while b > 0:
        a, b = b, a % b
    tl.store(out + pid, a)


@triton.jit
def while_in_for(x, out, n):
    pid = tl.program_id(0)
    total = 0
    for i in range(n):
        v = tl.load(x + pid * n + i)
        while v > 3:
            v = v // 2
            total += i
        total += v
    tl.store(out + pid, total)


@triton.jit
def walk_list(heads, following, values, out):
    """A linked list: the next address is what was loaded."""
    pid = tl.program_id(0)
    at = tl.load(heads + pid)
    total = 0
    while at >= 0:
        total = total * 2 + tl.load(values + at)
        at = tl.load(following + at)
    tl.store(out + pid, total)


@triton.jit
def newton(x, out, BLOCK: tl.constexpr):
    """Until the whole block has converged: programs stop after different counts."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    root = v
    error = tl.max(tl.abs(root * root - v), 0)
    while error > 1e-4 * tl.max(v, 0):
        root = 0.5 * (root + v / root)
        error = tl.max(tl.abs(root * root - v), 0)
    tl.store(out + at, root)


def steps(pid: int, v: int) -> int:
    count = 0
    while v != 1:
        v = v // 2 if v % 2 == 0 else v * 3 + 1
        count += 1
    return count


def divisor(pid: int, a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def halvings(a: Arguments) -> dict[str, torch.Tensor]:
    out = []
    for row in a["x"].tolist():
        total = 0
        for i, v in enumerate(row):
            while v > 3:
                v //= 2
                total += i
            total += v
        out.append(total)
    return {"out": torch.tensor(out, dtype=I32)}


def listed(a: Arguments) -> dict[str, torch.Tensor]:
    following, values = a["following"].tolist(), a["values"].tolist()
    out = []
    for at in a["heads"].tolist():
        total = 0
        while at >= 0:
            total = total * 2 + values[at]
            at = following[at]
        out.append(total)
    return {"out": torch.tensor(out, dtype=I32)}


LISTS = torch.tensor([3, -1, 5, 1, 2, 7, 4, -1], dtype=I32)  # 0-3-1, 6-4-2-5-7


CASES = [
    Case(
        "while_collatz",
        collatz,
        lambda g: {"x": integers(g, 1, 60, 16), "out": torch.zeros(16, dtype=I32)},
        (16,),
        per_program(steps, "x"),
    ),
    Case(
        "while_greatest_divisor",
        greatest_divisor,
        lambda g: {
            "x": integers(g, 0, 99, 16),
            "y": integers(g, 0, 99, 16),
            "out": torch.zeros(16, dtype=I32),
        },
        (16,),
        per_program(divisor, "x", "y"),
    ),
    Case(
        "while_in_for",
        while_in_for,
        lambda g: {"x": integers(g, 0, 99, 7, 5), "out": torch.zeros(7, dtype=I32), "n": 5},
        (7,),
        halvings,
    ),
    Case(
        "linked_lists",
        walk_list,
        lambda g: {
            "heads": torch.tensor([0, 6, -1, 7, 5, 1], dtype=I32),
            "following": LISTS.clone(),
            "values": integers(g, 0, 9, 8),
            "out": torch.zeros(6, dtype=I32),
        },
        (6,),
        listed,
    ),
    Case(
        "while_until_converged",
        newton,
        lambda g: {
            "x": torch.rand(6, 8, generator=g) * torch.tensor([1, 10, 1e3, 1e4, 5, 1e5])[:, None] + 0.5,
            "out": torch.zeros(6, 8),
            "BLOCK": 8,
        },
        (6,),
        lambda a: {"out": a["x"].sqrt()},
        rtol=2e-2,
        atol=2e-2,
    ),
]
