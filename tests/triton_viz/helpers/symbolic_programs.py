"""Generated kernels of index arithmetic, and the elements that they actually access.

A kernel's tensor is a window of a larger one, so that accesses out of bounds are safe. The engine receives
the window only.
"""

from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from hypothesis import strategies as st

import triton_viz
from tests.triton_viz.helpers.generating import PICK, Scope, bodies, indented, nested
from triton_viz.core.client import tensors_in
from triton_viz.core.data import Access
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.triton.symbolic import Analysis, analyze
from triton_viz.dsls.triton.wrappers import Call, bind

REACH = 1100
"""No generated access is further from a tensor's first element than this."""
PROGRAMS = 5
BLOCK = 4

HEAD = f"""
import triton
import triton.language as tl

{PICK}

@triton.jit
def kernel(x, data, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    a = pid * 7 % 5
    b = 3
    d = tl.load(data + pid)
    v = lane + pid
"""


def numbers(depth: int = 2) -> st.SearchStrategy[str]:
    """Scalars."""
    leaves = st.sampled_from(["pid", "a", "b", "n", "pid", "a", "0", "1", "2", "5", "d"])
    if not depth:
        return leaves
    inner = numbers(depth - 1)
    return st.one_of(
        leaves,
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*"]), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["//", "%"]), st.sampled_from("234")),
        st.builds("({} & {})".format, inner, st.sampled_from(["1", "3", "6"])),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("({} if {} else {})".format, inner, conditions(depth - 1), inner),
        st.builds("pick({}, {})".format, inner, inner),
    )


def conditions(depth: int = 1) -> st.SearchStrategy[str]:
    """Conditions on scalars."""
    inner = numbers(min(depth, 1))
    simple = st.builds("({} {} {})".format, inner, st.sampled_from(["<", "==", ">=", "!="]), inner)
    if not depth:
        return simple
    return st.one_of(simple, st.builds("({} {} {})".format, simple, st.sampled_from(["and", "or"]), simple))


def blocks() -> st.SearchStrategy[str]:
    """Blocks of indices."""
    return st.one_of(
        st.sampled_from(["lane", "v", "lane * 2", "lane * n", "BLOCK - 1 - lane"]),
        st.builds("(lane + {})".format, numbers(1)),
        st.builds("(v * {} + {})".format, st.sampled_from(["2", "a", "n"]), numbers(1)),
        st.builds("(v {} {})".format, st.sampled_from(["//", "%", "&"]), st.sampled_from("357")),
        st.builds("tl.where({}, v, lane)".format, st.sampled_from(["v < n", "lane < 2", "v > a"])),
        st.builds("tl.minimum(v, {})".format, numbers(1)),
    )


def masks() -> st.SearchStrategy[str]:
    """Masks of blocks, mostly typical ones."""
    return st.one_of(
        st.builds("{} {} {}".format, blocks(), st.sampled_from(["<", ">="]), numbers(0)),
        st.builds("(({} < {}) & (lane < {}))".format, blocks(), numbers(0), st.sampled_from("123")),
    )


@st.composite
def accesses(draw: st.DrawFn) -> list[str]:
    """A load or a store."""
    if draw(st.booleans()):
        at = f"x + ({draw(numbers())}) % 997"
        return [draw(st.sampled_from([f"tl.load({at})", f"tl.store({at}, 1)"]))]
    index = draw(blocks())
    at = f"x + {index} % 997"
    mask = draw(masks())
    if draw(st.booleans()):
        mask = f"({index} % 997 < {draw(st.sampled_from(['n', '12', '24', 'n * 3']))}) & ({index} % 997 >= 0)"
    masked = f", mask={mask}" if draw(st.booleans()) else ""
    return [f"tl.load({at}{masked})"]


