"""The sharding rules of ops whose rows name none: by kind."""

from gt.ops.row import Row, Spec
from gt.ops.sharding.elementwise import creation, pointwise
from gt.ops.sharding.split import Attrs, Rule, Split


def gathers(inputs: tuple[Spec, ...], attrs: Attrs, out: Spec) -> list[Split]:
    """No split: the op is computed on all of its inputs."""
    return []


KINDS: dict[str, Rule] = {
    "UnaryOp": pointwise,
    "BinaryOp": pointwise,
    "TernaryOp": pointwise,
    "CreateTensor": creation,
}
"""The rule of each kind of op."""


def rule_of(row: Row) -> Rule:
    """The rule of an op whose row names none; an op of another kind is computed on whole inputs."""
    return KINDS.get(row.kind) or gathers
