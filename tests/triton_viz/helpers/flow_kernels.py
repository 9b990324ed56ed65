# type: ignore
# ruff: noqa: F841 - odd Python is the point
"""Kernels for testing control flow. Each program stores one number, at out[4 * program]."""

import triton
import triton.language as tl


def if_else(out):
    pid = tl.program_id(0)
    if pid % 2 == 0:
        x = pid
    else:
        x = 10 + pid // 2 * 3
    tl.store(out + pid * 4, x)


def elif_chain(out):
    pid = tl.program_id(0)
    x = pid
    if pid == 0:
        x += 100
    elif pid == 1:
        x += 200
    elif pid == 2:
        x += 300
    else:
        x = 303
    tl.store(out + pid * 4, x)


def nested_ifs(out):
    pid = tl.program_id(0)
    x = pid
    if pid % 2 == 0:
        if pid % 4 == 2:
            x += 100
    else:
        if pid >= 0:
            x += 10
        else:
            x = 0
    tl.store(out + pid * 4, x)


def no_else(out):
    pid = tl.program_id(0)
    x = pid
    if pid > 3:
        x += 100
    tl.store(out + pid * 4, x)


def defined_in_one_branch(out):
    pid = tl.program_id(0)
    r = 5
    if pid > 3:
        y = 7
        r = y
    tl.store(out + pid * 4, r)


def uniform_if(out):
    pid = tl.program_id(0)
    if pid >= 0:
        x = 3
    else:
        x = 4
    tl.store(out + pid * 4, x)


def several_targets(out):
    pid = tl.program_id(0)
    a = b = c = 1
    if pid > 3:
        a = b = 5
        c += 1
    tl.store(out + pid * 4, a + b + c)


def swap(out):
    pid = tl.program_id(0)
    a, (b, c) = 1, (2, 3)
    if pid > 3:
        a, b = b, a
    tl.store(out + pid * 4, a)


def starred(out):
    pid = tl.program_id(0)
    a, *rest = 1, 2, 3
    if pid > 3:
        a, *rest = 10, 4, 6
    tl.store(out + pid * 4, rest[0] + (rest[1] if pid < 4 else a))


def walrus(out):
    pid = tl.program_id(0)
    y = 0
    if pid > 3 and (y := pid * 2) > 0:
        y = y + 0
    if pid < 4:
        y = 0
    tl.store(out + pid * 4, y)


def tuples(out):
    pid = tl.program_id(0)
    pair = (pid * 0 + 1, 2)
    if pid > 3:
        pair = (pid * 0 + 30, 2)
    tl.store(out + pid * 4, pair[0])


def pointers(out):
    pid = tl.program_id(0)
    at = out + pid * 4
    tl.store(at, 0)
    if pid > 3:
        tl.store(at, 5)
        at = at + 1
        tl.store(at, 1)
        tl.store(at - 1, tl.load(at))
    tl.store(at + 1, 9)


def static_in_branches(out):
    pid = tl.program_id(0)
    x = 0
    if pid > 3:
        N: tl.constexpr = 32
        x = tl.sum(tl.arange(0, N) * 0 + 1)
    else:
        M: tl.constexpr = 8
        x = M + 0
    tl.store(out + pid * 4, x)


def announced_static(out):
    pid = tl.program_id(0)
    N: tl.constexpr
    N = 32
    tl.store(out + pid * 4, N if isinstance(N, int) else 0)


def block_if(out):
    pid = tl.program_id(0)
    at = tl.arange(0, 4)
    v = at
    if pid > 3:
        v = at * 10
    tl.store(out + pid * 4 + at, v)


def ternary(out):
    pid = tl.program_id(0)
    x = pid if pid % 2 == 0 else -pid
    tl.store(out + pid * 4, x)


@triton.jit
def square(x):
    return x * x


def ternary_of_calls(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, square(pid) if pid < 5 else 0 - pid)


def nested_ternary(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, 1 if pid == 0 else (2 if pid == 1 else 3))


def and_or(out):
    pid = tl.program_id(0)
    x = 0
    if (pid > 0 and pid < 4) or pid > 5:
        x = 1
    tl.store(out + pid * 4, x)


def not_of(out):
    pid = tl.program_id(0)
    x = 0
    if not pid:
        x = 1
    tl.store(out + pid * 4, x)


def chained(out):
    pid = tl.program_id(0)
    x = 0
    if 2 <= pid < 5:
        x = 1
    tl.store(out + pid * 4, x)


def and_of_numbers(out):
    pid = tl.program_id(0)
    x = 0
    if pid and pid // 2:
        x = 1
    tl.store(out + pid * 4, x)


def fails(x):
    raise RuntimeError("must not be called")


def short_circuit(out, FLAG: tl.constexpr):
    pid = tl.program_id(0)
    x = 0
    if FLAG or (FLAG and fails(pid)):
        x = 1
    tl.store(out + pid * 4, x)


@triton.jit
def says(prefix, value):
    tl.device_print("seen", value)
    return value > 3


def both_sides_run(out):
    pid = tl.program_id(0)
    x = pid > 100 and says("seen", pid)
    tl.store(out + pid * 4, x.to(tl.int32))


@triton.jit
def small(x):
    print("small", x)
    return x


@triton.jit
def large(x):
    print("large", x)
    return x


def ternary_prints(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, small(pid) if pid < 4 else large(pid))


def prints_in_branches(out):
    pid = tl.program_id(0)
    if pid % 2 == 1:
        print("odd", pid)
    else:
        tl.device_print("even", pid)
    print("all", pid)


def early_return(out):
    pid = tl.program_id(0)
    if pid > 3:
        return
    tl.store(out + pid * 4, pid)


def uniform_return(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, 5)
    for i in range(pid + 1, pid + 5):
        if i >= 0:
            return
    tl.store(out + pid * 4, 6)


def return_in_loop(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(pid):
        if i == 2:
            return
        x += 1
    tl.store(out + pid * 4, x)
