"""Atomics: collisions within a program and across programs.

Programs take their turns in the order of their ids, in every mode: what an atomic returns is compared too.
"""

from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal

I32, I64, F32 = torch.int32, torch.int64, torch.float32


@triton.jit
def count_programs(counter, out):
    """All programs touch one address."""
    pid = tl.program_id(0)
    ticket = tl.atomic_add(counter, 1)
    tl.store(out + ticket, pid)


@triton.jit
def add_histogram(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.atomic_add(bins + tl.load(x + at, mask=mask, other=0), 1, mask=mask)


@triton.jit
def scatter_add(index, x, out, COLUMNS: tl.constexpr):
    """Rows added to rows that several programs share."""
    row = tl.program_id(0)
    at = tl.arange(0, COLUMNS)
    target = tl.load(index + row)
    tl.atomic_add(out + target * COLUMNS + at, tl.load(x + row * COLUMNS + at), sem="relaxed")


@triton.jit
def combine(index, x, out, OP: tl.constexpr, BLOCK: tl.constexpr):
    """Many values are added to few elements; the result does not depend on the order."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    where, v = out + tl.load(index + at), tl.load(x + at)
    if OP == "add":
        tl.atomic_add(where, v)
    elif OP == "max":
        tl.atomic_max(where, v)
    elif OP == "min":
        tl.atomic_min(where, v)
    elif OP == "and":
        tl.atomic_and(where, v)
    elif OP == "or":
        tl.atomic_or(where, v)
    else:
        tl.static_assert(OP == "xor")
        tl.atomic_xor(where, v)


@triton.jit
def what_was_there(cell, out, OP: tl.constexpr):
    """Each program's atomic gives what the programs before it left."""
    pid = tl.program_id(0)
    if OP == "xchg":
        old = tl.atomic_xchg(cell, pid + 1)
    elif OP == "max":
        old = tl.atomic_max(cell, (pid * 7) % 5)
    elif OP == "xor":
        old = tl.atomic_xor(cell, 1 << pid)
    else:
        old = tl.atomic_add(cell, pid, sem="acquire", scope="gpu")
    tl.store(out + pid, old)


@triton.jit
def blocks_of_what_was_there(x, cells, out, BLOCK: tl.constexpr):
    """Each element of a block has its own address, which all programs share."""
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + pid * BLOCK + at)
    old = tl.atomic_add(cells + at, v, mask=v != 3)
    tl.store(out + pid * BLOCK + at, old, mask=v != 3)


@triton.jit
def swap_if(cells, wanted, out, BLOCK: tl.constexpr):
    """Compare and swap on blocks: the first program that finds what it wants takes it."""
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    old = tl.atomic_cas(cells + at, tl.load(wanted + pid * BLOCK + at), tl.full([BLOCK], 100, tl.int32) + pid)
    tl.store(out + pid * BLOCK + at, old)


@triton.jit
def one_winner(lock, out):
    pid = tl.program_id(0)
    if tl.atomic_cas(lock, 0, pid + 1) == 0:
        tl.store(out, pid + 10)


@triton.jit
def every_slot(counter, slots, BLOCK: tl.constexpr):
    """A block of increments of one address: 0, 1, 2 and so on come back, each once."""
    here = counter + tl.zeros([BLOCK], tl.int32)
    tickets = tl.atomic_add(here, 1)
    tl.store(slots + tickets, tl.program_id(0) + 1)


@triton.jit
def atomics_in_branches(x, odd, even):
    """Only programs that go there count."""
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    if v % 2 == 0:
        tl.atomic_add(even, v)
    else:
        for _ in range(v):
            tl.atomic_add(odd, 1)


def combined(function: np.ufunc) -> Callable[[Arguments], dict[str, torch.Tensor]]:
    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        out = a["out"].numpy().copy()
        function.at(out, a["index"].numpy(), a["x"].numpy())
        return {"out": torch.from_numpy(out)}

    return expected


def combine_case(op: str, function: np.ufunc, dtype: torch.dtype) -> Case:
    def arguments(generator: torch.Generator) -> Arguments:
        index = integers(generator, 0, 5, 64)
        if dtype.is_floating_point:
            x = integers(generator, -40, 40, 64).to(dtype) / 4  # sums are exact
            out = torch.full((5,), 0.25, dtype=dtype)
        else:
            low = 0 if str(dtype).startswith("torch.uint") else -(2**31)
            x = integers(generator, low, 2**31, 64, dtype=I64).to(dtype)
            out = integers(generator, max(low, -99), 99, 5, dtype=I64).to(dtype)
        return {"index": index, "x": x, "out": out, "OP": op, "BLOCK": 16}

    name = f"atomic_{op}_{str(dtype).removeprefix('torch.')}"
    return Case(name, combine, arguments, (4,), combined(function))


def in_turn(function: Callable[[int, int], int]) -> Callable[[Arguments], dict[str, torch.Tensor]]:
    """The oracle of `what_was_there`: from what is there and who comes, what is there next."""

    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        cell, out = int(a["cell"][0]), []
        for pid in range(len(a["out"])):
            out.append(cell)
            cell = function(cell, pid)
        return {"cell": torch.tensor([cell], dtype=I32), "out": torch.tensor(out, dtype=I32)}

    return expected


def turns(op: str) -> Callable[[torch.Generator], Arguments]:
    return lambda g: {"cell": torch.zeros(1, dtype=I32), "out": torch.zeros(9, dtype=I32), "OP": op}


