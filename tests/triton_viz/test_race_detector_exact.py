"""The race detector agrees with a brute-force comparison of all pairs of accesses to each element."""

import inspect
import itertools
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st

import triton_viz
from triton_viz.core.data import Issue


@triton.jit
def by_tables(reads, writes, adds, pairs, x, wide, out, N: tl.constexpr):
    """Accesses the elements in its tables; negative entries are masked off."""
    pid = tl.program_id(0)
    at = tl.arange(0, N)
    r, w, a = tl.load(reads + pid * N + at), tl.load(writes + pid * N + at), tl.load(adds + pid * N + at)
    seen = tl.load(x + r, mask=r >= 0, other=0)  # read
    tl.store(x + w, pid, mask=w >= 0)  # write
    tl.atomic_add(x + a, 1, mask=a >= 0)  # add
    p = tl.load(pairs + pid * N + at)
    tl.atomic_add(wide + p, 1, mask=p >= 0)  # add to a pair
    tl.store(out + pid * N + at, seen)


@triton.jit
def by_strides(
    x,
    y,
    step_m,
    step_n,
    row,
    column,
    limit,
    back,
    M: tl.constexpr,
    N: tl.constexpr,
    INT8: tl.constexpr,
):
    """Each program of a two-dimensional grid reads a line, possibly of smaller elements, and writes a
    tile."""
    m, n = tl.program_id(0), tl.program_id(1)
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    here = y + (m * step_m + n * back) * (4 if INT8 else 1) + tl.arange(0, M)
    tl.load(here)  # read
    tl.store(x + m * step_m + n * step_n + i * row + j * column, m * 7 + n, mask=j < limit)  # write


def lines(kernel: Any) -> dict[int, str]:
    text, first = inspect.getsourcelines(kernel.fn)
    return {first + n: line.rsplit("# ", 1)[1].strip() for n, line in enumerate(text) if "  # " in line}


def found_by_us(kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any]) -> dict[frozenset[str], Issue]:
    triton_viz.trace("race_detector")(kernel)[grid](**arguments)
    names = lines(kernel)
    issues = [record for record in triton_viz.launches.pop().records if isinstance(record, Issue)]
    return {frozenset(names[path[-1].line] for path in (i.call_path, i.other_path)): i for i in issues}


Touches = dict[tuple[str, int], set[int]]
"""For each op and each program, the bytes that it accessed."""


def by_force(touches: Touches) -> dict[frozenset[str], set[frozenset[int]]]:
    """For each pair of ops that race, the pairs of programs."""
    races: dict[frozenset[str], set[frozenset[int]]] = {}
    for ((one, p), mine), ((other, q), theirs) in itertools.combinations(touches.items(), 2):
        allowed = {one, other} in ({"read"}, {"add"}, {"add to a pair"})
        if p != q and not allowed and mine & theirs:
            races.setdefault(frozenset((one, other)), set()).add(frozenset((p, q)))
    return races


def assert_same(found: dict[frozenset[str], Issue], expected: Any, place: Any) -> None:
    assert set(found) == set(expected)
    for ops, issue in found.items():
        assert frozenset((place(issue.program), place(issue.others[0]))) in expected[ops]


@given(st.data(), st.integers(2, 5), st.sampled_from([1, 2, 4]), st.booleans())
def test_any_touches_race_where_brute_force_says(data: st.DataObject, programs: int, n: int, alone: bool):
    def table() -> torch.Tensor:
        cells = st.lists(st.integers(-4, 11), min_size=programs * n, max_size=programs * n)
        return torch.tensor(data.draw(cells), dtype=torch.int32).reshape(programs, n)

    reads, writes, adds, pairs = table(), table(), table(), table() // 2
    touches: Touches = {
        (op, p): {int(cell) for cell in row if cell >= 0}
        for op, cells in (("read", reads), ("write", writes), ("add", adds))
        for p, row in enumerate(cells.tolist())
    }
    touches |= {
        ("add to a pair", p): {2 * int(pair) + half for pair in row if pair >= 0 for half in (0, 1)}
        for p, row in enumerate(pairs.tolist())
    }
    wide = torch.zeros(6, dtype=torch.int64)
    arguments = {"reads": reads, "writes": writes, "adds": adds, "pairs": pairs, "N": n}
    arguments |= {"x": wide.view(torch.int32), "wide": wide}
    arguments |= {"out": torch.zeros(programs, n, dtype=torch.int32)}
    triton_viz.config.vectorized = not alone
    try:
        found = found_by_us(by_tables, (programs,), arguments)
    finally:
        triton_viz.config.vectorized = True
    assert_same(found, by_force(touches), lambda program: program[0])


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(*[st.integers(0, 24)] * 4),
    st.integers(0, 4),
    st.integers(-8, 8),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
)
def test_tiles_race_where_brute_force_says(
    grid: tuple[int, int],
    steps: tuple[int, int, int, int],
    limit: int,
    back: int,
    m: int,
    n: int,
    small: bool,
):
    step_m, step_n, row, column = steps
    memory = torch.zeros(1024, dtype=torch.int32)
    x, size = memory[128:], 1 if small else 4
    y = x.view(torch.int8) if small else x
    touches: Touches = {}
    for p, q in itertools.product(*map(range, grid)):
        tile = {
            p * step_m + q * step_n + i * row + j * column for i in range(m) for j in range(n) if j < limit
        }
        start = (p * step_m + q * back) * 4
        touches["write", p * grid[1] + q] = {4 * at + b for at in tile for b in range(4)}
        touches["read", p * grid[1] + q] = {start + k * size + b for k in range(m) for b in range(size)}
    arguments = {"x": x, "y": y, "step_m": step_m, "step_n": step_n, "row": row, "column": column}
    arguments |= {"limit": limit, "back": back, "M": m, "N": n, "INT8": small}
    found = found_by_us(by_strides, grid, arguments)
    assert_same(found, by_force(touches), lambda program: program[0] * grid[1] + program[1])
    assert np.all([len(issue.others) == 1 for issue in found.values()])
