"""Running a program with and without replay of gradient rules, and comparing its instructions."""

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gt
from gt.autograd.backward_replay import GradientPlans, rules
from gt.autograd.graph import GRAPH
from gt.client import Client
from gt.client import session as session_module
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream.instructions import Op, Site


class Seen:
    """A modifier that keeps what passes."""

    def __init__(self) -> None:
        self.instructions: list[Any] = []

    def process(self, cmd: Any) -> Iterator[Any]:
        self.instructions.append(cmd)
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {}


class NoPlans(GradientPlans):
    """Applies the rules of every node."""

    def gradients(self, node: Any, g: Any) -> Any:
        return rules(node, g)


@contextlib.contextmanager
def using(plans: GradientPlans) -> Iterator[Seen]:
    """A new session whose gradient plans are these."""
    seen = Seen()
    client = Client(LocalConnection(LocalServer("numpy")), [seen])
    before, session_module._current = session_module._current, client
    others, GRAPH._gradient_plans = GRAPH._gradient_plans, plans
    try:
        yield seen
    finally:
        GRAPH._gradient_plans = others
        session_module._current = before
        client.close()


class Counting(GradientPlans):
    """Counts how many nodes were recorded, and how many were replayed."""

    recorded = replayed = 0

    def _replay(self, plan: Any, node: Any, g: Any, known: Any) -> Any:
        self.replayed += 1
        return super()._replay(plan, node, g, known)

    def _record(self, node: Any, g: Any) -> Any:
        self.recorded += 1
        return super()._record(node, g)


def run(program: Callable[[], Any], plans: GradientPlans) -> tuple[list[Any], set[int], Any]:
    """The instructions that a program issued, the tensors that were freed, and its result."""
    with using(plans) as seen:
        gt.manual_seed(3)
        result = program()
        gc.collect()
    lines = {one.number: one.where for one in seen.instructions if type(one) is Site}
    ops = [(one, lines[one.site]) for one in seen.instructions if type(one) is Op]
    freed = [one for one in seen.instructions if isinstance(one, int)]
    assert len(freed) == len(set(freed)), "something was freed twice"
    said = [(one.result, one.op, one.inputs, str(one.attrs), line) for one, line in ops]
    return said, set(freed), result


def check(program: Callable[[], Any], at_least: int = 1) -> Counting:
    """A program issues, frees and computes the same with and without replay of `at_least` nodes."""
    ops, freed, result = run(program, NoPlans())
    plans = Counting()
    ops_again, freed_again, again = run(program, plans)
    assert ops_again == ops
    assert freed_again == freed
    np.testing.assert_equal(again, result)
    assert plans.replayed >= at_least
    return plans


def leaf(*shape: int) -> Any:
    count = int(np.prod(shape))
    data = np.linspace(-1, 2, count, dtype=np.float32).reshape(shape)
    return gt.tensor(data, requires_grad=True)


def forget(*leaves: Any) -> None:
    for one in leaves:
        one.grad = None
