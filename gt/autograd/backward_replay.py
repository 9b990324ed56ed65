"""Backward replay: the ops that a node's gradient rules issue are recorded once, and reissued for equal ones.

In a training loop, every backward pass has nodes of the same kinds. The ops that gradient rules issue
depend only on the node's op, its attributes, the shapes and dtypes of its values, and which gradients are
needed. So they are recorded when such a node occurs for the second time (`_record`), with placeholders for
tensors, and reissued from then on (`_replay`), in a fraction of the time that the rules take.
"""

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from gt.ops import TABLE
from gt.ops.run_time import is_random, seeds_of, without_seeds
from gt.stream.instructions import LocalInstruction, Op

if TYPE_CHECKING:
    from gt.autograd.graph import TapeNode
    from gt.ops import Spec
    from gt.tensors.base import Value

MAX_GRADIENT_PLANS = 8192
"""The largest number of plans kept; with more, all are dropped, because the program's shapes keep
changing."""


class Issued(NamedTuple):
    """An op that a gradient rule issued. Its inputs are numbers of tensors, as in `GradientPlan`."""

    op: str
    inputs: list[int]
    attrs: dict[str, Any] | None
    seeded: bool
    """Whether its seed is the node's, which may differ between nodes."""


class Gradient(NamedTuple):
    """The gradient of one input of a node."""

    tensor: int
    spec: "Spec"
    same: int
    """The first input that has the same tensor as its gradient."""


class GradientPlan(NamedTuple):
    """The ops that the gradient rules of one kind of node issue.

    Tensors have numbers: 0 is the gradient of the node's output, then come the node's values, then the
    results of the ops, in order.
    """

    steps: list[Issued | int]
    """Ops and, as numbers, the tensors that are freed."""
    gradients: "list[Gradient | None]"
    """For each input, its gradient; None if there is none."""


class GradientPlans:
    """The plans of all kinds of nodes that occurred more than once."""

    def __init__(self) -> None:
        self._plans: dict[Any, GradientPlan | None] = {}
        """None for a kind that cannot be replayed."""
        self._seen: set[Any] = set()

    def gradients(self, node: "TapeNode", g: "Value") -> "list[Value | None]":
        """The gradients of a node's inputs, from that of its output; None where none is needed or exists."""
        # A signal may be due before any op, and which one depends on more than the node.
        if g.client is not node.values[-1].client or g.client.uses_signals:
            return rules(node, g)
        ids = [g.id, *[value.id for value in node.values]]
        key = _key(node, g, ids)
        try:
            plan = self._plans.get(key)
        except TypeError:  # an attribute that cannot be a key
            return rules(node, g)
        if plan is not None:
            return self._replay(plan, node, g, ids)
        if key in self._plans or key not in self._seen:
            self._seen.add(key)
            if len(self._seen) > MAX_GRADIENT_PLANS:
                self._seen.clear()
                self._plans.clear()
            return rules(node, g)
        made, self._plans[key] = self._record(node, g)
        return made

    def _replay(
        self, plan: GradientPlan, node: "TapeNode", g: "Value", known: list[int]
    ) -> "list[Value | None]":
        """Issue a plan's ops. `known` are the ids of the gradient and the node's values: the first
        numbers."""
        client, given, site = g.client, len(known), node.values[-1].site
        next_id, emit = client.next_id, client.emit
        try:
            for step in plan.steps:
                if type(step) is int:
                    freed, known[step] = known[step], -1
                    emit(freed)
                    continue
                op, inputs, attrs, seeded = step  # type: ignore[misc] - it is no int
                if seeded and attrs is not None:
                    attrs = {**attrs, **seeds_of(node.attrs)}
                number = next_id()
                emit(Op(number, op, tuple([known[n] for n in inputs]), attrs, site))
                known.append(number)
        except BaseException:
            for number in known[given:]:
                if number >= 0:
                    emit(number)
            raise
        made: list[Value | None] = []
        for index, gradient in enumerate(plan.gradients):
            if gradient is None:
                made.append(None)
                continue
            number, spec, same = gradient
            if same != index:
                made.append(made[same])
            elif number >= given:
                made.append(type(g)(client, known[number], spec, site))
            else:
                made.append(node.values[number - 1] if number else g)
        if known[-1] >= client.next_flush:
            client.next_flush = known[-1] + client.flush_ready()
        return made

    def _record(self, node: "TapeNode", g: "Value") -> "tuple[list[Value | None], GradientPlan | None]":
        """Apply the rules; returns the gradients, and the plan of the issued ops if they can be replayed."""
        thread, recorded, results = threading.get_ident(), [], set()

        def record(instruction: LocalInstruction) -> None:
            # Other threads may use the same client.
            if type(instruction) is int:
                if instruction in results:
                    recorded.append(instruction)
            elif thread == threading.get_ident():
                recorded.append(instruction)
                if type(instruction) is Op:
                    results.add(instruction.result)

        g.client.add_listener(record)
        try:
            made = rules(node, g)
        finally:
            g.client.remove_listener(record)
        return made, _plan(node, g, recorded, made)


