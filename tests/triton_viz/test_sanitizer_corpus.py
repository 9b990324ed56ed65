"""Correct kernels: the sanitizer finds no violation, and does not change their results."""

import pytest

import triton_viz
from tests.thorough import some
from tests.triton_viz.corpus import CASES
from tests.triton_viz.corpus.case import Arguments, Case, launched_with
from tests.triton_viz.corpus.checking import check_agreement
from tests.triton_viz.corpus.features import OLD_NAMES_ARE_FINE
from triton_viz.core.data import Issue

pytestmark = [
    pytest.mark.usefixtures("no_launches"),
    OLD_NAMES_ARE_FINE,
]

RUN = [case for case in CASES if case.runs]
WAYS = {"concrete": ("sanitizer", "concrete"), "threads": ("num_sms", 4), "alone": ("vectorized", False)}


def launched(case: Case, client: str | tuple[str, ...]) -> Arguments:
    """The arguments of a case after its kernel has run."""
    arguments = case.fresh()
    triton_viz.trace(client)(case.kernel)[case.grid](**launched_with(arguments))
    return arguments


def check(case: Case) -> None:
    """Check that a sanitizer finds no violation and does not change the results."""
    arguments = launched(case, "sanitizer")
    assert [r for r in triton_viz.launches[-1].records if isinstance(r, Issue)] == []
    check_agreement(case, arguments, launched(case, ()))


@pytest.mark.parametrize("case", some(RUN, 6), ids=lambda case: case.name)
def test_nothing_is_found_in_a_kernel_that_is_right(case: Case):
    check(case)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", some(RUN, 24, first=2), ids=lambda case: case.name)
def test_nothing_is_found_however_it_runs(case: Case, way: str, monkeypatch: pytest.MonkeyPatch):
    name, value = WAYS[way]
    monkeypatch.setattr(triton_viz.config, name, value)
    check(case)
