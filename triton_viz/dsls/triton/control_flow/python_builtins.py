"""Python's builtins inside a kernel: `range`, `min`, `print`, `int`, ... of tensors and of plain values."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import triton.language as tl

from triton_viz.dsls.triton.ops.types import plain


def python_substitutes(flow: Any) -> dict[Any, Callable]:
    """Substitutes for Python's builtins, and for Triton's functions that its compiler evaluates itself.

    They are bound to a flow, lane by lane or symbolic.
    """

    def on_plain(function: Callable) -> Callable:
        return lambda *args, **kwargs: function(*map(plain, args), **kwargs)

    def on_number(function: Callable, of_tensor: Callable) -> Callable:
        def convert(*args: Any) -> Any:
            if args and isinstance(args[0], tl.tensor):
                return of_tensor(args[0])
            return function(*map(plain, args))

        return convert

    return {
        range: partial(make_range, flow),
        tl.range: partial(make_range, flow),
        tl.static_range: partial(make_static_range, flow),
        min: partial(_extreme, flow, min, tl.minimum),
        max: partial(_extreme, flow, max, tl.maximum),
        print: partial(_print, flow),
        int: on_number(int, flow.index),
        bool: on_number(bool, flow.truth),
        float: on_number(float, lambda value: float(flow.agreed(flow.per_lane(value)))),
        abs: on_number(abs, lambda value: flow.call(tl.abs, value)),
        len: on_plain(len),
        isinstance: on_plain(isinstance),
        tl.constexpr: plain,
        tl.static_assert: _static_assert,
        tl.static_print: on_plain(print),
    }


def make_range(flow: Any, start: Any, stop: Any = None, step: Any = None, **_: Any) -> Any:
    """A Python range, or the flow's own if a bound is a tensor."""
    start, stop, step = (plain(bound) for bound in (start, stop, step))
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    if any(isinstance(bound, tl.tensor) for bound in (start, stop, step)):
        return flow.lane_range(flow, start, stop, step)
    return range(start, stop, step)


class StaticRange:
    """A range that the compiler unrolls: its loop variables are Python's numbers."""

    def __init__(self, items: range):
        self.items = items

    def __iter__(self) -> Iterator[int]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def make_static_range(flow: Any, *args: Any, **kwargs: Any) -> Any:
    """A range that the compiler unrolls; the flow's own if a bound is a tensor."""
    found = make_range(flow, *args, **kwargs)
    return StaticRange(found) if isinstance(found, range) else found


def _extreme(flow: Any, python: Callable, triton: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`min` and `max`: tensors are compared element by element."""
    args = tuple(map(plain, args))
    if not any(isinstance(arg, tl.tensor) for arg in args):
        return python(*args, **kwargs)
    result, *rest = args
    for arg in rest:
        result = flow.call(triton, result, arg, **kwargs)
    return result


def _print(flow: Any, *args: Any, **kwargs: Any) -> None:
    """`print`: the language's, which prints a line for each program."""
    prefix, rest = (args[0], args[1:]) if args and isinstance(args[0], str) else ("", args)
    flow.call(tl.device_print, prefix, *rest, **kwargs)


def _static_assert(condition: Any, message: Any = "") -> None:
    if not plain(condition):
        raise AssertionError(plain(message))
