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
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from gt.transport.protocol import LocalInstruction

fresh_id = itertools.count(1 << 62).__next__
"""A number for a tensor that a modifier makes: no client's own numbers come this far."""


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
        result = [changed for instruction in result for changed in modifier.process(instruction)]
    return result


def stats(modifiers: Sequence[StreamModifier]) -> dict[str, dict[str, Any]]:
    """What modifiers have done, by the name of their class."""
    return {type(modifier).__name__: modifier.get_stats() for modifier in modifiers}


def load(name: str) -> StreamModifier:
    """A modifier by its class's name, as on the command line: `package.module:Class`."""
    module, _, path = name.partition(":")
    if not path:
        raise ValueError(f"a modifier is named package.module:Class, and this is {name!r}")
    return getattr(importlib.import_module(module), path)()
