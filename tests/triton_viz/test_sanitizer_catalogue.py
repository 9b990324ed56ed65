"""The sanitizer finds every planted bug of the catalogue, and nothing in the look-alikes."""

from typing import Any

import pytest

import triton_viz
from tests.triton_viz.catalogue import ENTRIES, RACES
from tests.triton_viz.catalogue.entry import Entry, given
from triton_viz.core.data import Issue


def issues(entry: Entry) -> list[Issue]:
    arguments = entry.arguments()
    triton_viz.trace("sanitizer")(entry.kernel)[entry.grid](**given(arguments))
    return [record for record in triton_viz.launches[-1].records if isinstance(record, Issue)]


def by_name(entries: list[Entry]) -> Any:
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


@by_name([entry for entry in ENTRIES if entry.bug and entry.bug.kind not in RACES])
def test_a_planted_bug_is_found_with_line_program_and_tensor(entry: Entry):
    assert entry.bug
    found = [issue for issue in issues(entry) if issue.verdict == "violation"]
    assert found
    for issue in found:
        assert issue.call_path[-1].line in entry.lines
        assert issue.program in entry.bug.programs
        assert issue.kind == entry.bug.kind
        assert issue.tensor == entry.bug.tensor or not entry.bug.tensor


@by_name([entry for entry in ENTRIES if not entry.bug])
def test_nothing_is_found_in_a_look_alike(entry: Entry):
    assert [issue for issue in issues(entry) if issue.verdict == "violation"] == []
