"""Notes on how instructions were placed: what one has to know to place them again without planning."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from gt.ops import Spec
from gt.ops.split import Attrs, Shard, Step
from gt.transport.layouts import Placement
from gt.transport.protocol import Op


class Rule(NamedTuple):
    """How an op of a worker's follows from the op that it is a part of."""

    cmd: Op
    steps: Callable[[str, Attrs, Shard], list[Step]]
    shard: Shard
    number: int
    """Which of the steps it is."""

    def attrs(self, given: Attrs | None) -> Attrs | None:
        """The worker's attributes, if these are those of the whole."""
        return self.steps(self.cmd.op, given or {}, self.shard)[self.number][1] or None


class Creation(NamedTuple):
    """What the policy was asked, and said, of a tensor that is made out of nothing."""

    spec: Spec
    placement: Placement
    loads: Counter[str]
    home: str


class Notes:
    """What was written down."""

    def __init__(self) -> None:
        self._rules: dict[int, tuple[Op, Rule]] = {}
        """By identity of the op, which is kept, so that it stays the only one with that."""
        self.creations: list[Creation] = []
        self.laid: list[tuple[int, tuple[int, ...], str, Placement]] = []
        """Of every tensor that was made: its number, its shape and dtype, and how it lies."""

    def follows(self, op: Op, rule: Rule) -> None:
        """This op of a worker's comes from another by a rule."""
        self._rules[id(op)] = op, rule

    def rule(self, op: Any) -> Rule | None:
        """How an op of a worker's came about, if its attributes are not simply those of the whole."""
        found = self._rules.get(id(op))
        return None if found is None else found[1]
