"""The placement log: how instructions were placed, so that they can be placed again without planning."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from gt.ops import Spec
from gt.ops.sharding.split import Attrs, Shard, Step
from gt.stream.instructions import Op
from gt.stream.layouts import Placement


class Rule(NamedTuple):
    """Computes the attributes of a worker's op from those of the client's op that it is a part of."""

    cmd: Op
    steps: Callable[[str, Attrs, Shard], list[Step]]
    shard: Shard
    number: int
    """The index of the op among the steps."""

    def attrs(self, given: Attrs | None) -> Attrs | None:
        """The worker's attributes for these attributes of the client's op."""
        return self.steps(self.cmd.op, given or {}, self.shard)[self.number][1] or None


class Creation(NamedTuple):
    """A decision of the policy for a new tensor: its arguments and its result."""

    spec: Spec
    placement: Placement
    loads: Counter[str]
    home: str


class PlacementLog:
    """Records how the instructions of one repeat were placed."""

    def __init__(self) -> None:
        self._rules: dict[int, tuple[Op, Rule]] = {}
        """By the op's `id()`; the op is kept alive so that the `id()` stays unique."""
        self.creations: list[Creation] = []
        self.layouts: list[tuple[int, tuple[int, ...], str, Placement]] = []
        """For each new tensor: its id, shape, dtype and placement."""

    def add_rule(self, op: Op, rule: Rule) -> None:
        """Record the rule for a worker's op."""
        self._rules[id(op)] = op, rule

    def rule(self, op: Any) -> Rule | None:
        """The rule for a worker's op; None if its attributes are those of the client's op."""
        found = self._rules.get(id(op))
        return None if found is None else found[1]
