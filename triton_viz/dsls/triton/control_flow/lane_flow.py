"""Flow: control flow of a running kernel, for all lanes at once. Rewritten kernels call it (`rewrite.py`).

Where lanes disagree, both branches run, one after the other, each with only its lanes *active*. Assignments
keep the old value of inactive lanes. `regions` is the stack of waiting lanes: an entry for each `if` that
split, whose lanes continue when it ends, and two for each loop (`lane_loops.py`). A lane that returns or
breaks is removed from the entries to which it will not return. An entry is None for all lanes. Two entries
that are the same object hold the same lanes, so an identity comparison shows that all lanes agree.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.core import base_value, is_builtin
from triton.runtime.jit import JITCallable, KernelInterface

from triton_viz.dsls.triton.compat import source_of
from triton_viz.dsls.triton.control_flow.lane_loops import LaneRange, Loop
from triton_viz.dsls.triton.control_flow.python_builtins import python_substitutes
from triton_viz.dsls.triton.control_flow.rewrite import rewritten
from triton_viz.dsls.triton.ops.types import plain
from triton_viz.executor.lanes import Diverged, Lanes, groups_of

Mask = np.ndarray | None
_PLAIN = (bool, int, float, str, type(None), tl.dtype)
_TUPLES = (tuple, list, tl.tuple)


class Split:
    """The outcome of a test on which lanes disagree."""

    __slots__ = ("rest",)

    def __init__(self, rest: np.ndarray):
        self.rest = rest
        """The lanes for which the test is false."""


class Undefined:
    """The value of an unassigned name."""

    def __repr__(self) -> str:
        return "nothing"


class Frame:
    """A call that is running."""

    __slots__ = ("base", "returned", "value")

    def __init__(self, base: int):
        self.base = base
        """The number of regions of its callers."""
        self.returned = False
        self.value: Any = None
        """The results of the lanes that have returned."""


class Flow:
    """Runs rewritten kernels on the lanes of a chunk. Belongs to one thread, and to one launch."""

    undefined = Undefined()
    all_lanes: Any = None
    """The mask of all lanes."""
    lane_range: Callable[..., Any] = LaneRange
    """Makes a range with tensors among its bounds."""

    def __init__(
        self,
        lanes: Lanes,
        semantic: Any,
        make: Callable[[np.ndarray, Any], Any],
        substitutes: Mapping[Any, Callable] | None = None,
    ):
        self.lanes = lanes
        self.semantic = semantic
        self.make = make
        """Makes a tensor's value from an array and a Triton type."""
        self.substitutes: dict[Any, Callable] = self._substitutes() | dict(substitutes or {})
        """Substitutes, by the callable that they replace."""
        self.before_loop: list[Callable[[int, int | None], Any]] = []
        self.loop_iteration: list[Callable[[int, int], Any]] = []
        self.after_loop: list[Callable[[int], Any]] = []
        self.waits = self.writes = 0
        self.others_may_help = False  # whether a program that waits is run again after the others
        self.ended: Mask = None  # the active lanes when a run ended, perhaps by an error
        self._calls: dict[int, tuple[Callable, Any]] = {}  # by id: a kernel's hash is that of its source
        self._members: dict[str, Any] = {}
        self._reset()

    def _reset(self) -> None:
        self.regions: list[Mask] = []
        self.loops: list[Loop] = []
        self.frame = Frame(0)
        self.alive = True
        """Whether any lane is active."""
        self.partial = False
        """Whether an inactive lane will continue in this call, so that its variables have to be kept."""
        self.began: Mask = self.lanes.active

    def run(self, fn: Callable, /, *args: Any, **kwargs: Any) -> Any:
        """Call a kernel's function for all lanes. Leaves the lanes as they were, also when it raises."""
        self._reset()
        active = self.lanes.active
        try:
            return self._enter(self._rewritten(fn), *args, **kwargs)
        finally:
            self.ended, self.lanes.active = self.lanes.active, active
            self._reset()

    @property
    def iterations(self) -> tuple[tuple[int, int], ...]:
        """The loops around the current statement, also those of callers: (line, iteration)."""
        return tuple((loop.line, loop.index) for loop in self.loops)

    def note_waiting_op(self) -> None:
        """Note an op by which a program may wait for another: an atomic or a volatile load."""
        self.waits += 1

    def note_write(self) -> None:
        """Note that memory was changed, by a store or by an atomic that wrote another value."""
        self.writes += 1

    # --- active lanes ---

    def set_active(self, active: Mask) -> None:
        """Make these lanes the active ones."""
        self.lanes.active = active
        base = self.frame.base
        self.partial = len(self.regions) > base and active is not self.regions[base]
        self.alive = active is None or bool(active.any())

    def leave(self, start: int) -> None:
        """Remove the active lanes from the regions from `start` on: they will not return there."""
        gone = self.lanes.active
        assert gone is not None
        regions = self.regions
        before: Any = self
        after: Mask = None
        for number in range(start, len(regions)):
            # Entries that were the same object stay the same object.
            if regions[number] is not before:
                before = regions[number]
                after = ~gone if before is None else before & ~gone
            regions[number] = after
        self.lanes.active = np.zeros(self.lanes.count, bool)
        self.alive = False

    def test(self, condition: Any) -> "bool | Split":
        """Begin an `if`: True or False if active lanes agree; otherwise a Split, with the true lanes
        active."""
        if condition is True or condition is False:
            return condition
        if not isinstance(condition, tl.tensor):
            return bool(condition)
        holds = self.per_lane(condition)
        return bool(holds[0]) if len(holds) == 1 else self.split(holds.astype(bool, copy=False))

    def split(self, holds: np.ndarray) -> "bool | Split":
        """`test`, with the condition of each lane as an array."""
        active = self.lanes.active
        taken = holds if active is None else holds & active
        count = np.count_nonzero(taken)
        if count == 0:
            return False
        if count == (self.lanes.count if active is None else np.count_nonzero(active)):
            return True
        self.regions.append(active)
        self.set_active(taken)
        return Split(~holds if active is None else active & ~holds)

    def flip(self, split: Split) -> None:
        """Continue with the `else` of a split `if`."""
        self.set_active(split.rest)

    def join(self) -> None:
        """End a split `if`."""
        self.set_active(self.regions.pop())

    def other(self, split: "bool | Split") -> bool:
        """Between the sides of `a if c else b`: whether to evaluate b; if so, its lanes are active."""
        if isinstance(split, Split):
            self.set_active(split.rest)
            return True
        return not split

    def chosen(self, split: "bool | Split", a: Any, b: Any) -> Any:
        """`a if c else b`, with the sides that were evaluated."""
        if not isinstance(split, Split):
            return a if split else b
        self.join()
        return self.blend(split.rest, b, a)

    def leaves(self, value: Any) -> bool:
        """Return from the call. True if all lanes have returned: then `result()` is the return value."""
        frame = self.frame
        active = self.lanes.active
        all_return = len(self.regions) == frame.base or active is self.regions[frame.base]
        self.finish(value)
        if not all_return:
            self.leave(frame.base)
        return all_return

    def finish(self, *value: Any) -> Any:
        """End a call; `value` is the return value of the active lanes. Returns the results of all lanes."""
        frame = self.frame
        if value:
            active = self.lanes.active
            new = value[0]
            frame.value = (
                new if not frame.returned or active is None else self.blend(active, new, frame.value)
            )
            frame.returned = True
        return frame.value

    def result(self) -> Any:
        """The result of a call."""
        return self.frame.value

    def for_loop(self, line: int, items: Any) -> Loop:
        """Begin a `for`. A range that is not unrolled gives tensors, of Python's numbers too."""
        if isinstance(items, range):
            items = LaneRange(self, items.start, items.stop, items.step)
        return Loop(self, line, items)

    def while_loop(self, line: int) -> Loop:
        """Begin a `while`."""
        return Loop(self, line)

    # --- values ---

    def tensor(self, value: Any) -> Any:
        """A value as an assignment stores it: Python's numbers become tensors."""
        if isinstance(value, tl.tensor):
            return value
        if isinstance(value, tl.constexpr):
            value = value.value
        return self.semantic.to_tensor(value) if isinstance(value, int | float) else value

    def static(self, value: Any) -> Any:
        """A value as `x: tl.constexpr = ...` stores it: a Python value."""
        return plain(value)

    def merge(self, new: Any, old: Any) -> Any:
        """A value as an assignment stores it if inactive lanes may keep the old value."""
        new = self.tensor(new)
        return self.keep(new, old) if self.partial else new

    def keep(self, new: Any, old: Any) -> Any:
        """The new value for active lanes, the old one for the others."""
        return self.blend(self.lanes.active, new, old) if self.partial else new

    def unmerged(self, value: Any) -> Any:
        """A value assigned to an attribute or element, which has no old value per lane."""
        if self.partial:
            reason = "an attribute or an element is assigned by some programs only"
            raise self._diverged(reason, self.lanes.active)
        return value

    def defined(self, value: Any, name: str) -> Any:
        """A variable's value, which must exist."""
        if value is self.undefined:
            raise UnboundLocalError(
                f"{name!r} has no value here: give it one before the `if` or the loop that assigns it"
            )
        return value

    def blend(self, mask: Any, new: Any, old: Any) -> Any:
        """The new value for the lanes of a mask, the old one for the others."""
        if new is old or old is self.undefined or mask is self.all_lanes:
            return new
        if new is self.undefined:
            return old
        if isinstance(new, _PLAIN) and type(new) is type(old) and new == old:
            return old
        if isinstance(new, _TUPLES) and type(new) is type(old) and len(new) == len(old):
            parts = [self.blend(mask, a, b) for a, b in zip(new, old, strict=True)]
            if isinstance(new, tl.tuple):
                return tl.tuple(parts)
            return new._make(parts) if hasattr(new, "_make") else type(new)(parts)  # type: ignore[attr-defined]
        return self._select(mask, new, old)

    def _select(self, mask: Any, new: Any, old: Any) -> Any:
        a, b = self.tensor(new), self.tensor(old)
        if isinstance(a, tl.tensor) and isinstance(b, tl.tensor) and a.type == b.type:
            wide = self.make(mask.reshape(-1, *(1,) * len(a.shape)), tl.int1)
            return self.wrap(self.semantic.builder.create_select(wide, a.handle, b.handle), a.type)
        # Triton's compiler refuses this; in its interpreter each program keeps its own value, as here.
        error = self._diverged(
            f"a variable is {_type_name(a)} for some programs and {_type_name(b)} for others", mask
        )
        if len(error.groups) == 1:  # no lane is left that needs the old value
            return new
        raise error

    def _diverged(self, reason: str, mask: Mask) -> Diverged:
        assert mask is not None
        return Diverged(groups_of(mask, Lanes(self.lanes.count, self.began), self.began), reason)

    def wrap(self, handle: Any, type_: Any) -> tl.tensor:
        """A tensor from what it holds."""
        return tl.tensor(handle, type_)

    def per_lane(self, value: tl.tensor) -> np.ndarray:
        """A scalar's value in each lane; of length one if all agree."""
        data = value.handle.data
        if data.ndim > 1:
            if data.size != len(data):
                shape = [int(n) for n in data.shape[1:]]
                raise TypeError(
                    f"a block of shape {shape} is not a scalar, as a branch, loop or index needs: "
                    "reduce it first, with tl.max or tl.sum"
                )
            data = data.reshape(len(data))
        return data

    def agreed(self, values: np.ndarray, what: str = "a value that Python needs") -> Any:
        """The value on which all active lanes agree."""
        if len(values) == 1:
            return values[0].item()
        seen = values if self.lanes.active is None else values[self.lanes.active]
        if len(seen) and not (seen == seen[0]).all():
            raise Diverged(groups_of(values, self.lanes, self.began), f"{what} differs between programs")
        return seen[0].item() if len(seen) else values[0].item()

    def truth(self, value: tl.tensor) -> bool:
        """`bool(tensor)`."""
        return self.agreed(self.per_lane(value).astype(bool), "a condition")

    def index(self, value: tl.tensor) -> int:
        """`int(tensor)`, and a tensor where Python needs an index."""
        return int(self.agreed(self.per_lane(value), "an index"))

    # --- and, or, not, assert ---

    def and_is_open(self, left: Any) -> bool:
        """Whether `left and right` depends on the right."""
        return _is_dynamic(left) or bool(left)

    def or_is_open(self, left: Any) -> bool:
        """Whether `left or right` depends on the right."""
        return _is_dynamic(left) or not left

    def and_(self, left: Any, right: Any) -> Any:
        """`left and right`. Tensors are combined element by element; Python values follow Python's rules."""
        if not _is_dynamic(left):
            return right if left else left
        if not _is_dynamic(right):
            return left if right else right
        return self.semantic.logical_and(self._boolean(left), self._boolean(right))

    def or_(self, left: Any, right: Any) -> Any:
        """`left or right`."""
        if not _is_dynamic(left):
            return left if left else right
        if not _is_dynamic(right):
            return right if right else left
        return self.semantic.logical_or(self._boolean(left), self._boolean(right))

    def not_(self, value: Any) -> Any:
        """`not value`."""
        return self.semantic.not_(self._boolean(value)) if isinstance(value, tl.tensor) else not value

    def _boolean(self, value: Any) -> Any:
        is_number = isinstance(value, tl.tensor) and not value.dtype.is_bool()
        return self.semantic.not_equal(value, self.tensor(0)) if is_number else value

    def check(self, condition: Any, message: Any = "") -> None:
        """`assert condition, message`."""
        if isinstance(condition, tl.tensor):
            self.call(tl.device_assert, condition, message)
        elif not condition:
            raise AssertionError(message)

    # --- calls ---

    def call(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call something as Triton's compiler would."""
        if type(fn) is MethodType:
            fn, args = fn.__func__, (fn.__self__, *args)
        known = self._calls.get(id(fn))
        if known is None:
            # Kept alive, so that no other callable gets its id.
            known = self._calls[id(fn)] = (self._resolve(fn), fn)
        return known[0](*args, **kwargs)

    def method(self, owner: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call `owner.name(...)`. A tensor's methods are the language's functions of that name."""
        if isinstance(owner, tl.tensor):
            free = self._members.get(name)
            if free is None:
                free = getattr(tl, name, False) if name in vars(tl.tensor) else False
                self._members[name] = free
            if free:
                return self.call(free, owner, *args, **kwargs)
        found = getattr(owner, name)
        first = (owner,) if isinstance(found, KernelInterface) and isinstance(owner, base_value) else ()
        return self.call(found, *first, *args, **kwargs)

    def call_JitFunction(self, fn: Any, args: Any, kwargs: Any, caller_context: Any = None) -> Any:
        """Call a kernel: the method that Triton's own functions call on their `_generator`."""
        return self.call(fn, *args, **kwargs)

    def _resolve(self, fn: Any) -> Any:
        for known, substitute in self.substitutes.items():
            if known is fn:
                return substitute
        if isinstance(fn, KernelInterface):
            return partial(self._enter, self._rewritten(fn))
        if is_builtin(fn) and not isinstance(fn, JITCallable):
            parameters = (getattr(fn, "signature", None) or inspect.signature(fn)).parameters
            extra = {"_semantic": self.semantic, "_generator": self}
            return partial(fn, **{name: value for name, value in extra.items() if name in parameters})
        return fn

    def _rewritten(self, fn: Any) -> Callable:
        while isinstance(fn, KernelInterface) and not isinstance(fn, JITCallable):
            fn = fn.fn  # type: ignore[attr-defined] - autotuner, heuristics and traces wrap a kernel
        return rewritten(fn.fn, self, source_of(fn)) if isinstance(fn, JITCallable) else rewritten(fn, self)

    def _enter(self, function: Callable, /, *args: Any, **kwargs: Any) -> Any:
        """Call a rewritten function. The lanes that are active now are active again when it ends."""
        active, frame, waiting = self.lanes.active, self.frame, self.partial
        regions, loops = len(self.regions), len(self.loops)
        self.frame, self.partial = Frame(regions), False
        result = function(*args, **kwargs)
        if len(self.regions) != regions:  # it returned from within a loop
            del self.regions[regions:]
            while len(self.loops) > loops:
                self.loops.pop().announce_end()
        self.lanes.active, self.alive = active, True
        self.frame, self.partial = frame, waiting
        return result

    def _substitutes(self) -> dict[Any, Callable]:
        return python_substitutes(self)


def _is_dynamic(value: Any) -> bool:
    """Whether the value is not a compile-time constant."""
    return isinstance(value, base_value) and not isinstance(value, tl.constexpr | tl.tuple)


def _type_name(value: Any) -> str:
    return str(value.type) if isinstance(value, tl.tensor) else type(value).__name__
