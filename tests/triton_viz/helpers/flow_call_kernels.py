# type: ignore
# ruff: noqa: C416, E731, F821, RET504 - odd Python is the point
"""Kernels for testing calls, values and objects. Each program stores one number, at out[4 * program]."""

import contextlib

import triton
import triton.language as tl


@triton.jit
def helper(x):
    if x > 3:
        return x + 40
    y = x * 10
    return y


def calls_helper(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, helper(pid))


def calls_under_mask(out):
    pid = tl.program_id(0)
    x = pid
    if pid > 3:
        x = helper(pid)
    tl.store(out + pid * 4, x)


@triton.jit
def pair_of(x):
    if x > 3:
        return 10, 2
    return 0, 1


def returns_pairs(out):
    pid = tl.program_id(0)
    a, b = pair_of(pid)
    tl.store(out + pid * 4, a + b)


@triton.jit
def search(x):
    for i in range(1, 8):
        if i == 7:
            return i - 1
        if i == x:
            return i
    return 9


def returns_from_loops(out):
    pid = tl.program_id(0)
    found = search(pid)
    tl.store(out + pid * 4, found + (2 if pid == 0 else 0))


@triton.jit
def factorial(n, DEPTH: tl.constexpr):
    if DEPTH == 0:
        return n * 0 + 1
    if n < 2:
        return n * 0 + 1
    return n * factorial(n - 1, DEPTH - 1)


def recursion(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, factorial(pid, 9))


def uses_method_of_language(out):
    pid = tl.program_id(0)
    x = (tl.arange(0, 4) + pid * 0).sum(axis=0).to(tl.int32)
    tl.store(out + pid * 4, x)


def extremes(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, min(max(pid, 2, min(0, 1)), 5))


def python_functions(out, N: tl.constexpr):
    pid = tl.program_id(0)
    n = pid * 0 + N
    x = int(n) + abs(n - 6) + int(bool(n)) + len((1, 2)) + int(float(n) != 3.0)
    tl.store(out + pid * 4, x)


def asserts(out, N: tl.constexpr):
    pid = tl.program_id(0)
    tl.static_assert(N == 4, "N is four")
    assert N == 4
    assert pid < 10, "too many"
    tl.store(out + pid * 4, 1)


def none_or_tensor(out):
    pid = tl.program_id(0)
    x = None
    if pid > 3:
        x = 4
    tl.store(out + pid * 4, 0 if x is None else x)


def two_types(out):
    pid = tl.program_id(0)
    x = 1
    if pid > 3:
        x = 2.5
    tl.store(out + pid * 4, (x * 2).to(tl.int32))


def as_index(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, (5, 6, 7)[pid % 3])


def comprehension_condition(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, len([n for n in (1, 2, 3) if pid > n]))


def comprehension_range(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, len([i for i in range(pid)]))


def element_in_branch(out):
    pid = tl.program_id(0)
    items = [1, 2]
    if pid > 3:
        items[0] = 5
    tl.store(out + pid * 4, items[0])


def undefined(out):
    pid = tl.program_id(0)
    if pid > 100:
        x = 1
    tl.store(out + pid * 4, x)


def block_condition(out):
    if tl.arange(0, 4) > 2:
        tl.store(out, 1)


def raises_inside(out, n):
    pid = tl.program_id(0)
    x = pid
    for i in range(pid):
        if pid > n:
            while x > 0:
                x -= i + 1
                if x < 3:
                    x += 1 // 0


def with_defaults(out, a=5, *, b=2):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, a + b)


def keep(
    *_,
    **__,
):
    """A decorator that takes some lines, and changes nothing."""
    return lambda fn: fn


class Nested:
    @keep(
        1,
        # a comment between
        name="""
text at no indentation
""",
    )
    @staticmethod
    def decorated(out):
        pid = tl.program_id(0)
        if pid > 0:
            tl.store(out + pid * 4, 1)
        else:
            tl.store(out + pid * 4, 0)


decorated = Nested.decorated


def make_closure():
    """A kernel with a closure variable, and a function that changes the variable."""
    number = 3

    def kernel(out):
        pid = tl.program_id(0)
        tl.store(out + pid * 4, number)

    def change(value):
        nonlocal number
        number = value

    return kernel, change


def left_plain(out):
    """Python constructs that are not rewritten: context managers, exceptions, lambdas, comprehensions, ..."""
    pid = tl.program_id(0)
    x = pid * 0
    with contextlib.suppress(KeyError):
        if pid > 3:
            x += 1
        {}["nothing"]
    try:
        x += [10][7]
    except IndexError:
        x += 2
    finally:
        x += 4

    def twice(value):
        return tl.minimum(value, 3) * 2

    match (1, 2):
        case (1, more):
            x += more
    add = lambda value: max(value, 0) + 100
    x = add(x) + sum([min(n, 2) for n in (1, 2, 3)])
    tl.store(out + pid * 4, x + twice(pid) * 0)


@triton.autotune([triton.Config({"N": 3})], key=[])
@triton.heuristics({"M": lambda args: 4})
@triton.jit
def tuned(x, N: tl.constexpr, M: tl.constexpr):
    return x * N + M


def calls_tuned(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, tuned(pid, N=3, M=4))


def reads_global(out):
    pid = tl.program_id(0)
    tl.store(out + pid * 4, DEFINED_LATER * 1 + pid)


A_LAMBDA = lambda out: out