def rules(node: "TapeNode", g: "Value") -> "list[Value | None]":
    """The gradients of a node's inputs as its row's rules compute them, in the dtypes of the inputs."""
    row, gradient, made = TABLE[node.op], g.tensor(), []
    for index, edge in enumerate(node.edges):
        part = None if edge is None else row.gradient(gradient, node, index)
        if part is not None and part._value.spec.dtype != node.values[index].spec.dtype:
            part = part.to(node.values[index].spec.dtype)
        made.append(None if part is None else part._value)
    return made


def _key(node: "TapeNode", g: "Value", ids: list[int]) -> tuple[Any, ...]:
    """Equal for nodes whose rules issue the same ops. `ids` are those of g and of the node's values."""
    attrs = node.attrs
    same = None if len(set(ids)) == len(ids) else tuple(map(ids.index, ids))
    specs, absent = [value.spec for value in node.values], [edge is None for edge in node.edges]
    key = node.op, same, g.spec, *specs, *absent
    if not attrs:
        return key
    # For Python 1, 1.0 and True are equal, and so are 0.0 and -0.0.
    found = [
        (value or repr(value)) if type(value) is float else value for value in without_seeds(attrs).values()
    ]
    return *key, *attrs, *found, *map(type, attrs.values())


def _plan(
    node: "TapeNode", g: "Value", recorded: list[Any], made: "list[Value | None]"
) -> GradientPlan | None:
    """The plan that issues the instructions which were recorded; None if there is none."""
    ids = [g.id, *[value.id for value in node.values]]
    numbers = {tensor: ids.index(tensor) for tensor in ids}
    total, steps, kept = len(ids), [], set()
    for one in recorded:
        if type(one) is int:
            steps.append(numbers[one])
            kept.discard(one)
            continue
        if type(one) is not Op or not numbers.keys() >= set(one.inputs):
            return None  # it reads a tensor that is neither the node's nor of these rules, or is no op
        seeded = is_random(one.attrs)
        if seeded and seeds_of(one.attrs or {}) != seeds_of(node.attrs):
            return None
        steps.append(Issued(one.op, [numbers[tensor] for tensor in one.inputs], one.attrs, seeded))
        numbers[one.result] = total
        total += 1
        kept.add(one.result)
    if not numbers.keys() >= {value.id for value in made if value is not None}:
        return None
    if kept != {value.id for value in made if value is not None} - set(ids):
        return None  # the rules keep a result elsewhere: a replay would never free it
    places = [None if value is None else numbers[value.id] for value in made]
    gradients = [
        None if value is None else Gradient(numbers[value.id], value.spec, places.index(numbers[value.id]))
        for value in made
    ]
    return GradientPlan(steps, gradients)
