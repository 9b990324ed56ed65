"""The sanitizer on generated kernels and views of all forms: it finds exactly the actual violations."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import triton_viz
from tests.triton_viz.corpus.features import OLD_NAMES_ARE_FINE
from tests.triton_viz.helpers import sanitizer_programs as pointers
from tests.triton_viz.helpers import symbolic_programs as programs
from tests.triton_viz.helpers.generating import imported
from tests.triton_viz.helpers.symbolic_programs import BLOCK, PROGRAMS, REACH, Touched, touched
from triton_viz.clients.sanitizer import Sanitizer
from triton_viz.clients.sanitizer.verdict import Verdict
from triton_viz.core.data import Issue

pytestmark = [
    pytest.mark.usefixtures("no_launches"),
    OLD_NAMES_ARE_FINE,
]

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "slice": lambda x: x[:23],
    "long": lambda x: x[:400],
    "steps": lambda x: x[:30:2],
    "steps of three": lambda x: x[:3000:3],
    "transposed": lambda x: x[:24].view(4, 6).T,
    "columns": lambda x: x[:36].view(6, 6)[:, :4],
    "columns transposed": lambda x: x[:36].view(6, 6)[:, :4].T,
    "planes": lambda x: x[:60].view(3, 4, 5)[:, ::2, 1:3],
    "broadcast": lambda x: x[:6].expand(4, 6),
    "one for all": lambda x: x[:1].expand(40),
    "columns for all": lambda x: x[:8].view(8, 1).expand(8, 5)[::2],
    "windows": lambda x: x[:40].unfold(0, 3, 1),
    "windows of steps": lambda x: x[:40:2].unfold(0, 3, 1),
    "windows far apart": lambda x: x[:40].unfold(0, 3, 5),
    "strides that are no multiples": lambda x: x.as_strided((5, 4), (6, 4), x.storage_offset()),
    "one element": lambda x: x[0],
    "empty": lambda x: x[:0],
    "empty rows": lambda x: x[:30].view(5, 6)[:, 2:2],
}


class Found(NamedTuple):
    """The kind of a violation, and its access and line."""

    kind: str
    access: str
    line: int


class Share(NamedTuple):
    """The programs with a violation, and the number of elements."""

    first: tuple[int, int, int]
    programs: int
    elements: int


def oracle(real: set[Touched], view: torch.Tensor) -> dict[Found, Share]:
    """The violations among all accesses, found one address at a time."""
    width = view.element_size()
    places = {0}
    for size, stride in zip(view.shape, view.stride(), strict=True):
        places = {place + i * stride * width for place in places for i in range(size)}
    wrong: dict[Found, list[Touched]] = {}
    stored: dict[tuple[int, int], list[Touched]] = {}
    for one in real:
        if one.offset not in places:
            wrong.setdefault(Found("out of bounds", one.kind, one.line), []).append(one)
        elif one.kind == "store":
            stored.setdefault((one.line, one.offset), []).append(one)
    if 0 in [stride for size, stride in zip(view.shape, view.stride(), strict=True) if size > 1]:
        for (line, _), ones in stored.items():
            if len({one.program for one in ones}) > 1 or len({one.iterations for one in ones}) < len(ones):
                wrong.setdefault(Found("broadcast store", "store", line), []).extend(ones)
    return {
        found: Share(min(one.program for one in ones), len({one.program for one in ones}), len(ones))
        for found, ones in wrong.items()
    }


def sanitized(client: Sanitizer, kernel: Any, arguments: dict[str, Any]) -> list[Any]:
    """The records of a launch with a sanitizer."""
    triton_viz.trace(client)(kernel)[(PROGRAMS,)](**arguments)
    return triton_viz.launches.pop().records


def share(issue: Issue) -> Share:
    """The numbers that a message gives for all programs."""
    text = re.search(r"In all, ([\d,]+) elements of (?:([\d,]+) programs|this program)", issue.message)
    elements, count = (text[1], text[2] or "1") if text else ("1", "1")
    return Share(issue.program, int(count.replace(",", "")), int(elements.replace(",", "")))


def found_in(records: list[Any]) -> dict[Found, Share]:
    """The reported violations, merged by line."""
    verbs = {"loads": "load", "stores": "store", "changes": "atomic"}
    found: dict[Found, Share] = {}
    for one in records:
        if isinstance(one, Issue) and one.verdict == "violation":
            verb = one.message.split(") ")[1].split()[0]
            key = Found(one.kind, verbs[verb], one.call_path[-1].line)
            found = joined(found, {key: share(one)})
    return found


def whole(seed: int, reach: int = REACH) -> torch.Tensor:
    """Memory with large margins before and after."""
    return torch.arange(seed, seed + 6 * reach, dtype=torch.int32)[reach:]


def data_of(seed: int) -> torch.Tensor:
    """Data from which a kernel computes indices."""
    return torch.randint(-3, 9, (PROGRAMS,), generator=torch.Generator().manual_seed(seed)).int()


def check(text: str, n: int, views: dict[str, str], mode: str, seed: int, reach: int = REACH) -> None:
    """Compare the sanitizer's issues with the actual violations of a kernel."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        kernel = imported(text, Path(folder)).kernel
        given = {"data": data_of(seed), "n": n, "BLOCK": BLOCK}
        expected: dict[Found, Share] = {}
        memory = {name: whole(seed, reach) for name in views}
        own = {name: VIEWS[view](memory[name]) for name, view in views.items()}
        # An empty tensor has no address: its accesses are recorded for one that begins at the same address.
        safe = {name: x if x.numel() else memory[name][:1] for name, x in own.items()}
        for name in views:
            real = touched(kernel, (PROGRAMS,), {**safe, **given}, name)
            expected = joined(expected, oracle(real, own[name]))
        patch.setattr(triton_viz.config, "sanitizer", "concrete" if mode == "concrete" else "symbolic")
        patch.setattr(triton_viz.config, "vectorized", mode != "one at a time")
        fresh = {name: VIEWS[view](whole(seed, reach)) for name, view in views.items()}
        records = sanitized(Sanitizer(execute=mode != "only proved"), kernel, {**fresh, **given})
        if mode == "only proved":
            check_proofs(records, {one for one in expected if one.kind == "out of bounds"}, kernel)
            return
        found = found_in(records)
        assert found.keys() == expected.keys()
        for one, theirs in expected.items():
            if one.kind == "out of bounds":
                assert found[one].first == theirs.first, one
                # For a helper that several lines call, `touched` has the helper's line only.
                assert found[one].elements == theirs.elements or "    read(" in text, one


