"""What the core needs to know of a language."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from triton_viz.core.columns import Places, Programs
from triton_viz.core.data import Op, TensorInfo
from triton_viz.core.grid.memory import Mask
from triton_viz.core.grid.value import Value
from triton_viz.core.places import Tensors, places_of

if TYPE_CHECKING:
    from triton_viz.core.client import ClientManager, ForLoopCallbacks

Adapter = Callable[..., dict[str, Any]]
"""From a builder and an op's own arguments to the standardized ones that callbacks receive.

What touches memory has an `accessed`. A vectorized client receives it as it is; any other client receives
`tensor`, `offsets` and `mask` instead, as plain arrays of its one program.
"""


class Adopting(Protocol):
    """What knows of tensors that a launch came to have while it ran."""

    adopted: list[TensorInfo]
    """Tensors that are no arguments: pointers led to them, or the kernel allocated them."""


class Accessed:
    """An op's pointers and mask, over lanes. Which elements these are is found out when asked for."""

    def __init__(
        self,
        pointers: Value,
        mask: Mask,
        memory: Adopting,
        stored: Callable[[Value], np.ndarray],
        width: int,
        semantics: frozenset[str] = frozenset(),
    ):
        self.pointers, self.mask, self.width = pointers, mask, width
        self.stored = stored
        """Gives values as they lie in memory behind these pointers."""
        self.semantics = semantics
        """What it means for other programs: any of `atomic`, `acquire` and `release`."""
        self.memory = memory
        self._tensors = Tensors([])

    def locate(self, tensors: Tensors) -> None:
        """Say among which tensors to look."""
        self._tensors = tensors

    @property
    def tensors(self) -> list[TensorInfo]:
        """Those of the launch, and those that pointers in memory lead to."""
        return [*self._tensors.tensors, *self.memory.adopted]

    @cached_property
    def places(self) -> Places:
        """The elements, for each lane."""
        known = Tensors(self.tensors) if self.memory.adopted else self._tensors
        return places_of(self.pointers, self.mask, self.width, known)

    @property
    def tensors_by_name(self) -> dict[str, TensorInfo]:
        """The tensors that `places` may name."""
        return {tensor.name: tensor for tensor in (*self._tensors.tensors, *self.memory.adopted)}

    def of_one_program(self) -> dict[str, Any]:
        """The only program's tensor (None if it touches nothing, or nothing of ours), offsets and mask."""
        found = self.places.at(0)
        tensor = self.tensors_by_name.get(found.tensors[0]) if found.tensors else None
        return {"tensor": tensor, "offsets": found.elements(0), "mask": found.mask(0)}


@dataclasses.dataclass(frozen=True)
class DSL:
    """One backend: where its ops live, what they are, and how its kernels are run."""

    name: str
    namespace: object
    """The class whose attributes are the ops."""
    operations: dict[str, tuple[type[Op], Adapter]]
    """For each op by attribute name: the type of its record, and its adapter."""
    patch_calls: Callable[["ClientManager"], contextlib.AbstractContextManager[None]]
    """Run kernels on our executor, and let them call each other, while inside."""
    patch_loops: Callable[[Sequence["ForLoopCallbacks"]], contextlib.AbstractContextManager[None]]
    """Report loops to these callbacks, while inside."""
    here: Callable[[], "Here"]
    """Where the op is that is being executed on this thread."""
    loops_file: str
    """The file whose functions call the loop callbacks."""
    client_options: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    """By a client's name, with what it is made if it is asked for by that name."""
    checks_itself: bool = False
    """Whether it checks every access of a kernel, and tells clients what is wrong by `issue_callback`."""


@dataclasses.dataclass(frozen=True)
class Here:
    """Where in a launch an op is: which programs, and which iteration of which loops."""

    kernel: Callable
    """The plain Python function of the kernel."""
    programs: Programs
    """Those that run it: the active lanes of a chunk."""
    iterations: tuple[tuple[int, int], ...]
