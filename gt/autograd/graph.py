"""The autograd tape: which ops created which tensors.

It never reads data. A gradient is computed by GT ops, issued like any others; the rules are in the op table.
"""

import functools
import gc
import heapq
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gt.autograd.backward_replay import GradientPlans
from gt.errors import GraphError

if TYPE_CHECKING:
    from gt.tensors.base import Value
    from gt.tensors.tensor import Tensor

Hook = Callable[["Tensor"], "Tensor | None"]


class _State(threading.local):
    enabled = True
    backward = False


_state = _State()


def is_in_backward() -> bool:
    """Whether a gradient is being computed on this thread."""
    return _state.backward


def is_grad_enabled() -> bool:
    """Whether ops are being recorded on this thread."""
    return _state.enabled


class _Mode:
    """Whether ops are recorded: for a block (`with`), or for a function (`@`), which may be a generator."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[bool] = []  # a stack: a mode may be entered inside itself

    def __enter__(self) -> None:
        self._before.append(_state.enabled)
        _state.enabled = self._enabled

    def __exit__(self, *error: object) -> None:
        _state.enabled = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which runs in this mode. Each call enters its own: it may be on another thread."""
        import inspect  # slow to import, and only decorators need it

        enabled = self._enabled
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args: Any, **kwargs: Any) -> Iterator[Any]:
                items = function(*args, **kwargs)
                while True:
                    with _Mode(enabled):
                        try:
                            item = next(items)
                        except StopIteration as end:
                            return end.value
                    yield item

            return generator

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _Mode(enabled):
                return function(*args, **kwargs)

        return call


class set_grad_enabled(_Mode):
    """Ops are recorded, or not: from here on, or inside a `with`. Also a decorator."""

    def __init__(self, enabled: bool) -> None:
        super().__init__(bool(enabled))
        self._outside = _state.enabled
        _state.enabled = self._enabled

    def __enter__(self) -> None:
        self._before.append(self._outside)
        _state.enabled = self._enabled

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which runs in this mode; the mode outside is as before."""
        _state.enabled = self._outside
        return super().__call__(function)


def no_grad(function: Callable[..., Any] | None = None) -> Any:
    """Ops inside are not recorded: they have no gradient, and keep no values alive. Also a decorator."""
    return _Mode(False) if function is None else _Mode(False)(function)


def enable_grad(function: Callable[..., Any] | None = None) -> Any:
    """Ops inside are recorded, also inside a no_grad(). Also a decorator."""
    return _Mode(True) if function is None else _Mode(True)(function)


def inference_mode(mode: Any = True) -> Any:
    """As `no_grad()`; `inference_mode(False)` records."""
    return no_grad(mode) if callable(mode) else _Mode(not mode)


class Leaf:
    """The gradient state of a tensor that the user created: gradients end here."""

    __slots__ = ("grad", "hooks", "requires_grad")

    def __init__(self, requires_grad: bool) -> None:
        self.requires_grad = requires_grad
        self.grad: Tensor | None = None
        self.hooks: dict[int, Hook] | None = None

    def add(self, gradient: "Value") -> None:
        """Add to the gradient."""
        # A new tensor: one gradient may flow to several leaves, and each may be changed in place.
        if self.grad is None:
            self.grad = gradient.tensor()
        else:
            # In place: the tensor `x.grad` that a program holds is updated, as in PyTorch.
            self.grad._become(self.grad + gradient.tensor())


class TapeNode:
    """One op on the tape: its inputs, its result, and its position.

    It holds values, not tensors: a tensor may be changed in place afterwards, and the gradient is that of the
    value that the op read. `edges` are where the inputs' gradients go: to a Leaf, to the node that created
    the input, or nowhere (None).
    """

    __slots__ = ("attrs", "edges", "grad", "hooks", "op", "retains", "sequence", "values")
    requires_grad = True

    def __init__(
        self,
        sequence: int,
        op: str,
        values: "tuple[Value, ...]",
        edges: "tuple[Edge | None, ...]",
        attrs: dict[str, Any] | None,
    ) -> None:
        self.sequence = sequence
        self.op = op
        self.values = values
        """The inputs' values and, last, the result's."""
        self.edges = edges
        self.attrs: dict[str, Any] = attrs or {}
        self.grad: Tensor | None = None
        self.retains = False
        """Whether the gradient is kept for the user: see `Tensor.retain_grad`."""
        self.hooks: dict[int, Hook] | None = None

    @property
    def inputs(self) -> "tuple[Tensor, ...]":
        """The tensors it read, detached."""
        return tuple(value.tensor() for value in self.values[:-1])

    @property
    def output(self) -> "Tensor":
        """The tensor it created, detached."""
        return self.values[-1].tensor()

    def __str__(self) -> str:
        *inputs, output = (f"TENSOR[{value.id}]" for value in self.values)
        return f"{output} := {self.op.upper()} {', '.join(inputs)}"

    @property
    def used_up(self) -> bool:
        """Whether backward() has freed the values that its gradient needs."""
        return not self.values


Edge = Leaf | TapeNode

_hook_numbers = itertools.count()


class HookHandle:
    """The result of `register_hook`: `remove()` unregisters the hook."""

    def __init__(self, edge: Edge, hook: Hook) -> None:
        self._edge = edge
        self._number = next(_hook_numbers)
        edge.hooks = {**(edge.hooks or {}), self._number: hook}

    def remove(self) -> None:
        """Unregister the hook."""
        if self._edge.hooks:
            self._edge.hooks.pop(self._number, None)


def _through_hooks(edge: Edge, gradient: "Tensor") -> "Tensor":
    """The gradient that an edge's hooks return. Raises GraphError if one changes its shape or dtype."""
    for hook in list((edge.hooks or {}).values()):
        changed = hook(gradient)
        if changed is None:
            continue
        if changed._value.spec != gradient._value.spec:
            raise GraphError(
                f"hook {getattr(hook, '__name__', hook)!r} has changed the gradient's "
                f"shape or dtype: it was {_shown(gradient)}, and is {_shown(changed)}"
            )
        gradient = changed
    return gradient