def block_turns(a: Arguments) -> dict[str, torch.Tensor]:
    added = torch.where(a["x"] == 3, 0, a["x"])
    before = added.cumsum(0) - added + a["cells"]
    return {
        "cells": (a["cells"] + added.sum(0)).int(),
        "out": torch.where(a["x"] == 3, -1, before).int(),
    }


def swapped(a: Arguments) -> dict[str, torch.Tensor]:
    cells, out = a["cells"].clone(), []
    for pid, wanted in enumerate(a["wanted"]):
        out.append(cells)
        cells = torch.where(cells == wanted, 100 + pid, cells).int()
    return {"cells": cells, "out": torch.stack(out)}


def scattered(a: Arguments) -> dict[str, torch.Tensor]:
    return {"out": a["out"].double().index_add(0, a["index"].long(), a["x"].double()).to(a["out"].dtype)}


CASES = [
    Case(
        "atomic_counter_gives_tickets_in_order",
        count_programs,
        lambda g: {"counter": torch.zeros(1, dtype=I32), "out": torch.full((11,), -1, dtype=I32)},
        (11,),
        lambda a: {"counter": torch.tensor([11], dtype=I32), "out": torch.arange(11, dtype=I32)},
    ),
    Case(
        "atomic_histogram",
        add_histogram,
        lambda g: {"x": integers(g, 0, 6, 128), "bins": torch.zeros(6, dtype=I32), "n": 117, "BLOCK": 16},
        (8,),
        lambda a: {"bins": torch.bincount(a["x"][:117], minlength=6).int()},
    ),
    *(
        Case(
            f"atomic_scatter_add_{str(dtype).removeprefix('torch.')}",
            scatter_add,
            lambda g, dtype=dtype: {
                "index": integers(g, 0, 3, 10),
                "x": integers(g, -8, 8, 10, 8).to(dtype) / 4,
                "out": torch.zeros(3, 8, dtype=dtype),
                "COLUMNS": 8,
            },
            (10,),
            scattered,
        )
        for dtype in (F32, torch.float64, torch.float16, torch.bfloat16)
    ),
    Case(
        "atomic_scatter_add_that_rounds",
        scatter_add,
        lambda g: {
            "index": integers(g, 0, 3, 10),
            "x": normal(g, 10, 8),
            "out": torch.zeros(3, 8),
            "COLUMNS": 8,
        },
        (10,),
        scattered,
        rtol=1e-5,
        atol=1e-5,
        reorders=True,
    ),
    *(
        combine_case("add", np.add, dtype)
        for dtype in (I32, I64, torch.uint32, torch.uint64, F32, torch.float64)
    ),
    *(
        combine_case("max", np.maximum, dtype)
        for dtype in (I32, I64, torch.uint32, torch.uint64, F32, torch.float64)
    ),
    *(
        combine_case("min", np.minimum, dtype)
        for dtype in (I32, I64, torch.uint32, torch.uint64, F32, torch.float64)
    ),
    *(combine_case("and", np.bitwise_and, dtype) for dtype in (I32, I64)),
    *(combine_case("or", np.bitwise_or, dtype) for dtype in (I32, I64)),
    *(combine_case("xor", np.bitwise_xor, dtype) for dtype in (I32, torch.uint64)),
    Case("atomic_xchg_in_turn", what_was_there, turns("xchg"), (9,), in_turn(lambda cell, pid: pid + 1)),
    Case(
        "atomic_max_in_turn",
        what_was_there,
        turns("max"),
        (9,),
        in_turn(lambda cell, pid: max(cell, pid * 7 % 5)),
    ),
    Case(
        "atomic_xor_in_turn", what_was_there, turns("xor"), (9,), in_turn(lambda cell, pid: cell ^ (1 << pid))
    ),
    Case("atomic_add_in_turn", what_was_there, turns("add"), (9,), in_turn(lambda cell, pid: cell + pid)),
    Case(
        "atomic_blocks_in_turn",
        blocks_of_what_was_there,
        lambda g: {
            "x": integers(g, 0, 6, 5, 8),
            "cells": integers(g, 0, 9, 8),
            "out": torch.full((5, 8), -1, dtype=I32),
            "BLOCK": 8,
        },
        (5,),
        block_turns,
    ),
    Case(
        "atomic_cas_on_blocks",
        swap_if,
        lambda g: {
            "cells": integers(g, 0, 3, 8),
            "wanted": integers(g, 0, 3, 5, 8),
            "out": torch.zeros(5, 8, dtype=I32),
            "BLOCK": 8,
        },
        (5,),
        swapped,
    ),
    Case(
        "atomic_cas_has_one_winner",
        one_winner,
        lambda g: {"lock": torch.zeros(1, dtype=I32), "out": torch.zeros(1, dtype=I32)},
        (7,),
        lambda a: {"lock": torch.tensor([1], dtype=I32), "out": torch.tensor([10], dtype=I32)},
    ),
    Case(
        "atomic_block_on_one_address",
        every_slot,
        lambda g: {"counter": torch.zeros(1, dtype=I32), "slots": torch.zeros(32, dtype=I32), "BLOCK": 8},
        (4,),
        lambda a: {
            "counter": torch.tensor([32], dtype=I32),
            "slots": torch.arange(32, dtype=I32) // 8 + 1,
        },
    ),
    Case(
        "atomics_in_branches_and_loops",
        atomics_in_branches,
        lambda g: {
            "x": integers(g, 0, 8, 12),
            "odd": torch.zeros(1, dtype=I32),
            "even": torch.zeros(1, dtype=I32),
        },
        (12,),
        lambda a: {
            "odd": a["x"][a["x"] % 2 == 1].sum().int().reshape(1),
            "even": a["x"][a["x"] % 2 == 0].sum().int().reshape(1),
        },
    ),
]
