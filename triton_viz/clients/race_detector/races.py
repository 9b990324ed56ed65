"""Finds races in the shadows or touches of one storage: pairs of sites, with two programs and an element."""

import dataclasses
import itertools
from typing import Any

import numpy as np

from triton_viz.clients.race_detector.order import Order
from triton_viz.clients.race_detector.shadow import Shadow, in_conflict, same_values, two_programs
from triton_viz.clients.race_detector.touches import Touch, conflict

_NEIGHBOURS = 8
"""The number of following events on the same element that each event is compared with, besides the next
store."""


@dataclasses.dataclass(frozen=True)
class Race:
    """Two sites, a program at each, and an element that both accessed."""

    one: Shadow
    other: Shadow
    programs: tuple[int, int]
    address: int
    elements: int
    """The number of elements with this race; 0 if they were not counted."""
    benign: bool
    """Whether all programs stored the same value."""
    decided: bool = True


def races_without_order(shadows: list[Shadow], start: int, decided: bool = True) -> list[Race]:
    """All races of a launch whose programs cannot wait for each other, one for each pair of sites."""
    races = []
    observed = _observed(shadows)
    for one, other in itertools.combinations_with_replacement(shadows, 2):
        shared = in_conflict(one, other)
        if shared is None or not shared.any():
            continue
        same = same_values(one, other)
        worse = shared if same is None else shared & (~same | observed)
        benign = not worse.any()
        which = shared if benign else worse
        at = int(np.argmax(which))
        elements = max(1, int(which.sum()) * one.granule // max(one.width, other.width))
        programs = two_programs(one, other, at)
        races.append(Race(one, other, programs, start + at * one.granule, elements, benign, decided))
    return races


def _observed(shadows: list[Shadow]) -> np.ndarray:
    """Which elements were read while other programs stored to them: results may depend on the order."""
    found = np.zeros(len(shadows[0].first), bool)
    for one, other in itertools.combinations(shadows, 2):
        shared = in_conflict(one, other)
        if shared is not None and (one.value is None or other.value is None):
            found |= shared
    return found


def races_in_order(shadows: list[Shadow], touches: list[Touch], order: Order, start: int) -> list[Race]:
    """The races of a launch whose programs may wait for each other: accesses that no synchronization orders.

    Events on one element are compared by time: each with the next few, the last store before it and the next
    store after it. If these pairs are ordered, all pairs are.
    """
    events = _Events(shadows, touches, start)
    first, second = events.pairs()
    if not len(first):
        return []
    loose = order.unordered(
        events.program[first], events.time[first], events.program[second], events.time[second]
    )
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for a, b in zip(first[loose].tolist(), second[loose].tolist(), strict=True):
        one, other = sorted((a, b), key=lambda event: int(events.shadow[event]))
        found.setdefault((int(events.shadow[one]), int(events.shadow[other])), []).append((one, other))
    races = []
    for (i, j), pairs in found.items():
        worse = [pair for pair in pairs if not events.same(*pair)]
        a, b = min(worse or pairs, key=lambda pair: int(events.element[pair[0]]))
        programs = int(events.program[a]), int(events.program[b])
        address = start + int(events.element[a]) * shadows[i].granule
        races.append(Race(shadows[i], shadows[j], programs, address, 0, not worse))
    return races


class _Events:
    """Accesses to possibly racing elements, sorted by element and then by time."""

    def __init__(self, shadows: list[Shadow], touches: list[Touch], start: int):
        granule, size = shadows[0].granule, len(shadows[0].first)
        in_question = np.zeros(size, bool)
        for one, other in itertools.combinations_with_replacement(shadows, 2):
            shared = in_conflict(one, other)
            if shared is not None:
                in_question |= shared
        numbers = {(shadow.path, shadow.kind, shadow.width): n for n, shadow in enumerate(shadows)}
        observed = _observed(shadows)
        columns: list[tuple[np.ndarray, ...]] = []
        for touch in touches:
            addresses, programs, _ = touch.flat()
            parts = touch.width // granule
            element = ((addresses - start) // granule)[:, None] + np.arange(parts)
            kept = in_question[element]
            element, programs = element[kept], np.broadcast_to(programs[:, None], kept.shape)[kept]
            number = numbers[touch.path, touch.kind, touch.width]
            whole, there = np.full(len(element), 0), shadows[number]
            stable, value = whole.astype(bool), whole
            if there.value is not None and there.differs is not None:
                stable = ~(there.differs | observed)[element]
                value = there.value[element].astype(np.int64)
            columns.append((element, programs, whole + touch.time, whole + number, stable, value))
        joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
        by_element = np.argsort(joined[0], kind="stable")
        self.element, self.program, self.time, self.shadow, self._stable, self._value = (
            column[by_element] for column in joined
        )
        self._conflicts = np.array([[conflict(a, b) for b in shadows] for a in shadows])
        atomic = [shadow for shadow in shadows if shadow.kind.atomic]
        self._writes = np.array(
            [
                one.kind.writes and (not one.kind.atomic or any(conflict(one, other) for other in atomic))
                for one in shadows
            ]
        )

    def same(self, first: Any, second: Any) -> Any:
        """Whether all stores of the two events' sites to the element stored the same value."""
        return self._stable[first] & self._stable[second] & (self._value[first] == self._value[second])

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of events to compare, the earlier first. Pairs that differ in the element only occur once.

        Pairs with equal stored values are distinguished from pairs with different ones.
        """
        n = len(self.element)
        if n == 0:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        position = np.arange(n)
        code = (self.shadow * (int(self.time.max()) + 1) + self.time) * (
            int(self.program.max()) + 1
        ) + self.program
        _, kinds = np.unique(code, return_inverse=True)
        found: dict[int, tuple[int, int]] = {}

        def keep(first: np.ndarray, second: np.ndarray) -> None:
            good = (
                (self.element[first] == self.element[second])
                & (self.program[first] != self.program[second])
                & self._conflicts[self.shadow[first], self.shadow[second]]
            )
            first, second = first[good], second[good]
            codes = (kinds[first] * (kinds.max() + 1) + kinds[second]) * 2 + self.same(first, second)
            codes, index = np.unique(codes, return_index=True)
            for one, at in zip(codes.tolist(), index.tolist(), strict=True):
                found.setdefault(one, (int(first[at]), int(second[at])))

        for distance in range(1, min(_NEIGHBOURS, n - 1) + 1):
            keep(position[:-distance], position[distance:])
        writes = self._writes[self.shadow]
        # The last store before each event (not itself), and the first after it.
        before = np.maximum.accumulate(np.where(writes, position, -1))
        before = np.concatenate([[-1], before[:-1]])
        keep(before[before >= 0], position[before >= 0])
        after = np.minimum.accumulate(np.where(writes, position, n)[::-1])[::-1]
        after = np.concatenate([after[1:], [n]])
        keep(position[after < n], after[after < n])
        chosen = np.array(list(found.values()), np.int64).reshape(-1, 2)
        return chosen[:, 0], chosen[:, 1]
