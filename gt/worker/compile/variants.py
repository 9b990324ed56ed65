"""Variants of a repeated sequence: it is compiled separately for each set of shapes, dtypes and fixed
floats."""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gt.ops import Spec
from gt.stream.sequences import HotSequence
from gt.worker.compile.compiled_code import CompiledCode
from gt.worker.compile.graph import Node


@dataclasses.dataclass
class Variant:
    """A sequence on tensors of certain shapes and dtypes, with certain floats."""

    specs: tuple[Spec, ...]
    nodes: tuple[Node, ...]
    """The nodes of its graph, with its own floats where those are part of the graph."""
    draws: list[tuple[int, Any]]
    """The inputs that are random numbers: index, and the function that draws them for a repeat."""
    needed: Counter[frozenset[int]]
    """By set of kept steps: how often it occurred."""
    seconds: float = 0.0
    requested: "Compiled | None" = None
    """The requested compilation that is not ready."""
    compiled: list["Compiled"] = dataclasses.field(default_factory=list)
    """The compiled code, for each set of kept steps that occurs often."""
    numbers: tuple[HotSequence | None, list[float], Any] = (None, [], None)
    """A sequence, its run-time numbers, and the tensor of them. Equal sequences of other clients may have
    others."""
    best_eager: float = math.inf
    """The shortest eager run, in seconds."""
    refusal: str = ""
    """The reason why it is not compiled; empty if it may be."""

    def give_up(self, why: str) -> None:
        """Drop the compiled code, and run eagerly from now on."""
        self.refusal = why
        self.compiled.clear()

    def code_for(self, kept: Sequence[int]) -> "Compiled | None":
        """The compiled code that returns at least these steps' results; None if there is none."""
        return next((one for one in self.compiled if one.kept.issuperset(kept)), None)


@dataclasses.dataclass
class Compiled:
    """A sequence as a compiled function."""

    key: str
    """The key of its graph."""
    kept: frozenset[int]
    """The steps whose results it keeps."""
    outputs: tuple[int, ...]
    """The steps whose results it returns; the other kept ones are random numbers drawn before."""
    nbytes: int
    """The size of these results in bytes."""
    code: CompiledCode | None = None
    kinds: tuple[Any, ...] = ()
    """After the first call, for each result: its `Engine.kind`, or None if it is not contiguous."""
    best: float = math.inf
    """The shortest call, in seconds."""
    replays: int = 0
