"""Programs whose repeats are placed on several workers."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gt
from gt.stream.instructions import Op, Site
from gt.stream.repeats import repeat_of
from gt.stream.sequences import HotSequence, Step
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer


def captured(program: Callable[[], Any], workers: int = 2, policy: Any = None) -> tuple[list[Any], Any]:
    """The batches that a program sends to a dispatcher, with repeats in them, and its results."""
    server = ThreadServer(workers, "numpy", policy=policy)
    batches: list[Any] = []
    receive = server.dispatcher.receive

    def listen(client: str, sequence: int, instructions: Any, frames: Any = ()) -> None:
        batches.append(list(instructions))
        receive(client, sequence, instructions, frames)

    server.dispatcher.receive = listen
    with using(server):
        return batches, program()


def mlp(steps: int = 16, rate: Callable[[int], float] = lambda n: 0.1) -> list[float]:
    """Losses of a network that is spread over workers; in evaluation every now and then."""
    gt.manual_seed(3)
    nn, rng = gt.nn, np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(48, 64), nn.Tanh(), nn.Dropout(0.25), nn.Linear(64, 6))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = gt.from_numpy(rng.standard_normal((64, 48), np.float32))
    y = gt.from_numpy(rng.integers(0, 6, 64))
    losses = []
    for n in range(steps):
        optimizer.param_groups[0]["lr"] = rate(n)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [float(loss) for loss in losses]


class Steps:
    """Writes a loop over split tensors, by hand: a step is a chain of ops, each of which frees its input.

    The first one is a product with a number: the learning rate, so to say.
    """

    def __init__(self, ops: int, shape: Sequence[int] = (32, 4)) -> None:
        pick = random.Random(7)
        self.ops = ["mul"] + [pick.choice(["add", "sub", "tanh", "sin", "maximum"]) for _ in range(ops - 1)]
        self.templates: dict[Any, Any] = {}
        self.attrs = {"shape": list(shape), "value": 1.0, "dtype": "float32"}
        self.x = 1
        self.next = 2

    def begin(self) -> list[Any]:
        return [Site(0, "here.py:1"), Op(0, "full", (), self.attrs, 0), Op(1, "full", (), self.attrs, 0)]

    def step(self, rate: float) -> list[Any]:
        out: list[Any] = []
        scaled: dict[str, Any] = {"scalar": rate, "reflected": False}
        for op in self.ops:
            result, self.next = self.next, self.next + 1
            inputs = (self.x,) if op in ("mul", "tanh", "sin") else (self.x, 0)
            out += [Op(result, op, inputs, scaled if op == "mul" else None, 0), self.x]
            self.x = result
        if not self.templates:
            self.sequence = HotSequence(
                Step(one.op, (n - 1, -2)[: len(one.inputs)], one.attrs) for n, one in enumerate(out[::2])
            )
        before, repeat = repeat_of(
            self.sequence, [one for one in out if isinstance(one, Op)], out, self.templates
        )
        return [*before, repeat]
