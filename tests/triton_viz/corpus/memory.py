"""Loads and stores: masks, fills, scalars, views, grids of three axes, writing what was read."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal

I32 = torch.int32


@triton.jit
def double_in_place(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def write_read_write(x, out, BLOCK: tl.constexpr):
    """A load after a store to the same element returns the stored value."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(x + at)
    tl.store(x + at, before + 1)
    tl.debug_barrier()
    after = tl.load(x + at)
    tl.store(x + at, after * 10)
    tl.store(out + at, before - after)


@triton.jit
def reverse_in_place(x, BLOCK: tl.constexpr):
    """Everything is read before anything is written."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * BLOCK + at)
    tl.store(x + row * BLOCK + (BLOCK - 1 - at), v)


@triton.jit
def fill_values(x, out, n, BLOCK: tl.constexpr):
    """`other`: a number, a block, a scalar of the run."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=-1.0)
    b = tl.load(x + at, mask=at < n, other=at.to(tl.float32))
    c = tl.load(x + at, mask=at < n, other=pid * 1.5)
    tl.store(out + at, a * 10000 + b * 100 + c)


@triton.jit
def scalar_masks(x, out, n, BLOCK: tl.constexpr):
    """A mask that is one value for the whole block, true for some programs only."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=pid < n, other=7)
    tl.store(out + at, v + 1, mask=pid % 2 == 0)


@triton.jit
def scalar_memory(x, out, n):
    pid = tl.program_id(0)
    v = tl.load(x + pid, mask=pid < n, other=100)
    w = tl.load(x)
    tl.store(out + pid * 2, v + w)
    tl.store(out + pid * 2 + 1, v - w, mask=pid > 0)


@triton.jit
def same_value_to_all(out, BLOCK: tl.constexpr):
    """A constant stored to a block, and a block of one program repeated over rows by broadcasting."""
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(out + pid * 2 * BLOCK + at, 5)
    grid = tl.arange(0, 2)[:, None] * 0 + at[None, :]
    tl.store(out + pid * 2 * BLOCK + BLOCK + grid, (grid + pid) * 1)


@triton.jit
def no_program_needs_this(x, out, BLOCK: tl.constexpr):
    """Masked off everywhere, at addresses that do not exist."""
    at = tl.arange(0, BLOCK)
    v = tl.load(x + 1000000000 + at, mask=at < 0, other=3)
    tl.store(out - 1000000000 + at, v, mask=at > 100)
    tl.store(out + tl.program_id(0) * BLOCK + at, v)


@triton.jit
def index_of_grid(out, sizes):
    """Where each program stands in a grid of three axes, and how large that is."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(axis=2)
    ny, nz = tl.num_programs(1), tl.num_programs(2)
    tl.store(out + (x * ny + y) * nz + z, x * 100 + y * 10 + z)
    tl.store(sizes, tl.num_programs(0))
    tl.store(sizes + 1, ny)
    tl.store(sizes + 2, nz)


