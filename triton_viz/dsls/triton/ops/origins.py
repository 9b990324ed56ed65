"""A builder that tracks which loaded integers its values were computed from (`executor/address_origin.py`).

A builder changes its class to this one when the kernel loads an integer that may be an address
(`LaneBuilder.track_origins`), so that tracking costs nothing in other kernels. Results of loads and atomics
get an origin; other ops propagate it by their rule (`op_traits.py`).
"""

from collections.abc import Callable, Iterable
from typing import Any

from triton_viz.dsls.triton.ops.lane_builder import LaneBuilder
from triton_viz.dsls.triton.ops.op_traits import rule_of
from triton_viz.executor.address_origin import Origin, joined
from triton_viz.executor.value import Value

_MOST_NUMBERS = 1 << 16
"""An origin with more integers than this is reduced to tensor addresses."""


class OriginBuilder(LaneBuilder):
    """All ops, with the origins of their results."""

    def track_origins(self) -> None:
        """Does nothing: origins are tracked already."""

    def _of(self, result: Value, origin: Origin | None) -> Value:
        """A new value, with this origin."""
        if origin is not None and result.dtype.scalar.is_floating():
            origin = None
        if origin is not None and origin.numbers > _MOST_NUMBERS:
            origin = self.memory.resolve(origin)
        result.origin = origin
        return result


def _values(args: Iterable[Any]) -> list[Value]:
    """The values among an op's arguments, also those in lists."""
    found: list[Value] = []
    for arg in args:
        if isinstance(arg, tuple | list):
            found += _values(arg)
        elif isinstance(arg, Value):
            found.append(arg)
    return found


def _passing(name: str, origin_of: Callable[..., Origin | None]) -> Callable[..., Any]:
    """Wraps an op: if an argument has an origin, a function computes the origin of the result."""

    def op(self: OriginBuilder, *args: Any) -> Any:
        result = getattr(super(OriginBuilder, self), name)(*args)
        values = _values(args)
        if all(value.origin is None for value in values):
            return result
        results = result if isinstance(result, tuple | list) else (result,)
        for position, one in enumerate(results):
            if isinstance(one, Value) and not any(one is value for value in values):
                self._of(one, origin_of(self, name, one, position, values, args))
        return result

    return op


def _of_pointer(
    self: OriginBuilder, name: str, result: Value, position: int, values: list[Value], args: tuple[Any, ...]
) -> Origin | None:
    return values[0].origin


def _of_elements(
    self: OriginBuilder, name: str, result: Value, position: int, values: list[Value], args: tuple[Any, ...]
) -> Origin | None:
    rank = len(result.shape)
    return joined(*(value.origin and value.origin.of_rank(rank) for value in values))


def _of_moved(
    self: OriginBuilder, name: str, result: Value, position: int, values: list[Value], args: tuple[Any, ...]
) -> Origin | None:
    if any(value.origin is None or len(value.origin.roots) > 1 for value in values) or len(values) > 1:
        return _of_mixed(self, name, result, position, values, args)
    (value,) = values
    assert value.origin is not None
    op = getattr(LaneBuilder, name)
    op = getattr(
        op, "original", op
    )  # clients receive the op itself, not this call, which computes its origin

    def move(numbers: Any) -> Any:
        given = [Value(numbers, value.dtype) if arg is value else arg for arg in args]
        moved = op(self, *given)
        return (moved[position] if isinstance(moved, tuple) else moved).data

    return value.origin.moved(value.shape, move)


def _of_mixed(
    self: OriginBuilder, name: str, result: Value, position: int, values: list[Value], args: tuple[Any, ...]
) -> Origin | None:
    rank = len(result.shape)
    return joined(*(value.origin and value.origin.mixed(rank) for value in values))


def _by_function(rule: Callable[..., Origin | None]) -> Callable[..., Origin | None]:
    """A rule that an op defines itself, as a function of its operands."""

    def origin(
        self: OriginBuilder,
        name: str,
        result: Value,
        position: int,
        values: list[Value],
        args: tuple[Any, ...],
    ) -> Origin | None:
        return rule(*values)

    return origin


_RULES: dict[str, Callable[..., Origin | None]] = {
    "first": _of_pointer,
    "elementwise": _of_elements,
    "moved": _of_moved,
    "mixed": _of_mixed,
}
for _name in dir(LaneBuilder):
    if _name.startswith("create_") or _name == "lane_by_lane":
        _rule = rule_of(LaneBuilder, _name)
        if _rule != "none":
            _origin = _by_function(_rule) if callable(_rule) else _RULES[_rule]
            setattr(OriginBuilder, _name, _passing(_name, _origin))
