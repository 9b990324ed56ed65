"""Run a case with the tracer, in either mode, and compare what two runs recorded."""

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

import triton_viz
from tests.triton_viz.corpus.case import Arguments, Case, launched_with

Program = tuple[int, int, int]
LOOKED_AT = 20
"""Of how many programs of a grid the records are compared."""


def launch(case: Case) -> tuple[Arguments, Any]:
    """Run a case on fresh arguments. Returns them as the kernel left them, and the launch."""
    arguments = case.fresh()
    triton_viz.trace("tracer")(case.kernel)[case.grid](**launched_with(arguments))
    return arguments, triton_viz.launches[-1]


def launch_one_at_a_time(case: Case) -> tuple[Arguments, Any]:
    """The same, program by program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triton_viz.config, "vectorized", False)
        return launch(case)


def some_programs(grid: Program) -> Iterator[Program]:
    """The first and the last program of a grid and some between, all if there are few."""
    every = list(itertools.product(*map(range, grid)))
    step = -(-len(every) // LOOKED_AT) or 1
    yield from dict.fromkeys(every[::step] + every[-1:])


def difference(one: Any, other: Any) -> str:
    """Where the records of two launches differ first; empty if they do not."""
    for program in some_programs(one.grid):
        ours, theirs = one.at(program), other.at(program)
        for n, (a, b) in enumerate(itertools.zip_longest(ours, theirs)):
            if not same_records(a, b):
                return f"program {program}, record {n}:\n{a}\nis not\n{b}"
    return ""


def same_records(one: Any, other: Any) -> bool:
    """Whether two records are of one type and alike in every field, arrays to the last element."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, msgspec.Struct):
        names = (field.name for field in msgspec.structs.fields(one))
        return all(same_records(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(same_records(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
