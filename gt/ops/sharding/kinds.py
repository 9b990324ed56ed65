"""The default sharding rules, by kind of op."""

from gt.ops.row import Row, Spec
from gt.ops.sharding.elementwise import creation, pointwise
from gt.ops.sharding.split import Attrs, Rule, Split


def gathers(inputs: tuple[Spec, ...], attrs: Attrs, out: Spec) -> list[Split]:
    """No split: the op is computed on all of its inputs."""
    return []


RULES_BY_KIND: dict[str, Rule] = {
    "UnaryOp": pointwise,
    "BinaryOp": pointwise,
    "TernaryOp": pointwise,
    "CreateTensor": creation,
}
"""The rule of each kind of op."""


def rule_of(row: Row) -> Rule:
    """The default rule of a kind of op; ops of other kinds are computed on whole inputs."""
    return RULES_BY_KIND.get(row.kind) or gathers
