"""The placements of a client's tensors, which tensors are lost, and how many bytes each worker has."""

import contextlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from gt.dispatcher.sharding.placement_log import PlacementLog
from gt.dispatcher.sharding.planning import nbytes
from gt.dispatcher.sharding.stats import ShardingStats
from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import Spec
from gt.stream.instruction_table import INSTRUCTION_TABLE
from gt.stream.instructions import Placed
from gt.stream.layouts import Placement, Replicated, Sharded
from gt.stream.tape_entries import LayoutEvent, RepeatedLayoutEvents

Stream = Iterator[Any]

MAX_LAYOUT_EVENTS = 10_000
"""How many layout events are kept until `layout_events` is called."""


class TensorPlacements:
    """The placements of one client's tensors."""

    def __init__(self, workers: tuple[str, ...], loads: Counter[str], home: str) -> None:
        self.workers = workers
        self.loads = loads
        """By worker: bytes of all clients' tensors that are placed on it alone."""
        self.home = home
        self.tensor_sharded: dict[int, TensorHandle] = {}
        """By tensor: its handle, which has its placement."""
        self.lost: dict[int, str] = {}
        """The tensors that are lost, and the causes."""
        self._layout_events: deque[tuple[int, TensorHandle] | RepeatedLayoutEvents] = deque(
            maxlen=MAX_LAYOUT_EVENTS
        )
        self.stats = ShardingStats()
        self._placement_log: PlacementLog | None = None
        """The log of placements, while `logging_placement` is active."""

    # --- workers that join and leave ---

    def add_worker(self, name: str) -> None:
        """Use another worker for tensors that are made from now on."""
        self.workers = (*self.workers, name)

    def remove_worker(self, name: str, why: str) -> Stream:
        """Remove a worker that has left: tensors of which it had the only copy of a part are lost.

        Yields the instructions that free the other parts of these.
        """
        self.workers = tuple(worker for worker in self.workers if worker != name)
        self.home = "" if self.home == name else self.home
        for tensor, handle in list(self.tensor_sharded.items()):
            for number, rest in handle.remove_worker(name):
                yield Placed(rest, (number,) * len(rest))
            if not handle.versions:
                del self.tensor_sharded[tensor]
                self.lost[tensor] = why

    def layout_events(self) -> list[LayoutEvent | RepeatedLayoutEvents]:
        """The layouts of the tensors that were made since the last call, for the tape."""
        found = [
            one if isinstance(one, RepeatedLayoutEvents) else LayoutEvent(one[0], *layout_of(one[1]))
            for one in self._layout_events
        ]
        self._layout_events.clear()
        return found

    def add_layout_events(self, events: RepeatedLayoutEvents) -> None:
        """Add the layout events of a repeat."""
        self._layout_events.append(events)

    @contextlib.contextmanager
    def logging_placement(self) -> Iterator[PlacementLog]:
        """Log how instructions are placed while the context is active."""
        self._placement_log = log = PlacementLog()
        earlier, self._layout_events = self._layout_events, deque()
        try:
            yield log
        finally:
            log.layouts = [
                (one[0], *layout_of(one[1]))
                for one in self._layout_events
                if not isinstance(one, RepeatedLayoutEvents)
            ]
            earlier.extend(self._layout_events)
            self._layout_events, self._placement_log = earlier, None

    def forget(self) -> None:
        """Drop all tensors. Called when the client has left."""
        for handle in self.tensor_sharded.values():
            self._unload(handle)
        self.tensor_sharded.clear()

    def abandon(self, instructions: Sequence[Any], why: str) -> None:
        """Mark the results of instructions that no worker will execute as lost."""
        for instruction in instructions:
            row = INSTRUCTION_TABLE[type(instruction)]
            for tensor in row.frees(instruction):
                self.lost.pop(tensor, None)
                self.tensor_sharded.pop(tensor, None)
            self.lost.update(dict.fromkeys(row.makes(instruction), why))

    def adopt(self, tensor: int, spec: Spec, worker: str) -> None:
        """Add a tensor that exists on one worker; without a dtype, it is several tensors."""
        if spec.dtype:
            self.tensor_sharded[tensor] = TensorHandle("", spec, Placement(Replicated(), (worker,)), tensor)
        else:
            self.tensor_sharded[tensor] = TensorHandle.of_results(tensor, (worker,))

    def _track(self, tensor: int, spec: Spec, placement: Placement) -> TensorHandle:
        handle = self.tensor_sharded[tensor] = TensorHandle("", spec, placement, tensor)
        self._layout_events.append((tensor, handle))
        if isinstance(placement.layout, Sharded):
            self.stats.sharded_tensors += 1
            self.stats.sharded_bytes += nbytes(spec)
        elif len(placement.workers) == 1:
            handle.loads = True
            self.loads[placement.workers[0]] += nbytes(spec)
        return handle

    def _unload(self, handle: TensorHandle) -> None:
        if len(handle.placement.workers) == 1 and handle.loads:
            self.loads[handle.placement.workers[0]] -= nbytes(handle.spec)
        handle.loads = False


def layout_of(handle: TensorHandle) -> tuple[tuple[int, ...], str, Placement]:
    """A tensor's shape, dtype and own placement."""
    return tuple(handle.spec.shape), handle.spec.dtype, handle.placement
