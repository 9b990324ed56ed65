"""Generated kernels: hypothesis writes them as text.

Arithmetic on blocks and scalars of several types, gathers, masked stores, reductions, atomics whose order
does not matter, calls, early returns, and `if`, `for` and `while` on program ids and on loaded values.
Variables keep their types, as compiled Triton wants it.

    TRITON_INTERPRET=1 python -m tests.triton_viz.corpus.generated FOLDER

runs `generated.py` in each folder of this one in Triton's own interpreter, and saves what came out beside it.
"""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from tests.triton_viz.corpus.case import Case, integers, launched_with, normal, tensors_of
from tests.triton_viz.helpers.generating import imported

BLOCK, PROGRAMS, SLOTS = 8, 6, 4

HEAD = """import triton
import triton.language as tl


@triton.jit
def pick(a, b):
    if a > b:
        return a - b
    else:
        return b * 2 + 1


@triton.jit
def fold(block, low):
    if low > 3:
        block = block + low
    return tl.max(block, 0)


@triton.jit
def latest(a, b):
    return tl.where(b > 0, b, a)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def kernel(ints, floats, int_out, float_out, scalar_out, cells, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    at = pid * BLOCK + lane
    s0 = tl.load(ints + pid)
    s1 = tl.load(ints + pid + 7)
    f0 = tl.load(floats + pid)
    b0 = tl.load(ints + at)
    b1 = lane * (pid + 1)
    g0 = tl.load(floats + at)
    h0 = g0.to(tl.float16)
    w0 = b0.to(tl.int64)
    u0 = b0.to(tl.uint8)
"""

VARIABLES = {"int": ["s0", "s1"], "float": ["f0"], "ints": ["b0", "b1"], "floats": ["g0"],
             "halves": ["h0"], "longs": ["w0"], "bytes": ["u0"]}  # fmt: skip
TYPES = {"int": "int32", "float": "float32", "ints": "int32", "floats": "float32",
         "halves": "float16", "longs": "int64", "bytes": "uint8"}  # fmt: skip

