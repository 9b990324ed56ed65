"""The happens-before order between programs, as observed in the launch.

Programs of one launch are ordered only by their own synchronization: an atomic that releases an element, and
a later atomic of another program that acquires it. Everything that the first program did before the release
happens before everything that the second does after the acquire. Spin locks, ticket locks and flags all work
like this.

Assumptions:
- An atomic acquires only if its statement names or tests its result: a program that ignores the result, or
  only passes it on (`tl.store(out, tl.atomic_add(x, 1))`), has not waited for it. It always releases.
  `sem="relaxed"` does neither, `"acquire"` and `"release"` one of the two.
- Atomic loads acquire and atomic stores release, unless `sem` is "relaxed". Volatile loads acquire, and plain
  stores to an element that some program reads by a volatile or atomic load release.
- With `scope="cta"` all of these are plain accesses to other programs.
- An access synchronizes with those of its own width only: an 8-byte atomic does not acquire what a 4-byte
  atomic in it released.
- The order is the observed one. A program that reads an atomic's result counts as synchronized, even if its
  behaviour does not depend on the result: a race can be missed, but ordered accesses are never reported.
"""

import ast
import functools
import linecache
from collections.abc import Iterable

import numpy as np

from triton_viz.clients.race_detector.touches import Touch, TouchKind
from triton_viz.core.data import Site

_MOST_SOURCES = 512
_MOST_CLOCKS = 1 << 23
"""The most entries of vector clocks. Beyond that, only a sample of programs is compared, which still finds a
race of many programs."""


class Order:
    """Whether two events, each a program and a time, are ordered by synchronization."""

    def __init__(self, touches: Iterable[Touch]):
        touches = list(touches)
        watched = _addresses(touch for touch in touches if touch.acquires)
        flags = _addresses(touch for touch in touches if touch.kind is TouchKind.WAIT)
        self._steps: list[tuple[int, int, tuple[int, int], bool, bool]] = []
        """Synchronization events by time: time, program, address and width, whether it acquires, whether it
        releases."""
        for touch in touches:
            if touch.acquires or touch.releases:
                self._add(touch, watched, touch.acquires, touch.releases)
            elif touch.kind is TouchKind.WRITE:
                self._add(touch, flags, False, True)
        self._acquires = sum(step[3] for step in self._steps)

    def _add(self, touch: Touch, wanted: dict[int, np.ndarray], acquires: bool, releases: bool) -> None:
        width = touch.width
        if width not in wanted:
            return
        addresses, programs, _ = touch.flat()
        kept = np.isin(addresses, wanted[width])
        pairs = zip(programs[kept].tolist(), addresses[kept].tolist(), strict=True)
        self._steps += [(touch.time, program, (at, width), acquires, releases) for program, at in pairs]

    def unordered(
        self, program: np.ndarray, time: np.ndarray, later: np.ndarray, later_time: np.ndarray
    ) -> np.ndarray:
        """Which pairs of events (in the observed order) are not ordered by synchronization.

        If there are too many pairs, those that are not examined count as ordered.
        """
        sources = np.unique(program)
        most = max(1, min(_MOST_SOURCES, _MOST_CLOCKS // (self._acquires + 1)))
        if len(sources) > most:
            sources = sources[np.linspace(0, len(sources) - 1, most).astype(np.int64)]
        clocks = self._clocks(sources, set(later.tolist()))
        column = np.searchsorted(sources, program)
        examined = (column < len(sources)) & (sources[np.minimum(column, len(sources) - 1)] == program)
        result = np.zeros(len(program), bool)
        for n in np.flatnonzero(examined).tolist():
            known = 0
            if found := clocks.get(int(later[n])):
                position = np.searchsorted(found[0], later_time[n], side="right") - 1
                known = int(found[1][position][column[n]]) if position >= 0 else 0
            result[n] = known < time[n]
        return result

    def _clocks(self, sources: np.ndarray, wanted: set[int]) -> dict[int, tuple[list[int], list[np.ndarray]]]:
        """For each of these programs: the times of its acquires, and its vector clock after each."""
        column = {program: n for n, program in enumerate(sources.tolist())}
        nothing = np.zeros(len(sources), np.int64)
        known: dict[int, np.ndarray] = {}
        left: dict[tuple[int, int], np.ndarray] = {}
        """The clock that a program receives when it acquires an address, by address and width."""
        clocks: dict[int, tuple[list[int], list[np.ndarray]]] = {}
        for time, program, element, acquires, releases in self._steps:
            mine = known.get(program, nothing)
            if acquires and element in left:
                mine = known[program] = np.maximum(mine, left[element])
                if program in wanted:
                    times, states = clocks.setdefault(program, ([], []))
                    times.append(time)
                    states.append(mine)
            if releases:
                there = np.maximum(mine, left.get(element, nothing))
                if program in column:
                    there[column[program]] = time
                left[element] = there
        return clocks


def _addresses(touches: Iterable[Touch]) -> dict[int, np.ndarray]:
    """The addresses of these accesses, by their width."""
    found: dict[int, list[np.ndarray]] = {}
    for touch in touches:
        found.setdefault(touch.width, []).append(touch.flat()[0])
    return {width: np.unique(np.concatenate(addresses)) for width, addresses in found.items()}


@functools.cache
def result_has_no_name(site: Site) -> bool:
    """Whether a line is an expression statement, so that the result of a call in it has no name."""
    statement = _statement(site.file, site.line)
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _statement(file: str, line: int) -> ast.stmt | None:
    """The innermost statement on a line."""
    found = None
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            found = node  # inner statements come later in a walk
    return found


@functools.lru_cache(maxsize=16)
def _parsed(file: str) -> ast.AST:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # not a Python file: every result counts as used
        return ast.Module([], [])
