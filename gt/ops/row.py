"""What a row of the op table says, and the words it says it in."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


class Size(tuple[int, ...]):
    """A shape: a tuple that prints as PyTorch's does, and counts."""

    __slots__ = ()

    def numel(self) -> int:
        """How many elements a tensor of this shape has."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"gt.Size({list(self)})"


class Spec:
    """What is known of a tensor without its data: its shape and dtype.

    Equal specs are one object, so comparing and looking them up costs nothing:

    >>> Spec((2, 3), "float32") is Spec((2, 3), "float32")
    True
    """

    __slots__ = ("dtype", "shape")
    shape: Size
    dtype: str
    _known: ClassVar[dict[tuple[tuple[int, ...], str], "Spec"]] = {}

    def __new__(cls, shape: tuple[int, ...], dtype: str) -> "Spec":
        """The one spec of this shape and dtype."""
        known = cls._known.get((shape, dtype))
        if known is None:
            if len(cls._known) > 100_000:
                # Shapes that were used once pile up in a long run. Forgetting is safe: an old spec
                # still works, it only no longer meets its equals.
                cls._known.clear()
            known = super().__new__(cls)
            known.shape, known.dtype = Size(shape), dtype
            cls._known[shape, dtype] = known
        return known

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.shape, self.dtype) == (other.shape, other.dtype)

    __hash__ = object.__hash__  # by identity: that is what makes it fast, and a rare miss costs only time


class Node(Protocol):
    """What a gradient rule may look at: the op as it was applied. Its tensors are GT tensors."""

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The tensors the op was applied to."""
        ...

    @property
    def output(self) -> Any:
        """What it gave."""
        ...

    @property
    def attrs(self) -> dict[str, Any]:
        """Its arguments that are not tensors."""
        ...


Infer = Callable[[tuple[Spec, ...], dict[str, Any]], Spec]
Gradient = Callable[[Any, Any], Any]
"""From the output's gradient and the node, the gradient of one input, in GT ops."""


@dataclass(frozen=True)
class Row:
    """One op."""

    name: str
    kind: str
    """What the instruction log calls it: BinaryOp, UnaryOp, ReduceOp, ShapeOp, IndexOp, CreateTensor, ..."""
    infer: Infer
    """The result's shape and dtype from the inputs', or the error a PyTorch user expects."""
    engines: dict[str, str]
    """The function that computes it, by engine: an importable name, called with inputs and attributes."""
    grads: Sequence[Gradient | None] = ()
    """For each input, its gradient from the output's; empty where the op has none."""
    grad_of_each: Callable[[Any, Any, int], Any] | None = None
    """The same, for an op over any number of inputs: also given which input is asked for."""
    sharding: Callable[[tuple[Spec, ...], dict[str, Any], Spec], list[Any]] | None = None
    """The ways in which it can be carried out in parts (`Split`), from its inputs, attributes and result."""

    @property
    def differentiable(self) -> bool:
        """Whether a gradient can flow through it."""
        return bool(self.grads) or self.grad_of_each is not None

    def gradient(self, g: Any, node: Any, index: int) -> Any:
        """The gradient of one input, or None where it has none."""
        if self.grad_of_each is not None:
            return self.grad_of_each(g, node, index)
        rule = self.grads[index]
        return None if rule is None else rule(g, node)


def engines(pytorch: str, array: str) -> dict[str, str]:
    """Where each engine finds an op's function.

    A name that begins with a library's is that library's function: `"torch.exp"`, `"numpy.exp"`,
    `"operator.add"`. NumPy and JAX are spelled alike, so `"numpy.exp"` is also `"jax.numpy.exp"`. Any other
    name is one of ours: `"reductions.mean"` is in `gt.worker.engine.torch` for PyTorch, and in
    `gt.worker.engine.array` for NumPy and JAX, told which of the two to use.
    """
    numpy = array if array.startswith(_LIBRARIES) else f"gt.worker.engine.array.{array}"
    return {
        "pytorch": pytorch if pytorch.startswith(_LIBRARIES) else f"gt.worker.engine.torch.{pytorch}",
        "numpy": numpy,
        "jax": f"jax.{numpy}" if numpy.startswith("numpy.") else numpy,
    }


_LIBRARIES = ("torch.", "numpy.", "operator.")
