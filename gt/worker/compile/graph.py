"""A sequence as a function that can be compiled.

Its arguments are the tensors from outside, and a vector of the numbers that may differ between calls; it
returns the tensors that are needed afterwards. Random numbers are drawn before the call: they depend on their
seed alone, so they are tensors from outside.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gt.ops import TABLE, Spec
from gt.ops.run_time import is_random, without_seeds
from gt.stream.sequences import HotSequence
from gt.worker.engine.base import attributes

Functions = Mapping[str, Callable[..., Any]]
"""The functions of an engine, by op."""


class Node(msgspec.Struct, frozen=True, array_like=True):
    """One op of a graph. An input is a node's number or, below 0, a tensor from outside: -1 is the first."""

    op: str
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    numbers: dict[str, int]
    """Attributes that are given at run time, by their place among the numbers."""
    drawn: int = 0
    """Which tensor from outside holds its random numbers, if it draws some; else 0."""


class Graph(msgspec.Struct, frozen=True):
    """The input of a compiler."""

    nodes: tuple[Node, ...]
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    """The shapes and dtypes of the tensors from outside."""
    outputs: tuple[int, ...]
    """The nodes whose results are needed afterwards."""
    numbers: int
    """The number of numbers that are given at run time."""
    threads: int = 1
    """The number of threads that will compute it."""

    @property
    def key(self) -> str:
        """A name that equal graphs have in common, in every run."""
        return hashlib.sha256(msgspec.msgpack.encode(self, order="deterministic")).hexdigest()[:24]


MADE, DRAWN = -1, -2
"""Tensors from outside that are no input of the sequence: the result of a random op without inputs, and the
random numbers of an op with inputs. Both are drawn before the function is called."""


@dataclasses.dataclass
class Layout:
    """Where in a sequence's instructions everything is that a graph of it needs."""

    nodes: list[Node] = dataclasses.field(default_factory=list)
    places: list[int] = dataclasses.field(default_factory=list)
    """For each node, its step."""
    outside: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    """For each tensor from outside: which of the sequence's it is, or MADE or DRAWN, and by which step."""
    numbers: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    """For each number given at run time: the step and the attribute."""
    fixed: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    """For each float that is part of the graph: the same. If one changes, it is another graph."""

    @property
    def made(self) -> list[tuple[int, int]]:
        """The tensors from outside that a step makes, and which."""
        return [(n, place) for n, (which, place) in enumerate(self.outside) if which == MADE]


def layout_of(sequence: HotSequence, functions: Functions) -> Layout:
    """The layout of a sequence's graphs."""
    layout = Layout()
    names: dict[int, int] = {}
    """From the sequence's numbers of tensors to the graph's."""

    def from_outside(which: int, place: int) -> int:
        layout.outside.append((which, place))
        return -len(layout.outside)

    for place, step in enumerate(sequence.steps):
        attrs = step.attrs or {}
        if not attrs.keys() <= attributes(step.op):  # as for an op by itself: see there
            raise TypeError(f"{step.op} has no attribute {', '.join(attrs.keys() - attributes(step.op))}")
        random = is_random(attrs)
        if random and not step.inputs:
            names[place] = from_outside(MADE, place)
            continue
        for ref in step.inputs:
            if ref < 0 and ref not in names:
                names[ref] = from_outside(-1 - ref, place)
        run_time = ("scalar",) if step.op != "pow" else ()
        run_time = getattr(functions[step.op], "run_time", run_time)
        numbers: dict[str, int] = {}
        for name, value in attrs.items():
            if type(value) is float and name in run_time:
                numbers[name] = len(layout.numbers)
                layout.numbers.append((place, name))
            elif type(value) is float:
                layout.fixed.append((place, name))
        kept = {n: plain(v) for n, v in without_seeds(attrs).items() if n not in numbers}
        drawn = from_outside(DRAWN, place) if random else 0
        names[place] = len(layout.nodes)
        inputs = tuple([names[ref] for ref in step.inputs])
        layout.nodes.append(Node(step.op, inputs, kept, numbers, drawn))
        layout.places.append(place)
    return layout


def plain(value: Any) -> Any:
    """A value as it comes out of a message."""
    return [plain(one) for one in value] if isinstance(value, tuple | list) else value


def specs_of(nodes: Sequence[Node], inputs: Sequence[Spec]) -> list[Spec]:
    """The spec of each node's result."""
    found: list[Spec] = []
    for node in nodes:
        given = tuple([found[i] if i >= 0 else inputs[-i - 1] for i in node.inputs])
        found.append(TABLE[node.op].infer(given, {**node.attrs, **dict.fromkeys(node.numbers, 1.5)}))
    return found


def function_of(graph: Graph, functions: Functions) -> Callable[..., tuple[Any, ...]]:
    """The graph as a Python function of its tensors and, last, the vector of its numbers."""

    def run(*tensors: Any) -> tuple[Any, ...]:
        *given, vector = tensors
        values: list[Any] = []
        for node in graph.nodes:
            inputs = [values[i] if i >= 0 else given[-i - 1] for i in node.inputs]
            attrs = node.attrs | {name: vector[place] for name, place in node.numbers.items()}
            function: Any = functions[node.op]
            if node.drawn:
                function, attrs["drawn"] = function.given, given[-node.drawn - 1]
            values.append(_apply(function, node, inputs, attrs))
        return tuple([values[n] for n in graph.outputs])

    return run


def _apply(function: Callable[..., Any], node: Node, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
    if "scalar" not in attrs:
        return function(*inputs, **attrs)
    (x,), number = inputs, attrs["scalar"]
    if "scalar" in node.numbers and x.dtype.is_floating_point:
        # A Python number leaves the tensor's dtype alone; a tensor without dimensions might not.
        number = number.to(x.dtype)
    elif "scalar" in node.numbers:
        number = number.float()
    return function(number, x) if attrs["reflected"] else function(x, number)
