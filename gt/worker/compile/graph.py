"""A sequence as a function that can be compiled.

Its arguments are the tensors from outside, and a vector of the numbers that may differ between calls; it
returns the tensors that are needed afterwards. Random numbers are drawn before the call: they depend on their
seed alone, so they are tensors from outside.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gt.ops import TABLE, Spec
from gt.ops.aten import RESULTS
from gt.ops.run_time import is_random, without_seeds
from gt.stream.repeats import Repeat
from gt.stream.sequences import HotSequence
from gt.worker.engine.base import Engine, attributes

Functions = Mapping[str, Callable[..., Any]]
"""The functions of an engine, by op."""


class Node(msgspec.Struct, frozen=True, array_like=True):
    """One op of a graph. An input is a node's number or, below 0, a tensor from outside: -1 is the first."""

    op: str
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    numbers: dict[str, int]
    """Attributes that are given at run time: their indices in the vector of numbers."""
    drawn: int = 0
    """The reference of the tensor from outside that has its random numbers; 0 if it needs none."""


class Graph(msgspec.Struct, frozen=True):
    """The input of a compiler."""

    nodes: tuple[Node, ...]
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    """The shapes and dtypes of the tensors from outside."""
    outputs: tuple[int, ...]
    """The nodes whose results are needed afterwards."""
    numbers: int
    """How many numbers are given at run time."""
    threads: int = 1
    """The number of threads that will compute it."""

    @property
    def key(self) -> str:
        """A hash of the graph, equal in every run."""
        return hashlib.sha256(msgspec.msgpack.encode(self, order="deterministic")).hexdigest()[:24]


MADE, DRAWN = -1, -2
"""Tensors from outside that are no input of the sequence: the result of a random op without inputs, and the
random numbers of an op with inputs. Both are drawn before the function is called."""


@dataclasses.dataclass
class GraphMapping:
    """Maps the nodes, inputs and numbers of a graph to the steps of its sequence."""

    nodes: list[Node] = dataclasses.field(default_factory=list)
    steps: list[int] = dataclasses.field(default_factory=list)
    """For each node: the index of its step in the sequence."""
    outside: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    """For each tensor from outside: its index among those of the sequence, or MADE or DRAWN; and the step
    that uses or makes it first."""
    numbers: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    """For each number given at run time: the step and the attribute."""
    fixed: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    """For each float that is part of the graph: the step and the attribute. Another value is another
    graph."""

    @functools.cached_property
    def numbers_of(self) -> dict[int, list[tuple[int, str]]]:
        """By step: its numbers that are given at run time, each with its attribute."""
        found: dict[int, list[tuple[int, str]]] = {}
        for n, (index, name) in enumerate(self.numbers):
            found.setdefault(index, []).append((n, name))
        return found

    def nodes_for(self, repeat: Repeat) -> tuple[Node, ...]:
        """The nodes, with the floats of a repeat that are part of the graph."""
        nodes, node_of = list(self.nodes), {index: n for n, index in enumerate(self.steps)}
        for index, name in self.fixed:
            n = node_of[index]
            own = {**nodes[n].attrs, name: (repeat.attrs(index) or {})[name]}
            nodes[n] = msgspec.structs.replace(nodes[n], attrs=own)
        return tuple(nodes)

    @property
    def made(self) -> list[tuple[int, int]]:
        """The tensors from outside that are results of random ops, each with the index of its step."""
        return [(n, index) for n, (which, index) in enumerate(self.outside) if which == MADE]


def mapping_of(sequence: HotSequence, functions: Functions) -> GraphMapping:
    """The mapping from a sequence to its graphs."""
    mapping = GraphMapping()
    names: dict[int, int] = {}
    """By reference in the sequence: the reference in the graph."""

    def from_outside(which: int, index: int) -> int:
        mapping.outside.append((which, index))
        return -len(mapping.outside)

    for index, step in enumerate(sequence.steps):
        attrs = step.attrs or {}
        if not attrs.keys() <= attributes(step.op):  # as `Worker.execute_each` checks single ops
            raise TypeError(f"{step.op} has no attribute {', '.join(attrs.keys() - attributes(step.op))}")
        function = functions[step.op]
        draws = getattr(function, "draws", None)
        if draws is not None and draws(attrs):
            raise NotImplementedError(f"compiled code does not draw the random numbers of {step.op}")
        random = is_random(attrs)
        if random and not step.inputs:
            names[index] = from_outside(MADE, index)
            continue
        for ref in step.inputs:
            if ref < 0 and ref not in names:
                names[ref] = from_outside(-1 - ref, index)
        if step.op == "specs":
            raise NotImplementedError("compiled code does not preserve strides, which specs reads")
        row = TABLE.get(step.op)
        run_time = getattr(function, "run_time", ()) if row is None else row.compiled_numbers or ()
        numbers: dict[str, int] = {}
        for name, value in attrs.items():
            if type(value) is float and name in run_time:
                numbers[name] = len(mapping.numbers)
                mapping.numbers.append((index, name))
            elif type(value) is float:
                mapping.fixed.append((index, name))
        without = {RESULTS, *numbers}
        kept = {n: plain(v) for n, v in without_seeds(attrs).items() if n not in without}
        drawn = from_outside(DRAWN, index) if random else 0
        names[index] = len(mapping.nodes)
        inputs = tuple([names[ref] for ref in step.inputs])
        mapping.nodes.append(Node(step.op, inputs, kept, numbers, drawn))
        mapping.steps.append(index)
    return mapping


def plain(value: Any) -> Any:
    """An attribute with lists in place of tuples, as after decoding a message."""
    return [plain(one) for one in value] if isinstance(value, tuple | list) else value


def specs_of(nodes: Sequence[Node], inputs: Sequence[Spec], engine: Engine) -> list[Any]:
    """The spec of each node's result; a tuple of them for an op with several results."""
    found: list[Any] = []
    for node in nodes:
        given = [found[i] if i >= 0 else inputs[-i - 1] for i in node.inputs]
        found.append(engine.infer(node.op, given, {**node.attrs, **dict.fromkeys(node.numbers, 1.5)}))
    return found


def function_of(graph: Graph, functions: Functions) -> Callable[..., tuple[Any, ...]]:
    """The graph as a Python function of its tensors and, last, the vector of its numbers."""

    def run(*tensors: Any) -> tuple[Any, ...]:
        *given, vector = tensors
        values: list[Any] = []
        for node in graph.nodes:
            inputs = [values[i] if i >= 0 else given[-i - 1] for i in node.inputs]
            attrs = node.attrs | {name: vector[index] for name, index in node.numbers.items()}
            function: Any = functions[node.op]
            if node.drawn:
                function, attrs["drawn"] = function.given, given[-node.drawn - 1]
            values.append(_apply(function, node, inputs, attrs))
        return tuple([values[n] for n in graph.outputs])

    return run


_UNROUNDED = ("mul", "truediv")
"""The ops that do not round a number to half precision before they compute with it."""


def _apply(function: Callable[..., Any], node: Node, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
    if "scalar" not in attrs:
        return function(*inputs, **attrs)
    (x,), number = inputs, attrs["scalar"]
    dtype = x.dtype
    if "scalar" in node.numbers and dtype.is_floating_point:
        if dtype.itemsize == 2 and node.op in _UNROUNDED:
            x = x.float()
        # A Python number does not change the result's dtype; a tensor without dimensions might.
        number = number.to(x.dtype)
    elif "scalar" in node.numbers:
        number = number.float()
    result = function(number, x) if attrs["reflected"] else function(x, number)
    return result if x.dtype == dtype else result.to(dtype)
