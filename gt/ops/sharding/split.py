"""Splits: the ways in which an op can be computed on parts of its inputs, which sharding rules return.

A rule is a pure function of the inputs' specs, the attributes and the result's spec; it returns a list of
splits. Each states along which axis every input is cut, where the cut is in the result, and what each worker
does. Every op can also be computed on whole inputs, so an empty list is always correct.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from gt.ops.row import Spec

Attrs = dict[str, Any]
Step = tuple[str, Attrs | None]
"""An op and its attributes. In a list, each step gets the result of the one before."""


class Shard(NamedTuple):
    """One worker's part, along the axis that is cut."""

    number: int
    start: int
    size: int
    """Its start and its size in the inputs."""
    out_start: int
    out_size: int
    """Its start and its size in the result."""


@dataclass(frozen=True)
class Split:
    """One way to compute an op in parts."""

    inputs: tuple[int | str | None, ...]
    """For each input: the axis it is cut along, or None if all of it is needed everywhere. "sum": a term of
    it is enough, since the op is linear. "once": all of it for one worker, and zeros for the others."""
    output: int | str | tuple[int | str | None, ...]
    """The axis along which the results are parts of the result; or how the results are combined to it:
    "sum", "max", "min"; or "owner": only the worker that has the element `position` does anything. For an op
    with several results, this for each of them; None for one that every worker computes all of."""
    length: int
    """The size of the axis that is split: of the inputs' or, if no input is split, of the result's."""
    steps: Callable[[str, Attrs, Shard], list[Step]] | None = None
    """The ops that a worker computes, if they depend on its part."""
    sizes: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None
    """The sizes of the result's parts from those of the inputs', if they differ."""
    granularity: int = 1
    """The inputs' parts must have multiples of this size."""
    nonempty: bool = False
    """Whether no part may be empty: an empty tensor has no largest element, for example."""
    position: int = 0
    units: tuple[int, ...] = ()
    """For each input, then for each result: how many elements along its axis belong to one of `length`. The
    heads of grouped queries are an example. Empty: one everywhere."""

    def unit(self, index: int) -> int:
        """The unit of an input, or, counted after the inputs, of a result."""
        return self.units[index] if self.units else 1

    @property
    def linear(self) -> bool:
        """Whether workers have terms of a sum rather than parts."""
        return "sum" in self.inputs


Rule = Callable[[tuple[Spec, ...], Attrs, Spec], list[Split]]


def local(change: Callable[[Attrs, Shard], Attrs]) -> Callable[[str, Attrs, Shard], list[Step]]:
    """Steps that are the op itself, with some attributes changed."""
    return lambda op, attrs, shard: [(op, {**attrs, **change(attrs, shard)})]


def replaced(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    """A shape with another size along an axis."""
    return (*shape[:axis], size, *shape[axis + 1 :])


def with_shape(shape: tuple[int, ...], axis: int) -> Callable[[str, Attrs, Shard], list[Step]]:
    """Steps of an op that has its result's shape as an attribute."""
    return local(lambda attrs, shard: {"shape": replaced(shape, axis, shard.out_size)})


def linear(count: int, *which: int) -> Split:
    """A split of an op that is linear in these inputs together: of terms of sums, it computes terms."""
    return Split(tuple("sum" if i in which else None for i in range(count)), "sum", 0)
