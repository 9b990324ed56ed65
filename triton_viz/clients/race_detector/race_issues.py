"""Converts races to issues, with the names and indices of the kernel's source."""

import math

import numpy as np

from triton_viz.clients.race_detector.races import Race
from triton_viz.clients.race_detector.shadow import Shadow
from triton_viz.clients.race_detector.touches import TouchKind
from triton_viz.core.data import Issue, Site
from triton_viz.core.records.accesses import Tensors, elements_of
from triton_viz.core.records.columns import Numbers, Program, Programs
from triton_viz.core.records.tensor_info import TensorInfo


def as_issues(races: list[Race], tensors: list[TensorInfo], grid: Program) -> list[Issue]:
    """One issue for each pair of sites, the worse ones first, then by line."""
    known = Tensors(tensors)
    issues: dict[tuple[tuple[Site, ...], tuple[Site, ...]], Issue] = {}
    for race in sorted(races, key=lambda race: race.benign):
        issue = _issue(race, known, grid)
        issues.setdefault((issue.call_path, issue.other_path), issue)
    return sorted(issues.values(), key=lambda issue: (issue.kind != "race", _lines(issue)))


def _lines(issue: Issue) -> list[tuple[str, int]]:
    return [(site.file, site.line) for path in (issue.call_path, issue.other_path) for site in path]


def _issue(race: Race, known: Tensors, grid: Program) -> Issue:
    (one, program), (other, second) = _store_first(race)
    mine, theirs = (Programs(grid, Numbers(1, program_id)).only() for program_id in (program, second))
    name, index, offset, others = _element(known, race.address, one.width)
    also = f" (which is also {' and '.join(others)})" if others else ""
    many = f", and so for {race.elements - 1:,} more elements" if race.elements > 1 else ""
    what = f"{name}{list(index)}" if index is not None else f"{name} at distance {offset}"
    at = other.path[-1]
    other_line = "the same line" if one.path == other.path else f"{at.file}:{at.line}"
    message = (
        f"program {mine} {one.kind.value} {what}{also}, and program {theirs} {other.kind.value} it "
        f"at {other_line}{many}: nothing orders the two"
    )
    if race.benign:
        message += "; all of them store the same value, so that the result does not depend on it"
    if one.kind.atomic and other.kind.atomic:
        message += (
            f"; one is {one.width} bytes wide and the other {other.width}, and an atomic is atomic only to "
            "those of its own width"
        )
    if not race.decided:
        message += (
            ". Programs of this launch may wait for each other, and it touches too much memory to tell "
            "which do: try a smaller grid"
        )
    return Issue(
        programs=Programs(grid, Numbers(1, program)),
        call_path=one.path,
        kind="benign race" if race.benign else "race",
        verdict="violation" if race.decided else "undecided",
        message=message,
        tensor=name,
        index=index,
        offset=offset,
        suggestion=_suggestion(one, other, race.benign),
        others=(theirs,),
        other_path=other.path,
    )


def _store_first(race: Race) -> tuple[tuple[Shadow, int], tuple[Shadow, int]]:
    """Both sides of a race: plain stores first, then by line."""
    sides = [(race.one, race.programs[0]), (race.other, race.programs[1])]
    rank = {TouchKind.WRITE: 0, TouchKind.SIGNAL: 1, TouchKind.UPDATE: 2}
    sides.sort(key=lambda side: (rank.get(side[0].kind, 3), [site.line for site in side[0].path]))
    if sides[0][0] is sides[1][0]:
        sides.sort(key=lambda side: side[1])
    return sides[0], sides[1]


def _element(
    known: Tensors, address: int, width: int
) -> tuple[str, tuple[int, ...] | None, int | None, list[str]]:
    """The tensor of an address, the element's offset in it, and the element's names in other tensors."""
    owner = known.owner(address, address + 1)
    if owner < 0:
        return "", None, None, []
    views = [tensor for tensor in known.tensors if elements_of(tensor)[0] <= address < elements_of(tensor)[1]]
    views = [tensor for tensor in views if _index(tensor, address)[1] is not None]
    # Of several tensors, prefer one whose element size is the access's width, then the one that begins last.
    views.sort(key=lambda tensor: (tensor.itemsize == width, tensor is known.tensors[owner]))
    tensor = views.pop() if views else known.tensors[owner]
    offset, index = _index(tensor, address)
    return tensor.name, index, offset, [f"{t.name}{list(_index(t, address)[1] or ())}" for t in views]


def _index(tensor: TensorInfo, address: int) -> tuple[int, tuple[int, ...] | None]:
    offset = (address - tensor.address) // tensor.itemsize
    position = int(tensor.elements(np.array([offset]))[0])
    if position < 0 or math.prod(tensor.shape) == 0:
        return offset, None
    return offset, tuple(int(i) for i in np.unravel_index(position, tensor.shape)) if tensor.shape else ()


def _suggestion(one: Shadow, other: Shadow, benign: bool) -> str:
    """A suggestion."""
    if benign:
        return "let one program store it (if tl.program_id(0) == 0), or give each program its own element"
    kinds = {one.kind, other.kind}
    if one.kind.atomic and other.kind.atomic:
        return "access it by one element type in both lines, or give each type elements of its own"
    if kinds == {TouchKind.WRITE} and one.path == other.path:
        return (
            "give each program elements of its own (is a program id missing in the address, or the mask of a "
            "block that reaches into the next one?); a sum or maximum over programs is tl.atomic_add or "
            "tl.atomic_max"
        )
    if kinds == {TouchKind.WRITE}:
        return "give each program elements of its own, or store in one of the two lines only"
    if TouchKind.LOCAL_UPDATE in kinds:
        return 'use the scope of the GPU, which is the default: scope="cta" is within one program'
    if TouchKind.READ in kinds and TouchKind.WRITE in kinds:
        return (
            "write to another tensor than the one that is read; to add to what is there, use tl.atomic_add; "
            "to wait for another program, take a lock or a flag with tl.atomic_cas around both"
        )
    if TouchKind.WRITE in kinds:
        return "access it atomically in both lines (tl.atomic_xchg stores), or in a launch of its own before"
    return "read it atomically too (tl.atomic_add of 0), or in a launch of its own after this one"
