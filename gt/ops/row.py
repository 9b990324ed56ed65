"""The columns of the op table, and the shapes and dtypes that rows compute with."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from gt.ops.engines import ENGINES, Functions
from gt.ops.method import Method, Samples


class Size(tuple[int, ...]):
    """A shape: a tuple that prints as PyTorch's does, and has `numel`."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"gt.Size({list(self)})"


class Spec:
    """A tensor's shape and dtype.

    Equal specs are one object, so they are compared and looked up by identity:

    >>> Spec((2, 3), "float32") is Spec((2, 3), "float32")
    True
    """

    __slots__ = ("dtype", "shape")
    shape: Size
    dtype: str
    _known: ClassVar[dict[tuple[tuple[int, ...], str], "Spec"]] = {}

    def __new__(cls, shape: tuple[int, ...], dtype: str) -> "Spec":
        """The spec of this shape and dtype, which is made only once."""
        known = cls._known.get((shape, dtype))
        if known is None:
            if len(cls._known) > 100_000:
                # In a long run, specs that were used once accumulate. Dropping them is safe: an old spec
                # still works, but is a different object from new equal ones.
                cls._known.clear()
            known = super().__new__(cls)
            known.shape, known.dtype = Size(shape), dtype
            cls._known[shape, dtype] = known
        return known

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.shape, self.dtype) == (other.shape, other.dtype)

    __hash__ = object.__hash__  # by identity, which is fast; a rare miss costs only time


class Node(Protocol):
    """The argument of a gradient rule: an op as it was applied. Its tensors are GT tensors."""

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The tensors the op was applied to."""
        ...

    @property
    def output(self) -> Any:
        """Its result."""
        ...

    @property
    def attrs(self) -> dict[str, Any]:
        """Its arguments that are not tensors."""
        ...


Infer = Callable[[tuple[Spec, ...], dict[str, Any]], Spec]
Gradient = Callable[[Any, Any], Any]
"""From the output's gradient and the node, the gradient of one input, in GT ops."""
PutBack = Callable[[dict[str, Any], Any, Any], tuple[str, tuple[Any, ...], dict[str, Any]]]
"""From a view's attributes, its input and its changed result: the op, inputs and attributes that compute the
changed input."""


@dataclass(frozen=True)
class Row:
    """One op."""

    name: str
    kind: str
    """The kind of instruction in the log: BinaryOp, UnaryOp, ReduceOp, ShapeOp, IndexOp, CreateTensor, ..."""
    infer: Infer
    """The result's shape and dtype from the inputs'; raises PyTorch's errors."""
    functions: Functions
    """The names of the functions that compute it, called with inputs and attributes."""
    grads: Sequence[Gradient | None] = ()
    """For each input, its gradient from the output's; empty where the op has none."""
    grad_of_each: Callable[[Any, Any, int], Any] | None = None
    """For an op over any number of inputs: the gradient of one input, whose index is the third argument."""
    sharding: Callable[[tuple[Spec, ...], dict[str, Any], Spec], list[Any]] | None = None
    """The ways in which it can be computed in parts (`Split`), from its inputs, attributes and result. None:
    that of its kind."""
    lowering: str = ""
    """The function of `gt.dispatcher.sharding.lowering` (or "module:function") that replaces it by several
    ops if its inputs are in parts. Empty: none."""
    half_lowering: str = ""
    """The lowering for inputs in half precision."""
    view: bool = False
    """Whether the result shares its input's memory, in PyTorch and so on the pytorch engine."""
    put_back: PutBack | None = None
    """How an in-place change of the result changes the input. None: the result is independent."""
    run_time: tuple[str, ...] = ()
    """Attributes, besides floats, that may differ between repeats: see `gt.ops.run_time`."""
    compiled_numbers: tuple[str, ...] | None = None
    """Float attributes that compiled code gets at run time: the pytorch engine's function takes a tensor for
    each. Other floats are part of the graph: each value is compiled by itself. None: those of its kind."""
    methods: tuple[Method, ...] = ()
    """Its methods and functions, besides those that are written out in `gt.tensors.methods`."""
    operator: str = ""
    """Python's operator for it: "add" makes `__add__`, `__radd__` and `__iadd__`."""
    samples: Samples | None = None
    """The calls that test it. None: they are in `tests/gt/samples`."""

    @property
    def engines(self) -> dict[str, str]:
        """The full name of the function that computes it, by engine."""
        return {name: engine.function(self.functions) for name, engine in ENGINES.items()}

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
