"""Plans: the cached instruction of an op with certain arguments.

An instruction's form depends on the layouts of an op's tensors and on its other arguments, except floats.
"""

from collections.abc import Sequence
from typing import Any

import torch

from gt.torch.buffers import Layout
from gt.torch.results import Results


class Plan:
    """The instruction of an op with certain arguments, and the layouts of its results."""

    __slots__ = ("attrs", "floats", "inputs", "op", "results")

    def __init__(
        self,
        op: str,
        inputs: list[int],
        attrs: dict[str, Any] | None,
        floats: list[tuple[str, int]],
        results: Results | None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        """Which of the arguments are the instruction's inputs, in its order."""
        self.attrs = attrs
        self.floats = floats
        """Attributes that are floats, and the argument each comes from: their values may differ each time."""
        self.results = results
        """None: the result replaces the elements of the first argument."""


def add_argument(one: Any, flat: list[Any], key: list[Any]) -> None:
    """Add an argument to the flat list, and the part of it that a plan depends on to the key."""
    kind = type(one)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        buffer = one.untyped_storage().tapestry
        key.append(buffer.layout or Layout(tuple(one.shape), one.stride(), one.dtype))
        flat.append(one)
    elif kind is list or kind is tuple:
        key.append(len(one))
        for item in one:
            add_argument(item, flat, key)
    elif kind is float:
        key.append(float)
        flat.append(one)
    else:
        key.append(kind)
        key.append(one)


def flat_and_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """All arguments as a flat list, and the key of a plan for them."""
    flat: list[Any] = []
    key: list[Any] = []
    for one in args:
        add_argument(one, flat, key)
    for name, one in kwargs.items():
        key.append(name)
        add_argument(one, flat, key)
    return flat, tuple(key)


def without_aliases(args: Sequence[Any], seen: set[int] | None = None) -> tuple[Any, ...]:
    """The arguments, with a detached copy in place of each repeated tensor, so that `id()` tells them
    apart."""
    seen = set() if seen is None else seen
    result = []
    for one in args:
        if type(one) is list or type(one) is tuple:
            one = type(one)(without_aliases(one, seen))
        elif type(one) is torch.Tensor or type(one) is torch.nn.Parameter:
            if id(one) in seen:
                one = one.detach()
            seen.add(id(one))
        result.append(one)
    return tuple(result)


def plan_of(
    op: str,
    tensors: list[torch.Tensor],
    attrs: dict[str, Any] | None,
    flat: list[Any],
    results: Results | None,
) -> Plan | None:
    """The plan of this instruction; None if it has an input or float that is not an argument."""
    position = {id(one): n for n, one in enumerate(flat)}
    if any(id(one) not in position for one in tensors):
        return None
    floats = [(name, position[id(one)]) for name, one in (attrs or {}).items() if id(one) in position]
    wanted = sum(type(one) is float for one in flat)
    if len(floats) != wanted or len(position) != len(flat):
        return None
    return Plan(op, [position[id(one)] for one in tensors], attrs, floats, results)
