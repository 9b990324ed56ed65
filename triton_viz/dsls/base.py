"""The interface between the core and a language: `DSL`, and the types that its functions exchange."""

import contextlib
import dataclasses
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from triton_viz.core.data import Op, Program
from triton_viz.core.records.accesses import Tensors, find_accessed_elements
from triton_viz.core.records.columns import AccessedElements, Programs
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.errors import UnsupportedError
from triton_viz.executor.memory import Mask
from triton_viz.executor.value import Value

if TYPE_CHECKING:
    from triton_viz.core.client import Client, ClientManager, ForLoopCallbacks
    from triton_viz.dsls.static_analysis import Analysis

Adapter = Callable[..., dict[str, Any]]
"""Converts an op's own arguments (and its builder) to the standardized ones that callbacks receive.

For an op that accesses memory they include `accessed`. A vectorized client receives it; any other client
receives `tensor`, `offsets` and `mask` in its place, as plain arrays of one program.
"""


class Adopting(Protocol):
    """An object that lists the tensors a launch reached while it ran."""

    @property
    def adopted(self) -> list[TensorInfo]:
        """The tensors that are not arguments: the kernel loaded their addresses, or allocated them."""
        ...


class Accessed:
    """The pointers and mask of an access, over lanes. `elements` is computed on first use."""

    def __init__(
        self,
        pointers: Value,
        mask: Mask,
        memory: Adopting,
        to_memory: Callable[[Value], np.ndarray],
        width: int,
        semantics: frozenset[str] = frozenset(),
    ):
        self.pointers, self.mask, self.width = pointers, mask, width
        self.to_memory = to_memory
        """Converts values to their representation in memory."""
        self.semantics = semantics
        """The memory semantics towards other programs: any of `atomic`, `acquire` and `release`.

        An atomic op without `atomic` is one step in its own program only.
        """
        self.memory = memory
        self._tensors = Tensors([])

    def locate(self, tensors: Tensors) -> None:
        """Set the tensors to look up addresses in."""
        self._tensors = tensors

    @property
    def tensors(self) -> list[TensorInfo]:
        """The tensors of the launch, and those whose addresses the kernel loaded."""
        return [*self._tensors.tensors, *self.memory.adopted]

    @cached_property
    def elements(self) -> AccessedElements:
        """The accessed elements of each lane."""
        known = Tensors(self.tensors) if self.memory.adopted else self._tensors
        return find_accessed_elements(self.pointers, self.mask, self.width, known)

    @property
    def tensors_by_name(self) -> dict[str, TensorInfo]:
        """The tensors that may occur in `elements`, by name."""
        return {tensor.name: tensor for tensor in (*self._tensors.tensors, *self.memory.adopted)}

    def of_one_program(self) -> dict[str, Any]:
        """For a single lane: the tensor (None if no known tensor is accessed), offsets and mask."""
        found = self.elements.at(0)
        tensor = self.tensors_by_name.get(found.tensors[0]) if found.tensors else None
        return {"tensor": tensor, "offsets": found.elements(0), "mask": found.mask(0)}


def program_sizes(grid: Any, kernel: str, least: int = 1) -> list[int]:
    """The sizes of a launch's grid: at most three, none for None, one for an integer."""
    sizes = () if grid is None else grid if isinstance(grid, tuple | list) else (grid,)
    try:
        numbers = [operator.index(n) for n in sizes if not isinstance(n, bool)]
    except TypeError:
        numbers = []
    if not least <= len(sizes) <= 3 or len(numbers) != len(sizes) or any(n < 0 for n in numbers):
        raise UnsupportedError(
            f"kernel {kernel}: a grid is one to three sizes, and sizes are integers, not {grid!r}"
        )
    return numbers


@dataclasses.dataclass(frozen=True)
class Call:
    """A launch with its arguments bound."""

    fn: Callable
    """The plain Python function of the kernel."""
    arguments: dict[str, Any]
    """The value of every parameter, in the order of the parameters."""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Options for the compiler, such as num_warps."""
    kernel: Any = None
    """The kernel object that was launched: the function, or the result of the language's decorator."""

    def source(self) -> tuple[Sequence[str], int]:
        """The kernel's lines, and the line number of the first one in its file."""
        try:
            return inspect.getsourcelines(self.fn)
        except OSError:  # it was typed into a prompt
            return [], self.fn.__code__.co_firstlineno


