"""Traits of a builder's op: its record, its arithmetic, and how its result depends on loaded addresses.

An op is a method `create_NAME` of one of the builder's groups. Without a trait it leaves a `Compute` record,
the origin of its result follows its group's `ORIGIN_RULE`, and it is as many arithmetic operations on each
element as its group's `OPERATIONS` says (none, if it says nothing).
"""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from triton_viz.core.data import Op
from triton_viz.dsls.base import Adapter
from triton_viz.executor.address_origin import Origin

F = TypeVar("F", bound=Callable[..., Any])
OriginRule = Literal["first", "elementwise", "moved", "mixed", "none"] | Callable[..., Origin | None]
"""How the origin of a result follows from those of the operands:

first        that of the first operand: the others are offsets
elementwise  for each element, those of the operands' elements at the same index
moved        for each element, that of one element of the operand, at another index
mixed        for each element, those of all elements of the operands
none         empty: the result is not an address

An op with another rule has a function instead, which takes the operands and returns the result's origin.
"""


def recorded_as(op_type: type[Op], adapter: Adapter) -> Callable[[F], F]:
    """The op leaves records of this type, whose fields the adapter takes from the op's arguments."""

    def mark(function: F) -> F:
        function.record = (op_type, adapter)  # type: ignore[attr-defined]
        return function

    return mark


def not_recorded(function: F) -> F:
    """The op leaves no record: it calls other ops, or has no effect."""
    function.record = None  # type: ignore[attr-defined]
    return function


def origin_rule(rule: OriginRule) -> Callable[[F], F]:
    """The op has a rule that differs from its group's."""

    def mark(function: F) -> F:
        function.origin_rule = rule  # type: ignore[attr-defined]
        return function

    return mark


def operations(count: int) -> Callable[[F], F]:
    """The op is another number of arithmetic operations on each element than its group's are."""

    def mark(function: F) -> F:
        function.operations = count  # type: ignore[attr-defined]
        return function

    return mark


def rule_of(builder: type, name: str) -> OriginRule:
    """The rule of a builder's op: its own, or else its group's."""
    return _trait(builder, name, "origin_rule", "none")


def operations_of(builder: type, name: str) -> int:
    """How many arithmetic operations an op is on each element: its own number, or else its group's."""
    return _trait(builder, name, "operations", 0)


def _trait(builder: type, name: str, trait: str, default: Any) -> Any:
    op = getattr(builder, name)
    op = getattr(op, "original", op)  # an op that is routed through clients
    found = getattr(op, trait, None)
    if found is not None:
        return found
    groups = [group for group in builder.__mro__[1:] if name in vars(group)]
    return getattr(groups[0], trait.upper(), default) if groups else default
