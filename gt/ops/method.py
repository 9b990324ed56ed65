"""How users call an op: the columns from which methods, functions and in-place forms are made."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Method(NamedTuple):
    """A method of Tensor, and the names that follow from it."""

    names: str
    """The method's name and its aliases: "abs absolute"."""
    doc: str
    call: str | Callable[..., Any] = ""
    """How its arguments become inputs and attributes: a calling convention of `gt.tensors.conventions`, or a
    function of the tensor and the other arguments, as PyTorch names them. Empty: that of the row's kind."""
    function: bool = True
    """Whether `gt.NAME(x)` exists, too."""
    in_place: bool = False
    """Whether `x.NAME_()` exists, too."""
    number_first: bool = False
    """Whether the function's first argument may be a number."""


class Samples(NamedTuple):
    """Calls that the tests make of an op, on every engine, in comparison with PyTorch."""

    of: str
    """The kind of calls: a key of `tests.gt.samples.generated.CALLS`."""
    low: float = -2.0
    high: float = 2.0
    """The bounds of the numbers that the op is called with."""