# Each pattern gives a value of its kind; braces are filled with values of the kinds they name.
PATTERNS: dict[str, list[str]] = {
    "int": [
        "pid",
        "n",
        "(pid * 0 + {small})",
        "({int} + {int})",
        "({int} * {int})",
        "({int} - {small})",
        "({int} & {int})",
        "({int} // (({int} & 7) + 1))",
        "({int} % (({int} & 7) + 2))",
        "({int} ^ {small})",
        "min({int}, {int})",
        "max({int}, {int})",
        "({int} if {test} else {int})",
        "pick({int}, {int})",
        "tl.load(ints + ({int} & 31))",
        "tl.max({ints}, 0)",
        "tl.min({ints}, 0)",
        "tl.sum({ints}, 0)",
        "tl.xor_sum({ints}, 0)",
        "tl.argmax({ints}, 0)",
        "fold({ints}, {int})",
        "tl.reduce({ints}, 0, larger)",
        "({int} >> 2)",
    ],
    "float": [
        "({float} + {float})",
        "({float} * 0.5)",
        "tl.load(floats + ({int} & 31))",
        "tl.max({floats}, 0)",
        "tl.min({floats}, 0)",
        "{int}.to(tl.float32)",
        "tl.maximum({float}, {float})",
    ],
    "ints": [
        "({ints} + {ints})",
        "({ints} - {int})",
        "({ints} * {ints})",
        "({ints} | {small})",
        "({ints} // (({ints} & 3) + 1))",
        "tl.where({tests}, {ints}, {ints})",
        "tl.load(ints + ({ints} & 31))",
        "tl.load(ints + at, mask={tests}, other={int})",
        "tl.cumsum({ints}, 0)",
        "tl.sort({ints})",
        "tl.flip({ints}, 0)",
        "tl.load(int_out + at)",
        "{floats_small}.to(tl.int32)",
        "tl.minimum({ints}, {ints})",
        "{bytes}.to(tl.int32)",
        "tl.associative_scan({ints}, 0, latest)",
        "({ints} << 1)",
        "tl.gather({ints}, {ints} & 7, 0)",
        "tl.reshape(tl.trans(tl.reshape({ints}, [2, 4])), [8])",
    ],
    "floats": [
        "({floats} + {floats})",
        "({floats} * {float})",
        "tl.where({tests}, {floats}, {float})",
        "{ints}.to(tl.float32)",
        "tl.maximum({floats}, {floats})",
        "tl.load(floats + ({ints} & 31))",
        "{halves}.to(tl.float32)",
        "(-{floats})",
        "tl.abs({floats})",
        "tl.load(floats + at, mask={tests}, other=0.0)",
        "tl.floor({floats})",
    ],
    "halves": [
        "({halves} + {halves})",
        "({halves} * 2)",
        "{floats}.to(tl.float16)",
        "tl.where({tests}, {halves}, 0.0)",
    ],
    "longs": ["({longs} * {longs})", "({longs} + {ints})", "{ints}.to(tl.int64)", "({longs} >> 3)"],
    "bytes": ["({bytes} + {bytes})", "{ints}.to(tl.uint8)", "({bytes} ^ 255)"],
    "test": [
        "({int} > {int})",
        "({int} % 3 == 1)",
        "(pid < {small})",
        "({float} > 0.5)",
        "({int} > 0 and {int} < 9)",
        "({int} < 3 or pid == 2)",
        "(not ({int} > 4))",
        "(0 < {int} < 9)",
    ],
    "tests": [
        "({ints} > {ints})",
        "(lane < {int})",
        "({floats} > {float})",
        "(({ints} & 1) == 0)",
        "(({ints} > 2) & (lane != 3))",
        "({bytes} > 100)",
        "({longs} < {ints})",
    ],
    "small": [str(n) for n in range(8)],
    "floats_small": ["tl.clamp({floats}, -9.0, 9.0)"],
}

ATOMICS = ["atomic_add", "atomic_max", "atomic_min", "atomic_xor", "atomic_or", "atomic_and"]