@st.composite
def statements(draw: st.DrawFn, scope: Scope) -> list[str]:
    """One statement, with nested statements."""
    kinds = ["assign", "add", "access", "access", "block", "move"]
    if scope.depth:
        kinds += ["if", "if", "while", "for", "for", "return", "count"]
    if scope.in_loop:
        kinds += ["break", "continue"]
    inner, in_loop = nested(scope, statements)
    match draw(st.sampled_from(kinds)):
        case "assign":
            return [f"{draw(st.sampled_from('ab'))} = {draw(numbers())}"]
        case "add":
            return [
                f"{draw(st.sampled_from('ab'))} += {draw(st.sampled_from(['1', '3', 'n', 'pid', '-2', 'b']))}"
            ]
        case "block":
            return [f"v = {draw(blocks())}"]
        case "move":
            return [f"v += {draw(st.sampled_from(['1', 'BLOCK', 'n', '-1', 'pid']))}"]
        case "access":
            return draw(accesses())
        case "if":
            lines = [f"if {draw(conditions())}:", *indented(draw(inner))]
            if draw(st.booleans()):
                lines += ["else:", *indented(draw(inner))]
            return lines
        case "for":
            start = draw(st.sampled_from(["0", "pid", "a & 3", "n"]))
            stop = draw(st.sampled_from(["n", "pid", "6", "(a & 7)", "n + pid", "(b & 3) + 4"]))
            bounds = f"{start}, {stop}, {draw(st.sampled_from(['1', '2', '-1', '3']))}"
            use = draw(
                st.sampled_from(
                    ["a += i", "tl.load(x + i)", "v += 2", "b = i * 2 + pid", "tl.load(x + b % 997)"]
                )
            )
            lines = [f"for i in {draw(st.sampled_from(['range', 'tl.range']))}({bounds}):"]
            return lines + indented([use, *draw(in_loop)])
        case "while":
            left = f"left{scope.depth}"  # a loop inside has its own
            lines = [f"{left} = {draw(st.sampled_from(['5', 'n', 'pid', 'pid + 2']))}"]
            condition = draw(st.sampled_from(["", "", f" and {draw(conditions())}"]))
            lines += [f"while {left} > 0{condition}:"]
            return lines + indented([f"{left} -= 1", *draw(in_loop)])
        case "count":
            lines = [
                "at = lane + pid * BLOCK",
                f"for i in range({draw(st.sampled_from(['n', '5', 'pid + 4']))}):",
            ]
            guard = draw(st.sampled_from(["", ", mask=at < n", ", mask=at < 24"]))
            step = draw(st.sampled_from(["BLOCK", "1", "n"]))
            return [*lines, f"    tl.load(x + at{guard})", f"    at += {step}"]
        case "return":
            return ["return"]
        case other:
            return [other]


def kernels() -> st.SearchStrategy[str]:
    """The text of a module with a kernel."""
    body = bodies(Scope(2, False), statements)
    return body.map(lambda lines: HEAD + "\n".join(indented([*lines, "tl.store(x + v % 997, a + b)"])) + "\n")


class Touched(NamedTuple):
    """An element that a program accessed."""

    line: int
    kind: str
    program: tuple[int, int, int]
    iterations: tuple[tuple[int, int], ...]
    element: tuple[int, ...]
    offset: int
    """The distance from the tensor's first element, in bytes."""


def touched(kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any], name: str) -> set[Touched]:
    """All elements of one tensor that a launch actually accesses."""
    triton_viz.trace("tracer")(kernel)[grid](**arguments)
    launch = triton_viz.launches.pop()
    found = set()
    for program in launch.programs():
        for record in launch.at(program):
            if isinstance(record, Access) and record.tensor == name:
                line, kind = record.call_path[-1].line, type(record).__name__.lower()
                width = arguments[name].element_size()
                for index in np.argwhere(record.mask):
                    position = tuple(int(i) for i in index)
                    offset = int(record.offsets[position]) * width
                    found.add(Touched(line, kind, program, record.iterations, position, offset))
    return found


def analyzed(
    kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any], **storages: tuple[int, int]
) -> Analysis:
    """The analysis of the engine. `storages` are in bytes from the tensors' first elements; by default the
    real ones."""
    fn = kernel.fn
    bound = bind(fn, (), arguments)
    infos = [TensorInfo.of(path, t) for name, arg in bound.items() for path, t in tensors_in(name, arg)]
    told = []
    for info in infos:
        if info.name in storages:
            low, high = storages[info.name]
            size = (high - max(low, 0)) // info.itemsize
            info = msgspec.structs.replace(
                info, storage=(info.address + low, info.address + high), shape=(size,), strides=(1,)
            )
        told.append(info)
    x, y, z = (*grid, 1, 1)[:3]
    return analyze(Call(fn, bound, {}), (x, y, z), told)


def check(analysis: Analysis, real: set[Touched], name: str, low: int, high: int) -> None:
    """Check all statements of the analysis about a tensor against the actual accesses."""
    width = 4
    bad = {t for t in real if t.offset < low or t.offset + width > high}
    proved = {(a.call_path[-1].line, a.kind): True for a in analysis.accesses}
    for access in analysis.accesses:
        line = access.call_path[-1].line
        if access.verdict != "ok":
            proved[line, access.kind] = False
        if access.verdict == "violation" and access.tensor == name:
            witness = access.witness
            assert witness is not None
            shown = {
                t
                for t in bad
                if (t.line, t.kind, t.program) == (line, access.kind, witness.program)
                and (t.iterations, t.element) == (witness.iterations, witness.index)
            }
            assert shown, f"line {line}: {witness} does not happen"
    if analysis.complete:
        for t in bad:
            assert (t.line, t.kind) in proved, f"{t} was not come to"
            assert not proved[t.line, t.kind], f"{t} was said to be ok"


def memory(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor with a large margin of accessible memory, and data."""
    whole = torch.zeros(2 * REACH, dtype=torch.int32)
    data = torch.randint(-3, 9, (PROGRAMS,), generator=torch.Generator().manual_seed(seed)).int()
    return whole[REACH:], data
