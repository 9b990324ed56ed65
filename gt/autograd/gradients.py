"""`gt.autograd.grad`, beside the modes of `gt.autograd.graph`."""

from collections.abc import Sequence
from typing import Any

from gt.autograd.graph import GRAPH, enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from gt.errors import GraphError
from gt.tensors.functions.creation import ones_like
from gt.tensors.tensor import Tensor, gradient_as

__all__ = ["enable_grad", "grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
    allow_unused: bool = False,
    create_graph: bool = False,
) -> tuple[Any, ...]:
    """The gradients of outputs with respect to inputs, as a tuple. No tensor's `grad` changes.

    >>> x = gt.tensor(3.0, requires_grad=True)
    >>> gt.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if create_graph:
        raise GraphError("create_graph: a gradient of a gradient is not supported")
    roots = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    targets = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs or [None] * len(roots))
    sums: list[Tensor | None] = [None] * len(targets)

    def adder(place: int) -> Any:
        def add(part: Tensor) -> None:
            before = sums[place]
            sums[place] = part._value.tensor() if before is None else before + part

        return add

    edges = [x._edge for x in targets]
    if any(edge is None or not edge.requires_grad for edge in edges):
        raise GraphError("One of the differentiated Tensors does not require grad")
    wanted = {edge: adder(place) for place, edge in enumerate(edges) if edge is not None}
    for place, (y, gradient) in enumerate(zip(roots, given, strict=True)):
        edge = y._edge
        if edge is None or not edge.requires_grad:
            raise GraphError(f"element {place} of tensors does not require grad and does not have a grad_fn")
        if gradient is None and y.numel() != 1:
            raise GraphError("grad can be implicitly created only for scalar outputs: pass grad_outputs")
        start = ones_like(y) if gradient is None else gradient
        last = place == len(roots) - 1
        GRAPH.backward(edge, gradient_as(y, start), retain_graph or not last, wanted)
    if None in sums and not allow_unused:
        raise GraphError(
            "One of the differentiated Tensors appears to not have been used in the graph. "
            "Set allow_unused=True if this is the desired behavior."
        )
    return tuple(sums)