class Writer:
    """Writes one kernel. Whatever it leaves open, `draw` decides."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]):
        self.draw = draw
        self.counter = itertools.count()

    def value(self, kind: str, depth: int) -> str:
        """An expression of a kind, of at most this depth."""
        names = VARIABLES.get(kind, [])
        if names and (depth <= 0 or self.draw(st.integers(0, 2)) == 0):
            return self.draw(st.sampled_from(names))
        pattern = self.draw(st.sampled_from(PATTERNS[kind]))
        parts = pattern.split("{")
        text = parts[0]
        for part in parts[1:]:
            wanted, rest = part.split("}", 1)
            text += self.value(wanted, depth - 1) + rest
        return text

    def block(self, nesting: int, indent: str) -> list[str]:
        """Some statements."""
        lines = []
        for _ in range(self.draw(st.integers(1, 4 - nesting))):
            lines += self.statement(nesting, indent)
        return lines

    def statement(self, nesting: int, indent: str) -> list[str]:
        kinds = ["assign", "assign", "store", "atomic", "scalar store"]
        kinds += ["if", "if else", "for", "for", "while"] if nesting < 3 else []
        kinds += ["return"] if nesting == 0 else []
        kind = self.draw(st.sampled_from(kinds))
        deeper = indent + "    "
        if kind == "assign":
            of = self.draw(st.sampled_from(list(VARIABLES)))
            name = self.draw(st.sampled_from(VARIABLES[of]))
            return [f"{indent}{name} = ({self.value(of, 2)}).to(tl.{TYPES[of]})"]
        if kind == "store":
            return [self.store(indent)]
        if kind == "scalar store":
            return [f"{indent}tl.store(scalar_out + pid, {self.value('int', 2)})"]
        if kind == "atomic":
            return [self.atomic(indent)]
        if kind == "if":
            return [f"{indent}if {self.value('test', 1)}:", *self.block(nesting + 1, deeper)]
        if kind == "if else":
            then, otherwise = self.block(nesting + 1, deeper), self.block(nesting + 1, deeper)
            return [f"{indent}if {self.value('test', 1)}:", *then, f"{indent}else:", *otherwise]
        if kind == "return":
            return [f"{indent}if {self.value('test', 1)}:", f"{deeper}return"]
        return self.loop(kind, nesting, indent)

    def store(self, indent: str) -> str:
        """Each program writes to its own elements."""
        slot = self.draw(st.integers(0, SLOTS - 1)) * BLOCK * PROGRAMS
        kind, where = self.draw(
            st.sampled_from([("ints", "int_out"), ("floats", "float_out"), ("bytes", "int_out")])
        )
        mask = f", mask={self.value('tests', 1)}" if self.draw(st.booleans()) else ""
        return f"{indent}tl.store({where} + {slot} + at, {self.value(kind, 2)}{mask})"

    def atomic(self, indent: str) -> str:
        """Cells of one operation are never touched by another, so that the order does not matter."""
        row = self.draw(st.integers(0, len(ATOMICS) - 1))
        kind = self.draw(st.sampled_from(["int", "ints"]))
        place = f"cells + {row * 8} + ({self.value(kind, 1)} & 7)"
        return f"{indent}tl.{ATOMICS[row]}({place}, {self.value(kind, 1)})"

    def loop(self, kind: str, nesting: int, indent: str) -> list[str]:
        name, body = f"i{next(self.counter)}", self.block(nesting + 1, indent + "    ")
        if kind == "for":
            bounds = self.draw(
                st.sampled_from(
                    ["{small}", "{int} & 3", "pid", "pid, n", "{int} & 3, {small}", "0, {int} & 7, 2"]
                )
            )
            filled = bounds.replace("{int}", self.value("int", 1)).replace("{small}", self.value("small", 0))
            return [f"{indent}for {name} in range({filled}):", f"{indent}    s1 += {name}", *body]
        start = f"{indent}{name} = {self.value('int', 1)} & 3"
        return [start, f"{indent}while {name} > 0:", *body, f"{indent}    {name} -= 1"]


@st.composite
def kernels(draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """The text of a module with a kernel. All variables are stored in the end, so that nothing is lost."""
    writer = Writer(draw)
    body = [line for _ in range(draw(st.integers(2, 4))) for line in writer.statement(0, "    ")]
    last = [
        "    tl.store(int_out + at, b0 ^ b1 ^ s1 ^ w0.to(tl.int32))",
        "    tl.store(float_out + at, g0 + h0.to(tl.float32) + f0 + u0.to(tl.float32))",
        "    tl.store(scalar_out + pid, s0)",
    ]
    return "\n".join([HEAD.rstrip(), *body, *last, ""])


def arguments(generator: torch.Generator) -> dict[str, Any]:
    size = BLOCK * PROGRAMS
    return {
        "ints": integers(generator, -20, 60, size),
        "floats": normal(generator, size),
        "int_out": torch.zeros(SLOTS * size, dtype=torch.int32),
        "float_out": torch.zeros(SLOTS * size),
        "scalar_out": torch.zeros(PROGRAMS, dtype=torch.int32),
        "cells": torch.zeros(len(ATOMICS) * 8, dtype=torch.int32),
        "n": 4,
        "BLOCK": BLOCK,
    }


def case_of(text: str, folder: Path) -> Case:
    return Case("generated", imported(text, folder, "generated").kernel, arguments, (PROGRAMS,), lambda a: {})


def main(folder: Path) -> None:
    """Run all kernels of a folder as Triton's interpreter does."""
    np.seterr(all="ignore")
    for place in sorted(folder.iterdir()):
        case = case_of((place / "generated.py").read_text(), place)
        after = case.fresh()
        case.kernel[case.grid](**launched_with(after))
        torch.save(tensors_of(after), place / "after.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
