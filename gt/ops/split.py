"""What a sharding rule says: the ways in which an op can be carried out on parts of its inputs.

A rule is a pure function of the inputs' specs, the attributes and the result's spec; it gives a list of
splits. Each says along which axis every input is cut, where the cut is in the result, and what each worker
does. Whatever the rule, an op can also be carried out on whole inputs, so an empty list is always right.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from gt.ops.row import Spec

Attrs = dict[str, Any]
Step = tuple[str, Attrs | None]
"""An op and its attributes. Of several, each works on the result of the one before."""


class Shard(NamedTuple):
    """One worker's part, along the axis that is cut."""

    number: int
    start: int
    size: int
    """Where it begins in the inputs, and how long it is."""
    out_start: int
    out_size: int
    """The same in the result."""


@dataclass(frozen=True)
class Split:
    """One way to carry out an op in parts."""

    inputs: tuple[int | str | None, ...]
    """For each input: the axis it is cut along, or None if all of it is needed everywhere. "sum": a term of
    it is enough, since the op is linear. "once": all of it for one worker, and zeros for the others."""
    output: int | str
    """The axis along which the results are parts of the result; or how the results are combined to it:
    "sum", "max", "min"; or "owner": only the worker that has the element `position` does anything."""
    length: int
    """How long the axis is that is cut, in the inputs; in the result, if no input is cut."""
    steps: Callable[[str, Attrs, Shard], list[Step]] | None = None
    """What a worker does, if that depends on its part."""
    sizes: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None
    """The sizes of the result's parts from those of the inputs', if they differ."""
    granule: int = 1
    """The inputs' parts must have multiples of this size."""
    nonempty: bool = False
    """Whether no part may be empty: nothing has no largest element."""
    position: int = 0

    @property
    def linear(self) -> bool:
        """Whether it works on terms rather than on parts."""
        return "sum" in self.inputs


Rule = Callable[[tuple[Spec, ...], Attrs, Spec], list[Split]]


def local(change: Callable[[Attrs, Shard], Attrs]) -> Callable[[str, Attrs, Shard], list[Step]]:
    """Steps that are the op itself, with some attributes changed."""
    return lambda op, attrs, shard: [(op, {**attrs, **change(attrs, shard)})]


def replaced(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    """A shape with another size along an axis."""
    return (*shape[:axis], size, *shape[axis + 1 :])


def with_shape(shape: tuple[int, ...], axis: int) -> Callable[[str, Attrs, Shard], list[Step]]:
    """Steps of an op that is told its result's shape."""
    return local(lambda attrs, shard: {"shape": replaced(shape, axis, shard.out_size)})


def linear(count: int, *which: int) -> Split:
    """The op is linear in these inputs together: of terms, it makes terms."""
    return Split(tuple("sum" if i in which else None for i in range(count)), "sum", 0)
