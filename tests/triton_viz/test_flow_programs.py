"""Control flow over lanes: generated programs have the same results together as alone."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.triton_viz.helpers.generating import PICK, Scope, bodies, imported, indented, nested
from tests.triton_viz.helpers.lanes import one_by_one, run


def _expressions(depth: int = 2) -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["pid", "a", "b", "n", "0", "1", "2", "3", "5"])
    if not depth:
        return leaves
    inner = _expressions(depth - 1)
    return st.one_of(
        leaves,
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "&", "^"]), inner),
        st.builds("min({}, {})".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, _conditions(depth - 1), inner),
        st.builds("pick({}, {})".format, inner, inner),
    )


def _conditions(depth: int = 1) -> st.SearchStrategy[str]:
    inner = _expressions(min(depth, 1))
    simple = st.builds("({} {} {})".format, inner, st.sampled_from(["<", "==", ">=", "!="]), inner)
    if not depth:
        return simple
    return st.one_of(
        simple,
        st.builds("({} {} {})".format, simple, st.sampled_from(["and", "or"]), simple),
        st.builds("(not {})".format, simple),
        st.builds("({} <= {} < {})".format, inner, inner, inner),
    )


@st.composite
def _statements(draw: st.DrawFn, scope: Scope) -> list[str]:
    kinds = ["assign", "assign", "add", "store", "block", "pair"]
    if scope.depth:
        kinds += ["if", "if", "while", "for", "for", "return"]
    if scope.in_loop:
        kinds += ["break", "continue"]
    inner, in_loop = nested(scope, _statements)
    match draw(st.sampled_from(kinds)):
        case "assign":
            return [f"{draw(st.sampled_from('ab'))} = {draw(_expressions())}"]
        case "add":
            return [f"{draw(st.sampled_from('ab'))} += {draw(_expressions())}"]
        case "pair":
            return [f"a, b = {draw(_expressions())}, {draw(_expressions())}"]
        case "block":
            return [f"v = v * 3 + {draw(_expressions())}"]
        case "store":
            return ["tl.store(log + pid * 64 + at % 64, a + b)", "at += 1"]
        case "if":
            lines = [f"if {draw(_conditions())}:", *indented(draw(inner))]
            if draw(st.booleans()):
                lines += [f"elif {draw(_conditions())}:", *indented(draw(inner))]
            if draw(st.booleans()):
                lines += ["else:", *indented(draw(inner))]
            return lines
        case "for":
            start, step = (
                draw(st.sampled_from(["0", "pid", "a & 3"])),
                draw(st.sampled_from(["1", "2", "-1"])),
            )
            bounds = f"{start}, ({draw(_expressions())}) & 7, {step}"
            lines = [f"for i in {draw(st.sampled_from(['range', 'tl.range']))}({bounds}):"]
            lines += indented(["a += i", *draw(in_loop)])
            return lines + (["else:", "    b += 1"] if draw(st.booleans()) else [])
        case "while":
            left = f"left{scope.depth}"  # a loop inside has its own
            lines = [f"{left} = 5", f"while {left} > 0 and {draw(_conditions())}:"]
            lines += indented([f"{left} -= 1", *draw(in_loop)])
            return lines + (["else:", "    a += 1"] if draw(st.booleans()) else [])
        case "return":
            return ["tl.store(out + pid, a)", "return"]
        case other:
            return [other]


_TEMPLATE = """
import triton
import triton.language as tl
{pick}

@triton.jit
def kernel(out, log, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    a = pid * 7 % 5
    b = 3
    at = 0
    v = tl.arange(0, BLOCK) + pid
{body}
    tl.store(out + pid, a * 31 + b)
    tl.store(log + pid * 64 + 32 + tl.arange(0, BLOCK), v)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@settings(max_examples=60)
@given(body=bodies(Scope(3, False), _statements), n=st.integers(-3, 9))
def test_programs_have_equal_results_together_and_alone(body: list[str], n: int, folder: Path):
    source = _TEMPLATE.format(pick=PICK, body="\n".join(indented(body)))
    kernel = imported(source, folder).kernel
    outs = [np.full(6, -1, np.int32) for _ in range(2)]
    logs = [np.full(6 * 64, -1, np.int32) for _ in range(2)]
    result = run(kernel, range(6), outs[0], logs[0], n, BLOCK=4)
    one_by_one(kernel, range(6), outs[1], logs[1], n, BLOCK=4)
    assert result.diverged == [], source
    np.testing.assert_array_equal(outs[0], outs[1], err_msg=source)
    np.testing.assert_array_equal(logs[0], logs[1], err_msg=source)
