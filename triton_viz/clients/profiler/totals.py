"""The totals of a launch, to which each chunk is added after it has run."""

import collections
import math
from typing import Any

import numpy as np

from triton_viz.clients.profiler.blocks import SECTOR, Batch, cost_of, distinct_per_lane, regular_steps
from triton_viz.clients.profiler.footprint import Footprint
from triton_viz.clients.profiler.staging import AccessKey, Chunk, Part, Path, parts_of
from triton_viz.clients.utils import Instruction
from triton_viz.core.data import Program
from triton_viz.core.records.tensor_info import TensorInfo

MOST_FOOTPRINT = 1 << 28
"""The most bytes of a launch's footprints. Beyond that, distinct elements are estimated."""


class SiteTotals:
    """The totals of one line and one tensor."""

    def __init__(self, key: AccessKey, tensor: TensorInfo):
        self.path, self.kind = key
        self.tensor = tensor
        self.width = 0
        self.block: tuple[int, ...] = ()
        self.steps: tuple[int, ...] | None = None
        self.irregular = False
        self.possible = self.elements = 0
        self.requests = self.sectors = self.ideal = 0
        self.most_used: tuple[int, ...] = ()
        self.in_programs: float = 0
        self.squares = 0.0
        """The sum of the squares of each program's elements, for the error of a sample."""
        self.exact = True
        self.footprint: Footprint | None = None
        self.half: Footprint | None = None
        """The footprint of half of a sample, to extrapolate its growth."""
        self.hits: list[tuple[np.ndarray, np.ndarray]] = []
        """For atomics: elements, and the number of updates of each."""

    def add(self, part: Part, alignment: int) -> np.ndarray:
        """Count a batch. Returns the number of elements that each lane accessed."""
        batch = part.batch
        self.width, self.block = batch.width, batch.shape
        steps = regular_steps(batch)
        if steps is None or (self.steps is not None and self.steps != steps):
            self.irregular = True
        self.steps = steps
        touched = batch.touched()
        self.possible += part.possible
        self.elements += int(touched.sum())
        cost = cost_of(batch, alignment)
        self.requests += cost.requests
        self.sectors += cost.sectors
        self.ideal += cost.ideal
        used = _most_used(batch)
        self.most_used = tuple(map(max, used, self.most_used)) if self.most_used else used
        if self.kind == "atomic":
            self._count_hits(batch)
        return touched.sum(axis=0)

    def _count_hits(self, batch: Batch) -> None:
        offsets, kept = batch.elements(*np.nonzero(batch.active))
        self.hits.append(np.unique(offsets[kept], return_counts=True))
        if len(self.hits) > 64:
            self.hits = [merged_hits(self.hits)]


