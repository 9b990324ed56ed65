"""Stream modifiers: instructions in, instructions out. Client, dispatcher and worker each take some.

    class Counter:
        def __init__(self):
            self.seen = 0

        def process(self, cmd):
            self.seen += 1
            yield cmd

        def get_stats(self):
            return {"seen": self.seen}

docs/writing-a-stream-modifier.md says how to write and install one.
"""

import importlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from gt.transport.protocol import CreateTensor, LocalInstruction, Lost, Op, Upload

fresh_id = itertools.count(1 << 62).__next__
"""A number for a tensor that a modifier makes: no client's own numbers come this far."""


BLOCK = 1 << 20
fresh_block = itertools.count((1 << 62) + (1 << 61), BLOCK).__next__
"""The first of `BLOCK` numbers that are nobody else's."""


class StreamModifier(Protocol):
    """Changes a stream: pure, without a buffer, one instruction at a time."""

    def process(self, cmd: Any) -> Iterator[Any]:
        """The instructions that take this one's place: itself, others, several or none."""
        ...

    def get_stats(self) -> dict[str, Any]:
        """What it has done."""
        ...


def through(
    modifiers: Sequence[StreamModifier], instructions: Sequence[LocalInstruction]
) -> list[LocalInstruction]:
    """What comes out when instructions pass through modifiers, one after the other."""
    result = list(instructions)
    for modifier in modifiers:
        result = [changed for instruction in result for changed in _through(modifier, instruction)]
    return result


def _through(modifier: StreamModifier, instruction: LocalInstruction) -> list[LocalInstruction]:
    """What a modifier makes of an instruction. If it raises, the tensor is lost, with that as the cause."""
    try:
        return list(modifier.process(instruction))
    except Exception as error:  # noqa: BLE001 - whatever it is, it reaches who reads the tensor
        if not isinstance(instruction, Op | CreateTensor | Upload):
            return [instruction]
        name = type(modifier).__name__
        why = f"the stream modifier {name} failed on {instruction}: {type(error).__name__}: {error}"
        return [Lost([instruction.result], why)]


def stats(modifiers: Sequence[StreamModifier]) -> dict[str, dict[str, Any]]:
    """What modifiers have done, by the name of their class."""
    return {type(modifier).__name__: modifier.get_stats() for modifier in modifiers}


LAYERS = ("client", "dispatcher", "worker")

Modifiers = Mapping[str, Sequence["StreamModifier | str"]]
"""For each layer its modifiers, in order: themselves, or their classes' names."""


def check(modifiers: Modifiers | None) -> Modifiers:
    """Modifiers by layer, if the layers are layers."""
    for layer in modifiers or {}:
        if layer not in LAYERS:
            raise ValueError(f"a modifier is for a layer, {', '.join(LAYERS)}, and not for {layer!r}")
    return modifiers or {}


def instances(modifiers: Sequence["StreamModifier | str"]) -> list[StreamModifier]:
    """Modifiers themselves, made from their classes' names where need be."""
    return [load(one) if isinstance(one, str) else one for one in modifiers]


def names(modifiers: Sequence["StreamModifier | str"]) -> list[str]:
    """Modifiers by name, as another process needs them."""
    for one in modifiers:
        if not isinstance(one, str):
            raise TypeError(
                f"a modifier for another process is named, as 'package.module:Class', and this is {one!r}"
            )
    return [one for one in modifiers if isinstance(one, str)]


def load(name: str) -> StreamModifier:
    """A modifier by its class's name, as on the command line: `package.module:Class`."""
    module, _, path = name.partition(":")
    if not path:
        raise ValueError(f"a modifier is named package.module:Class, and this is {name!r}")
    return getattr(importlib.import_module(module), path)()