@dataclasses.dataclass(frozen=True)
class DSL:
    """A language. The core calls `trace`, `install`, `launch` and `analyze`; other fields support them."""

    name: str
    namespace: object
    """The class whose attributes are the ops."""
    operations: dict[str, tuple[type[Op], Adapter]]
    """For each op by attribute name: the type of its record, and its adapter."""
    patch_calls: Callable[[], contextlib.AbstractContextManager[None]]
    """A context manager: while inside, kernels run on our executor, and can call each other. It is entered
    once for nested launches, which a client's callback may make."""
    patch_loops: Callable[[Sequence["ForLoopCallbacks"]], contextlib.AbstractContextManager[None]]
    """A context manager: while inside, loops of kernels call these callbacks."""
    here: Callable[[], "Here"]
    """Returns the programs and iterations of the op that this thread executes."""
    loops_file: str
    """The file whose functions call the loop callbacks."""

    # Called by the core.
    launch: Callable[[Call, Any, "ClientManager"], Any] | None = None
    """Run all programs of a grid: the call, the grid as the user wrote it (None if there is none), and the
    manager whose callbacks to call. Returns what the caller of the kernel receives. Without it there is no
    `trace(backend=...)`."""
    trace: Callable[[Any, Sequence["Client"]], Any] | None = None
    """Wrap a kernel for these clients. None: `core.trace.KernelTrace`, for plain Python functions."""
    install: Callable[[], None] = lambda: None
    """Called by every `trace(backend=...)`, such as to make the language's modules importable. Idempotent."""
    analyze: Callable[[Call, Program, Sequence[TensorInfo], bool], "Analysis"] | None = None
    """Decide every access of a launch without running its programs: the call, the grid, the tensors, and
    whether to decide (False: only find which tensors each access uses). None: accesses are only checked
    while the kernel runs."""

    # Used by the functions above, and by clients.
    bind: Callable[[Any, tuple[Any, ...], dict[str, Any], Any], Call | None] | None = None
    """Bind a launch's arguments: kernel, positional and named arguments, grid. Returns None for a call that
    is not a launch (a warm-up). None: bind by the signature of the kernel's Python function."""
    compile: Callable[[Call, str], Any] | None = None
    """Compile a call for a target, for clients that ask for it; raises a TritonVizError if it cannot."""
    check_target: Callable[[str], None] | None = None
    """Raise an UnsupportedError if `compile` has no target of this name. None: any name may be one."""
    arithmetic: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """By the name of an op that computes (a `Compute`'s `name`): how many operations it is on each element,
    which the profiler counts. An op that is not here is none, such as a comparison or a cast."""
    zeros: Callable[..., Any] | None = None
    """Takes the arguments of a load that a client skips, and returns zeros of the result's shape and dtype.
    None: loads cannot be skipped."""
    environment: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    """A context manager around launches and `with trace(...)`: stand-ins for a device that is not present."""
    is_running: Callable[[], bool] = lambda: False
    """Whether this thread runs a kernel. Inside a kernel, a traced kernel is called as a plain function."""
    kernel_classes: tuple[type, ...] = ()
    """Classes whose `run(*args, grid, **kwargs)` launches a kernel: `with trace(backend=...)` traces them."""
    checks_itself: bool = False
    """Whether the language checks every access itself, and reports violations to `issue_callback`."""
    client_options: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    """Constructor arguments for clients that are given by name, by the client's name."""
    folders: tuple[str, ...] = ()
    """Folders of the language's own package: their functions are left out of call paths."""


def plain_function(kernel: Any) -> FunctionType | None:
    """The Python function inside the object that a decorator returned; None if there is none."""
    for _ in range(8):
        if isinstance(kernel, FunctionType):
            return kernel
        wrapped = (getattr(kernel, name, None) for name in ("func", "fn", "__wrapped__"))
        kernel = next((inner for inner in wrapped if inner is not None), None)
    return None


@dataclasses.dataclass(frozen=True)
class Here:
    """The kernel, programs and loop iterations of an op that is being executed."""

    kernel: Callable
    """The plain Python function of the kernel."""
    programs: Programs
    """The programs that execute it: the active lanes of a chunk."""
    iterations: tuple[tuple[int, int], ...]
