"""The grid executor: correct results, and the same results one program at a time."""

import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
import triton.language as tl

from tests.programs import run_python
from tests.thorough import some, some_of_each
from tests.triton_viz.corpus import CASES
from tests.triton_viz.corpus.case import Case
from tests.triton_viz.corpus.checking import check_agreement, check_outputs
from tests.triton_viz.corpus.features import OLD_NAMES_ARE_FINE
from tests.triton_viz.corpus.launching import (
    difference,
    launch,
    launch_one_at_a_time,
    same_records,
    some_programs,
)

pytestmark = [
    pytest.mark.usefixtures("no_launches"),
    OLD_NAMES_ARE_FINE,
]


def parameter(case: Case):
    reason = case.needs.reason if case.needs else ""
    return pytest.param(case, id=case.name, marks=pytest.mark.skipif(not case.runs, reason=reason))


every_kind = pytest.mark.parametrize(
    "case", [parameter(case) for case in some_of_each(CASES, lambda case: case.kind, 5)]
)

NOT_ON_A_CPU = {"inline_asm_elementwise"}
"""Functions that run GPU instructions."""

NOT_FOR_KERNELS = {
    "aggregate_replace",
    "block_type",
    "condition",
    "const",
    "constexpr",
    "constexpr_type",
    "dtype",
    "pi32_t",
    "slice",
    "tensor",
    "tensor_descriptor",
    "tensor_descriptor_type",
    "tuple",
    "tuple_type",
    "void",
}
"""Public names that are not operations, such as types."""


@every_kind
def test_both_modes_compute_what_the_oracle_says_and_leave_the_same_bits_and_records(case: Case):
    arguments, together = launch(case)
    check_outputs(case, arguments)
    alone, one_by_one = launch_one_at_a_time(case)
    check_outputs(case, alone)
    check_agreement(case, arguments, alone)
    assert not difference(together, one_by_one)


def test_every_kernel_of_the_corpus_compiles_for_a_gpu_unless_the_release_lacks_what_it_needs():
    lacking = {case.name for case in CASES if not case.runs}
    names = sorted(lacking.union(case.name for case in some(CASES, 4)))
    refused = json.loads(
        run_python("-m", "tests.triton_viz.corpus.compiling", *names).stdout.splitlines()[-1]
    )
    assert refused.keys() == lacking, refused


def test_every_case_has_a_name_of_its_own():
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)


def test_every_case_gives_the_same_arguments_twice():
    for case in CASES:
        check_agreement(case, case.fresh(), case.fresh())


def test_every_operation_of_the_language_is_in_the_corpus():
    text = "\n".join(file.read_text() for file in (Path(__file__).parent / "corpus").glob("*.py"))
    used = set(re.findall(r"\.(\w+)", text))
    operations = {name for name in tl.__all__ if callable(getattr(tl, name))}
    assert operations - used - NOT_ON_A_CPU - NOT_FOR_KERNELS == set()


@pytest.mark.parametrize("run", [launch, launch_one_at_a_time])
def test_a_print_happens_once_for_each_program_that_comes_there(run, capsys: pytest.CaptureFixture[str]):
    (case,) = [case for case in CASES if case.name == "prints_and_asserts_loud"]
    run(case)
    said = capsys.readouterr().out
    assert said.count("(1, 0, 0)") == 3  # two values in one print, one in the other
    assert "(0, 0, 0)" not in said
    assert "(2, 0, 0)" not in said


class Touched(msgspec.Struct):
    offsets: np.ndarray
    path: tuple[int, ...] = (1, 2)


def test_records_differ_where_any_element_does():
    one = Touched(np.array([[1, 2]]))
    assert same_records(one, Touched(np.array([[1, 2]])))
    assert not same_records(one, Touched(np.array([[1, 3]])))
    assert not same_records(one, Touched(np.array([1, 2])))
    assert not same_records(one, Touched(np.array([[1, 2]]), path=(1,)))
    assert not same_records(one, None)


def test_some_programs_are_few_and_hold_the_first_and_the_last():
    assert list(some_programs((2, 1, 2))) == [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)]
    few = list(some_programs((100, 10, 1)))
    assert len(few) <= 21
    assert {(0, 0, 0), (99, 9, 0)} <= set(few)
    assert list(some_programs((0, 1, 1))) == []