def _shown(tensor: "Tensor") -> str:
    spec = tensor._value.spec
    return f"{spec.dtype}{list(spec.shape)}"


class AutogradGraph:
    """The tape of all graphs that are alive. A graph dies with the last tensor that needs it."""

    def __init__(self) -> None:
        self._next = itertools.count().__next__
        self._gradient_plans = GradientPlans()

    def record(
        self,
        op: str,
        values: "tuple[Value, ...]",
        edges: tuple[Edge | None, ...],
        attrs: dict[str, Any] | None,
    ) -> TapeNode:
        """Record an op on the tape."""
        return TapeNode(self._next(), op, values, edges, attrs)

    def tape(self) -> list[TapeNode]:
        """The nodes on the tape, oldest first, without those that backward() has freed."""
        # Keeping a list of nodes would take time for every op; the garbage collector has all objects.
        nodes = [node for node in gc.get_objects() if type(node) is TapeNode and not node.used_up]
        return sorted(nodes, key=lambda node: node.sequence)

    def backward(
        self,
        root: Edge,
        gradient: "Tensor",
        retain_graph: bool,
        wanted: "Mapping[Edge, Callable[[Tensor], None]] | None" = None,
    ) -> None:
        """Add the gradient of `root` to every leaf it was computed from, or call the functions of `wanted`.

        `wanted` has a function of the gradient for each edge whose gradient is wanted.
        """
        # Newest first: by the time a node is reached, all of its output's gradients have been added up.
        heap: list[tuple[int, TapeNode]] = []
        pending: dict[Edge, Value] = {root: gradient._value}
        leaves: list[Leaf] = []

        def reach(edge: Edge) -> None:
            if isinstance(edge, TapeNode):
                heapq.heappush(heap, (-edge.sequence, edge))
            else:
                leaves.append(edge)

        reach(root)
        position = gradient._value.client.backward_position
        gradients_of = self._gradient_plans.gradients
        with no_grad():
            before, _state.backward = _state.backward, True
            outer = position.site, position.tensor  # a hook may run another backward pass
            try:
                while heap:
                    node = heapq.heappop(heap)[1]
                    if not node.values:
                        raise GraphError(
                            "Trying to backward through the graph a second time. "
                            "Specify retain_graph=True if you need to backward through it twice."
                        )
                    # The ops that a rule issues are attributed to the line that the node's op came from.
                    position.site, position.tensor = node.values[-1].site, node.values[-1].id
                    g = pending.pop(node)
                    if node.hooks:
                        g = _through_hooks(node, g.tensor())._value
                    if wanted is not None and node in wanted:
                        wanted[node](g.tensor())
                    if node.retains:
                        node.grad = g.tensor() if node.grad is None else node.grad + g.tensor()
                    for edge, part in zip(node.edges, gradients_of(node, g), strict=True):
                        if edge is None or part is None:
                            continue
                        if edge in pending:
                            pending[edge] = (pending[edge].tensor() + part.tensor())._value
                        else:
                            pending[edge] = part
                            reach(edge)
                    if not retain_graph:
                        node.values = ()
                for leaf in leaves:
                    part = pending[leaf]
                    if leaf.hooks:
                        part = _through_hooks(leaf, part.tensor())._value
                    if wanted is None:
                        leaf.add(part)
                    elif leaf in wanted:
                        wanted[leaf](part.tensor())
            finally:
                _state.backward = before
                position.site, position.tensor = outer


GRAPH = AutogradGraph()
"""The program's tape."""