def joined(one: dict[Found, Share], other: dict[Found, Share]) -> dict[Found, Share]:
    """The violations of both tensors."""
    found = {**one, **other}
    for key in one.keys() & other.keys():
        a, b = one[key], other[key]
        found[key] = Share(min(a.first, b.first), max(a.programs, b.programs), a.elements + b.elements)
    return found


def check_proofs(records: list[Any], expected: set[Found], kernel: Any) -> None:
    """Check that proved violations happen, and that accesses with the verdict ok have none."""
    found = found_in(records).keys()
    assert found <= expected
    undecided = [one for one in records if isinstance(one, Issue) and one.verdict == "undecided"]
    open_lines = {one.call_path[-1].line for one in undecided}
    if kernel.fn.__code__.co_firstlineno not in open_lines:  # else: accesses that were not reached
        assert {one for one in expected - found if one.line not in open_lines} == set()
        said = {
            (one.access, one.call_path[-1].line, one.verdict) for one in records if isinstance(one, Verdict)
        }
        # A helper's line has one access for each call.
        wrong = {(access, line) for access, line, verdict in said if verdict != "ok"}
        right = {(access, line) for access, line, verdict in said if verdict == "ok"} - wrong
        assert not right & {(one.access, one.line) for one in expected}


MODES = ["symbolic", "concrete", "one at a time", "only proved"]


@settings(max_examples=60, deadline=None)
@given(
    programs.kernels(),
    st.sampled_from([1, 3, 4, 9]),
    st.sampled_from(list(VIEWS)),
    st.sampled_from(MODES),
    st.integers(0, 5),
)
def test_issues_of_generated_kernels_agree_with_each_address(
    text: str, n: int, view: str, mode: str, seed: int
):
    check(text, n, {"x": view}, mode, seed)


@pytest.mark.parametrize("who", ["", "if pid == 1:", "if pid < 2:", "if pid > 100:"])
@pytest.mark.parametrize("view", ["broadcast", "one for all"])
@pytest.mark.parametrize("mode", MODES)
def test_a_store_that_is_the_same_in_all_programs_is_one_of_many(mode: str, view: str, who: str):
    store = "tl.store(x + lane, b)"
    lines = [who, *programs.indented([store])] if who else [store]
    check(programs.HEAD + "\n".join(programs.indented(lines)) + "\n", 1, {"x": view}, mode, 0)


@settings(max_examples=60, deadline=None)
@given(
    pointers.kernels(),
    st.sampled_from([1, 3, 4, 9]),
    st.tuples(*[st.sampled_from([view for view in VIEWS if "all" not in view and view != "broadcast"])] * 2),
    st.sampled_from(MODES),
    st.integers(0, 5),
)
def test_the_same_holds_for_pointers_that_move_about(
    text: str, n: int, views: tuple[str, str], mode: str, seed: int
):
    check(text, n, dict(zip("xy", views, strict=True)), mode, seed, pointers.FAR)
