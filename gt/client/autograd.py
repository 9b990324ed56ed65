"""The autograd tape: which ops made which tensors.

It never touches data. A gradient is more GT ops, issued like any other; the rules are in the op table.
"""

import contextlib
import heapq
import itertools
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gt.errors import GraphError
from gt.ops import TABLE

if TYPE_CHECKING:
    from gt.client.tensor import Tensor

_state = threading.local()


def grad_enabled() -> bool:
    """Whether ops are being recorded on this thread."""
    return getattr(_state, "enabled", True)


@contextlib.contextmanager
def no_grad() -> Iterator[None]:
    """Ops inside are not recorded, so they have no gradient and cost no memory. Also a decorator."""
    before = grad_enabled()
    _state.enabled = False
    try:
        yield
    finally:
        _state.enabled = before


class TapeNode:
    """One op on the tape: what it read, what it made, and when.

    `output` is a detached twin of the tensor that holds this node. Were it that tensor itself, the two
    would keep each other alive until the garbage collector looks.
    """

    __slots__ = ("__weakref__", "attrs", "inputs", "op", "output", "sequence")

    def __init__(self, sequence: int, op: str, inputs: tuple["Tensor", ...], output: "Tensor", attrs: dict):
        self.sequence = sequence
        self.op = op
        self.inputs = inputs
        self.output = output
        self.attrs: dict[str, Any] = attrs

    def __str__(self) -> str:
        inputs = ", ".join(f"TENSOR[{x.id}]" for x in self.inputs)
        return f"TENSOR[{self.output.id}] := {self.op.upper()} {inputs}"

    @property
    def used_up(self) -> bool:
        """Whether backward() went through here and freed what it needed."""
        return not self.inputs


class AutogradGraph:
    """The tape of all graphs that are alive. A graph dies with the last tensor that needs it."""

    def __init__(self) -> None:
        self._sequence = itertools.count()
        self._nodes: weakref.WeakSet[TapeNode] = weakref.WeakSet()

    def record(self, op: str, inputs: tuple["Tensor", ...], output: "Tensor", attrs: dict) -> TapeNode:
        """Put an op on the tape."""
        node = TapeNode(next(self._sequence), op, inputs, output, attrs)
        self._nodes.add(node)
        return node

    def tape(self) -> list[TapeNode]:
        """What is on the tape now, oldest first. What backward() has used up is no longer on it."""
        return sorted((node for node in self._nodes if not node.used_up), key=lambda node: node.sequence)

    def backward(self, root: "Tensor", gradient: "Tensor", retain_graph: bool) -> None:
        """Add the gradient of `root` to every leaf it was computed from."""
        # Newest first: by the time a node is reached, all of its output's gradients have been added up.
        heap: list[tuple[int, TapeNode]] = []
        pending: dict[TapeNode, Tensor] = {}

        def give(tensor: "Tensor", gradient: "Tensor") -> None:
            gradient = gradient.to(tensor.dtype)
            node = tensor.node
            if node is None:
                tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient
            elif node in pending:
                pending[node] = pending[node] + gradient
            else:
                pending[node] = gradient
                heapq.heappush(heap, (-node.sequence, node))

        with no_grad():
            give(root, gradient)
            while heap:
                _, node = heapq.heappop(heap)
                if node.used_up:
                    raise GraphError(
                        "Trying to backward through the graph a second time. "
                        "Specify retain_graph=True if you need to backward through it twice."
                    )
                rule = TABLE[node.op].grad
                assert rule is not None, f"{node.op} was recorded but has no gradient"
                for tensor, part in zip(node.inputs, rule(pending.pop(node), node), strict=True):
                    if tensor.requires_grad:
                        give(tensor, part)
                if not retain_graph:
                    node.inputs = ()


GRAPH = AutogradGraph()
"""The program's tape."""
