# type: ignore
# ruff: noqa: B007, RET508 - odd Python is the point
"""Kernels for testing loops. Each program stores one number, at out[4 * program]."""

import triton.language as tl


def equal_counts(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(pid, pid + 4):
        x += i
    tl.store(out + pid * 4, x)


def unequal_counts(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(pid):
        x += i
    tl.store(out + pid * 4, x)


def counts_down(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(pid, 0, -1):
        x += i
    tl.store(out + pid * 4, x)


def python_range(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(5):
        x += i
    tl.store(out + pid * 4, x)


def static_range(out):
    pid = tl.program_id(0)
    x = 0
    for i in tl.static_range(1, 4):
        SIZE: tl.constexpr = 2**i
        x += tl.sum(tl.zeros((SIZE,), tl.int32) + i) * 2 - (8 if i == 3 else 0)
    tl.store(out + pid * 4, x)


def tl_range(out):
    pid = tl.program_id(0)
    x = 0
    for _ in tl.range(0, pid, step=2, num_stages=2):
        x += 2
    tl.store(out + pid * 4, x)


def over_a_tuple(out):
    pid = tl.program_id(0)
    x = pid
    for a in (1, 2, 3):
        x += a
    tl.store(out + pid * 4, x)


def loop_variable_after(out):
    pid = tl.program_id(0)
    i = -1
    for i in range(pid):
        pass
    tl.store(out + pid * 4, i)


def loop_variable_as_tensor(out):
    pid = tl.program_id(0)
    x = pid * 0
    for i in range(3):
        x += i.to(tl.int64).to(tl.int32)
    tl.store(out + pid * 4, x)


def loop_variable_divided(out):
    pid = tl.program_id(0)
    x = pid * 0
    for i in range(-3, 3):
        x += (i // 2) * 10 + i % 2
    tl.store(out + pid * 4, x)


def loop_variable_wraps_around(out):
    pid = tl.program_id(0)
    x = pid * 0
    for i in tl.range(3):
        x = (i * 1500000000 < 0).to(tl.int32)
    tl.store(out + pid * 4, x)


def static_loop_variable_divided(out):
    pid = tl.program_id(0)
    x = pid * 0
    for i in tl.static_range(-3, 3):
        x += (i // 2) * 10 + i % 2
    tl.store(out + pid * 4, x)


def breaks(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(pid):
        if i == 4:
            break
        x += i
    tl.store(out + pid * 4, x)


def uniform_break(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(10):
        if i == 3:
            break
        x += i
    tl.store(out + pid * 4, x)


def continues(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(pid):
        if i % 2 == 1:
            continue
        x += i
    tl.store(out + pid * 4, x)


def break_and_continue(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(8):
        if i >= pid:
            break
        elif i % 2 == 1:
            continue
        if i == 6:
            break
        x += i
    tl.store(out + pid * 4, x)


def for_else(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(6):
        if i == 5 - pid // 4 * 2 and pid > 3:
            x = 2
            break
    else:
        x = 1
    tl.store(out + pid * 4, x)


def while_else(out):
    pid = tl.program_id(0)
    x = pid
    while x < 100:
        if pid > 3:
            x = 7
            break
        x += 100
    else:
        x += 0
    tl.store(out + pid * 4, x)


def whiles(out):
    pid = tl.program_id(0)
    x = 0
    left = pid
    while left > 0:
        x += left
        left -= 1
    tl.store(out + pid * 4, x)


def while_true(out):
    pid = tl.program_id(0)
    x = 0
    left = pid
    while True:
        if left == 0:
            break
        x += left
        left -= 1
    tl.store(out + pid * 4, x)


def while_walrus(out):
    pid = tl.program_id(0)
    x = 0
    left = pid + 1
    while (left := left - 1) > 0:
        x += left
    tl.store(out + pid * 4, x + left)


def while_condition(out):
    pid = tl.program_id(0)
    x = 0
    left = pid
    while tl.condition(left > 0, disable_licm=True):
        x += left
        left -= 1
    tl.store(out + pid * 4, x)


def collatz(out):
    pid = tl.program_id(0)
    x = pid
    steps = 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    tl.store(out + pid * 4, steps)


def nested_loops(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(pid):
        for _ in range(i):
            x += i
    tl.store(out + pid * 4, x)


def inner_break(out):
    pid = tl.program_id(0)
    x = 0
    for i in range(pid):
        j = 0
        while j <= i:
            if j == 3:
                break
            j += 1
            x += 1
    tl.store(out + pid * 4, x)


def loop_in_branch(out):
    pid = tl.program_id(0)
    x = pid
    if pid > 3:
        x = 0
        for i in range(pid):
            x += i
    tl.store(out + pid * 4, x)


def wide_range(out, n):
    pid = tl.program_id(0)
    x = n * 0
    for i in range(n, n + 2):
        x += i + pid
    tl.store(out + pid, x)


def spin_lock(out, lock):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + tl.program_id(0))
    tl.atomic_cas(lock, 1, 0)


def polls(out, flag):
    while True:
        if tl.load(flag, volatile=True) == 0:
            break
    tl.store(out, 1)


def bounded_spin(out, lock):
    for _ in range(100):
        if tl.atomic_cas(lock, 0, 1) == 0:
            tl.store(out + tl.program_id(0), 1)
            break


def float_range(out):
    for i in range(tl.program_id(0) * 1.5):
        tl.store(out, i)