@triton.jit
def copy_by_strides(x, out, rows, columns, sr, sc, tr, tc, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A tile of any view to a tile of any other."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (i < rows) & (j < columns)
    tl.store(out + i * tr + j * tc, tl.load(x + i * sr + j * sc, mask=mask) + 1, mask=mask)


@triton.jit
def stencil(x, out, n, BLOCK: tl.constexpr):
    """Neighbours, across the borders of programs and of the tensor."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + at - 1, mask=(at > 0) & (at <= n), other=0.0)
    here = tl.load(x + at, mask=at < n, other=0.0)
    right = tl.load(x + at + 1, mask=at + 1 < n, other=0.0)
    tl.store(out + at, left + 2 * here + right, mask=at < n)


@triton.jit
def gather_rows(table, index, out, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """An embedding: addresses come from memory."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    which = tl.load(index + rows)
    at = tl.arange(0, COLUMNS)
    v = tl.load(table + which[:, None] * COLUMNS + at[None, :])
    tl.store(out + rows[:, None] * COLUMNS + at[None, :], v)


@triton.jit
def hints(x, out, n, BLOCK: tl.constexpr):
    """What is said to the compiler changes no value."""
    pid = tl.program_id(0)
    tl.assume(n > 0)
    start = tl.multiple_of(pid * BLOCK, BLOCK)
    at = start + tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    at = tl.max_constancy(at, 1)
    v = tl.load(x + at, mask=at < n, cache_modifier=".ca", eviction_policy="evict_last", volatile=False)
    tl.store(out + at, v, mask=at < n, cache_modifier=".cg", eviction_policy="evict_first")


@triton.jit
def flags_in_memory(x, flags, out, BLOCK: tl.constexpr):
    """Bytes that are booleans: stored from a comparison, loaded as a mask."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    given = tl.load(flags + at)
    tl.store(out + at, tl.load(x + at, mask=given, other=-1))
    tl.store(flags + at, (tl.load(x + at) > 5) & given)


@triton.jit
def overlapping_tiles(x, out, BLOCK: tl.constexpr):
    """Tiles of programs overlap in what they read."""
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + pid + at)
    tl.store(out + pid * BLOCK + at, v)


def view_case(name: str, view: object) -> Case:
    """A copy from a view of a larger tensor, through its strides."""

    def arguments(generator: torch.Generator) -> Arguments:
        whole = integers(generator, 0, 999, 24, 30)
        x = view(whole)
        rows, columns = x.shape
        out = torch.full((columns, rows), -1, dtype=I32)
        (sr, sc), (tc, tr) = x.stride(), out.stride()
        strides = {"sr": sr, "sc": sc, "tr": tr, "tc": tc}
        return {"x": x, "out": out, "rows": rows, "columns": columns, **strides, "ROWS": 8, "COLUMNS": 4}

    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        return {"out": a["x"].T + 1}

    return Case(f"view_{name}", copy_by_strides, arguments, (3, 8), expected)


def into_view(a: Arguments) -> dict[str, torch.Tensor]:
    whole = a["_whole"].clone()
    whole[1::2, 3:13] = a["x"] + 1
    return {"_whole": whole, "out": whole[1::2, 3:13]}


def into_view_arguments(generator: torch.Generator) -> Arguments:
    whole = integers(generator, 0, 999, 24, 30)
    out = whole[1::2, 3:13]
    x = integers(generator, 0, 9, 12, 10)
    (sr, sc), (tr, tc) = x.stride(), out.stride()
    sizes = {"rows": 12, "columns": 10, "sr": sr, "sc": sc, "tr": tr, "tc": tc, "ROWS": 8, "COLUMNS": 4}
    return {"x": x, "out": out, "_whole": whole, **sizes}


def fills(a: Arguments) -> dict[str, torch.Tensor]:
    at = torch.arange(32)
    inside = at < 21
    parts = [torch.where(inside, a["x"], other) for other in (torch.tensor(-1.0), at.float(), at // 8 * 1.5)]
    return {"out": parts[0] * 10000 + parts[1] * 100 + parts[2]}


def grid_expected(a: Arguments) -> dict[str, torch.Tensor]:
    x, y, z = a["out"].shape
    index = torch.arange(x)[:, None, None] * 100 + torch.arange(y)[None, :, None] * 10 + torch.arange(z)
    return {"out": index.int(), "sizes": torch.tensor([x, y, z], dtype=I32)}


def stencil_expected(a: Arguments) -> dict[str, torch.Tensor]:
    padded = torch.nn.functional.pad(a["x"], (1, 1))
    return {"out": padded[:-2] + 2 * padded[1:-1] + padded[2:]}


CASES = [
    Case(
        "in_place",
        double_in_place,
        lambda g: {"x": normal(g, 40), "n": 37, "BLOCK": 8},
        (5,),
        lambda a: {"x": torch.where(torch.arange(40) < 37, a["x"] * 2, a["x"])},
    ),
    Case(
        "load_sees_the_store_before_it",
        write_read_write,
        lambda g: {"x": integers(g, 0, 9, 32), "out": torch.zeros(32, dtype=I32), "BLOCK": 8},
        (4,),
        lambda a: {"x": (a["x"] + 1) * 10, "out": torch.full((32,), -1, dtype=I32)},
    ),
    Case(
        "reverse_in_place",
        reverse_in_place,
        lambda g: {"x": normal(g, 4, 16), "BLOCK": 16},
        (4,),
        lambda a: {"x": a["x"].flip(1)},
    ),
    Case(
        "load_other",
        fill_values,
        lambda g: {"x": integers(g, 0, 9, 32).float(), "out": torch.zeros(32), "n": 21, "BLOCK": 8},
        (4,),
        fills,
    ),
    Case(
        "scalar_masks_of_blocks",
        scalar_masks,
        lambda g: {"x": integers(g, 0, 9, 5, 8), "out": torch.zeros(5, 8, dtype=I32), "n": 3, "BLOCK": 8},
        (5,),
        lambda a: {
            "out": torch.where(
                (torch.arange(5) % 2 == 0)[:, None],
                torch.where((torch.arange(5) < 3)[:, None], a["x"], 7) + 1,
                0,
            ).int()
        },
    ),
    Case(
        "scalar_loads_and_stores",
        scalar_memory,
        lambda g: {"x": integers(g, 1, 9, 6), "out": torch.zeros(6, 2, dtype=I32), "n": 4},
        (6,),
        lambda a: {
            "out": torch.tensor(
                [
                    [v + a["x"][0], (v - a["x"][0]) if p > 0 else 0]
                    for p, v in enumerate([*a["x"][:4].tolist(), 100, 100])
                ],
                dtype=I32,
            )
        },
    ),
    Case(
        "broadcast_stores",
        same_value_to_all,
        lambda g: {"out": torch.zeros(3, 2, 8, dtype=I32), "BLOCK": 8},
        (3,),
        lambda a: {
            "out": torch.stack(
                [torch.stack([torch.full((8,), 5), torch.arange(8) + p]) for p in range(3)]
            ).int()
        },
    ),
    Case(
        "masked_off_addresses_may_be_wild",
        no_program_needs_this,
        lambda g: {"x": integers(g, 0, 9, 8), "out": torch.zeros(2, 8, dtype=I32), "BLOCK": 8},
        (2,),
        lambda a: {"out": torch.full((2, 8), 3, dtype=I32)},
    ),
    *(
        Case(
            f"grid_{'_'.join(map(str, grid))}",
            index_of_grid,
            lambda g, grid=grid: {
                "out": torch.zeros(*(*grid, 1, 1)[:3], dtype=I32),
                "sizes": torch.zeros(3, dtype=I32),
            },
            grid,
            grid_expected,
        )
        for grid in ((2, 3, 4), (5, 2), (7,), (1, 1, 6), (1, 5, 1))
    ),
    Case(
        "empty_grid",
        double_in_place,
        lambda g: {"x": normal(g, 40), "n": 40, "BLOCK": 8},
        (0,),
        lambda a: {},
    ),
    Case(
        "empty_axis_of_a_grid",
        double_in_place,
        lambda g: {"x": normal(g, 40), "n": 40, "BLOCK": 8},
        (5, 0, 2),
        lambda a: {},
    ),
    view_case("whole", lambda t: t),
    view_case("transposed", lambda t: t.T[:24, :24]),
    view_case("sliced", lambda t: t[2:20, 5:25]),
    view_case("stepped", lambda t: t[::2, 1::3]),
    view_case("expanded", lambda t: t[3:4].expand(20, 30)),
    view_case("one_column_expanded", lambda t: t[:, 7:8].expand(24, 16)),
    view_case("sliced_of_transposed", lambda t: t.T[4:22:2, ::2]),
    Case("view_written_to", copy_by_strides, into_view_arguments, (2, 3), into_view),
    Case(
        "stencil",
        stencil,
        lambda g: {"x": integers(g, 0, 99, 45).float(), "out": torch.zeros(45), "n": 45, "BLOCK": 8},
        (6,),
        stencil_expected,
    ),
    Case(
        "gather_rows",
        gather_rows,
        lambda g: {
            "table": normal(g, 10, 8),
            "index": integers(g, 0, 10, 16, dtype=torch.int64),
            "out": torch.zeros(16, 8),
            "COLUMNS": 8,
            "BLOCK": 4,
        },
        (4,),
        lambda a: {"out": a["table"][a["index"]]},
    ),
    Case(
        "hints_to_the_compiler",
        hints,
        lambda g: {"x": normal(g, 32), "out": torch.zeros(32), "n": 30, "BLOCK": 8},
        (4,),
        lambda a: {"out": torch.where(torch.arange(32) < 30, a["x"], 0.0)},
    ),
    Case(
        "booleans_in_memory",
        flags_in_memory,
        lambda g: {
            "x": integers(g, 0, 12, 32),
            "flags": integers(g, 0, 2, 32).bool(),
            "out": torch.zeros(32, dtype=I32),
            "BLOCK": 8,
        },
        (4,),
        lambda a: {"out": torch.where(a["flags"], a["x"], -1), "flags": (a["x"] > 5) & a["flags"]},
    ),
    Case(
        "tiles_that_overlap",
        overlapping_tiles,
        lambda g: {"x": normal(g, 12), "out": torch.zeros(5, 8), "BLOCK": 8},
        (5,),
        lambda a: {"out": a["x"].unfold(0, 8, 1)},
    ),
]