def merged_hits(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Merge lists of elements and their numbers of updates."""
    elements, of = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    counts = np.zeros(len(elements), np.int64)
    np.add.at(counts, of, np.concatenate([part[1] for part in parts]))
    return elements, counts


def _most_used(batch: Batch) -> tuple[int, ...]:
    if batch.keep is not None:
        seen: Any = batch.keep[batch.active].reshape(-1, *batch.shape)
        axes = range(1, seen.ndim)
        return tuple(
            int(seen.any(axis=tuple(a for a in axes if a != axis)).sum(axis=1).max(initial=0))
            for axis in axes
        )
    return tuple(
        n if pair is None else max(0, int(np.where(batch.active, pair[1] - pair[0], 0).max()))
        for n, pair in zip(batch.shape, batch.bounds, strict=True)
    )


class LaunchTotals:
    """The totals of one launch."""

    def __init__(self, grid: Program, half: np.ndarray | None = None):
        self.grid = grid
        self.programs = math.prod(grid)
        self.half = half
        """By linear program id, whether a program is in a random half of the sample; None without a
        sample."""
        self.ran = np.zeros(self.programs, bool)
        self.loaded, self.stored, self.flops = (np.zeros(self.programs, np.int64) for _ in range(3))
        """Bytes or flops of each program, by its linear id."""
        self.integers = 0
        self.sites: dict[tuple[AccessKey, str], SiteTotals] = {}
        self.of_instruction: dict[tuple[AccessKey, Instruction], SiteTotals] = {}
        self.of_nothing: dict[tuple[AccessKey, Instruction], int] = collections.defaultdict(int)
        """Elements of completely masked-off blocks, whose tensor is not known, by site."""
        self.loads_in_programs: dict[str, tuple[float, bool]] = {}
        """For each tensor: the sum over programs of distinct loaded elements, and whether it is exact."""
        self.work: dict[tuple[Path, str, str], int] = {}
        self.loops: dict[tuple[str, int], LoopTotals] = {}
        self._room = MOST_FOOTPRINT

    def commit(self, chunk: Chunk, finished: bool = True) -> None:
        """Add a chunk; if it has not finished, only its accesses."""
        lanes = chunk.lanes
        order = chunk.programs.order
        at: Any = order.all()
        if order.listed is None and (order.step == 1 or order.count == 1):
            at = slice(order.first, order.first + order.count)
        chunk.complete = chunk.complete and finished
        self._commit_accesses(chunk, at)
        if not finished:
            return
        self.ran[at] = True
        self.integers += int(chunk.integers.numbers(lanes).sum())
        for key, amount in chunk.work.items():
            numbers = amount.numbers(lanes)
            self.work[key] = self.work.get(key, 0) + int(numbers.sum())
            self.flops[at] += numbers
        for position, trips in chunk.loops.items():
            total = self.loops.setdefault(position, LoopTotals(trips.counted))
            total.add(trips.entries.numbers(lanes), trips.trips.numbers(lanes))

    def _commit_accesses(self, chunk: Chunk, at: Any) -> None:
        lanes = chunk.lanes
        found: dict[tuple[AccessKey, str], tuple[SiteTotals, list[Batch]]] = {}
        elements: dict[tuple[AccessKey, str], np.ndarray] = {}
        half = None if self.half is None else self.half[at]
        for (key, instruction), staged in chunk.accesses.items():
            for part in parts_of(staged, lanes):
                if part.tensor is None:
                    self.of_nothing[key, instruction] += part.possible
                    continue
                site = self._site(key, part.tensor)
                self.of_instruction.setdefault((key, instruction), site)
                name = part.tensor.name
                alignment = (part.tensor.address - part.tensor.storage[0]) % SECTOR
                elements[key, name] = elements.get((key, name), 0) + site.add(part, alignment)
                found.setdefault((key, name), (site, []))[1].append(part.batch)
                if site.footprint is not None:
                    site.footprint.add(part.batch)
                if site.half is not None and half is not None and half.any():
                    site.half.add(part.batch.restricted(np.flatnonzero(half)))
        in_site: dict[tuple[AccessKey, str], tuple[np.ndarray, bool]] = {}
        loads: dict[str, list[tuple[AccessKey, list[Batch]]]] = {}
        for (key, name), (site, batches) in found.items():
            counts, exact = in_site[key, name] = distinct_per_lane(batches, lanes)
            site.in_programs += float(counts.sum())
            site.exact = site.exact and exact and chunk.complete
            if half is not None:
                site.squares += float(np.square(elements[key, name], dtype=np.float64).sum())
            moved = self.loaded if key[1] == "load" else self.stored
            moved[at] += elements[key, name] * site.width
            if key[1] == "load":
                loads.setdefault(name, []).append((key, batches))
        for name, sites in loads.items():
            if len(sites) == 1:
                counts, exact = in_site[sites[0][0], name]
            else:
                counts, exact = distinct_per_lane([b for _, batches in sites for b in batches], lanes)
            total, all_exact = self.loads_in_programs.get(name, (0.0, True))
            self.loads_in_programs[name] = (
                total + float(counts.sum()),
                all_exact and exact and chunk.complete,
            )
        chunk.accesses, chunk.bytes_staged = {}, 0

    def assign_masked_off(self) -> None:
        """Assign completely masked-off blocks to the tensor that the same instruction accesses elsewhere."""
        for where, possible in self.of_nothing.items():
            if where in self.of_instruction:
                self.of_instruction[where].possible += possible
        self.of_nothing.clear()

    def _site(self, key: AccessKey, tensor: TensorInfo) -> SiteTotals:
        site = self.sites.get((key, tensor.name))
        if site is None:
            site = self.sites[key, tensor.name] = SiteTotals(key, tensor)
            wanted = Footprint.bytes_for(tensor) * (1 if self.half is None else 2)
            if wanted <= self._room:
                self._room -= wanted
                site.footprint = Footprint(tensor)
                site.half = Footprint(tensor) if self.half is not None else None
        return site


class LoopTotals:
    """The totals of one loop."""

    def __init__(self, counted: bool):
        self.counted = counted
        self.least, self.most = math.inf, 0.0
        self.trips = 0

    def add(self, entries: np.ndarray, trips: np.ndarray) -> None:
        """Add the programs of a chunk that entered the loop."""
        came = entries > 0
        if came.any():
            each = trips[came] / entries[came]
            self.least, self.most = min(self.least, float(each.min())), max(self.most, float(each.max()))
        self.trips += int(trips.sum())
