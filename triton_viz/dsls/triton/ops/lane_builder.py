"""The builder: each op of Triton's language, for all lanes at once.

Triton's own language layer (types, promotion, broadcasting) calls it like the compiler's builder or the
interpreter's. Every value is a `Value`, whose data have a leading lane axis. Most groups of ops are in
separate files.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from triton_viz.core.data import Other, Program, Reduce, Scan
from triton_viz.dsls.triton import compat
from triton_viz.dsls.triton.ops import adapters, reductions
from triton_viz.dsls.triton.ops.arithmetic import ArithmeticOps
from triton_viz.dsls.triton.ops.builder_base import BuilderBase
from triton_viz.dsls.triton.ops.casts import CastOps, rounded
from triton_viz.dsls.triton.ops.dot import DotOps
from triton_viz.dsls.triton.ops.op_traits import not_recorded, origin_rule, recorded_as
from triton_viz.dsls.triton.ops.shaping import ShapeOps
from triton_viz.dsls.triton.ops.types import compute_dtype, narrow_name
from triton_viz.errors import UnsupportedError
from triton_viz.executor.address_origin import Origin, selected
from triton_viz.executor.lanes import Lanes
from triton_viz.executor.memory import Memory
from triton_viz.executor.value import Value
from triton_viz.numerics import floats


def _selected_origin(condition: Value, a: Value, b: Value) -> Origin | None:
    """The origin of `where(condition, a, b)`."""
    return selected(condition.data, a.origin, b.origin)


class LaneBuilder(compat.BlockPointerOps, ShapeOps, CastOps, ArithmeticOps, DotOps, BuilderBase):
    """All ops, for the lanes of one chunk on one thread."""

    def __init__(self, memory: Memory):
        super().__init__()
        self.memory = memory
        self.lanes = Lanes(1)
        self.log: list[Callable[[], None]] | None = None
        """Functions that undo the chunk's writes; None if they need not be undone."""
        self.on_waiting_op: Callable[[], None] = lambda: None
        self.on_write: Callable[[], None] = lambda: None
        self.apply: Callable[..., Any] = lambda *_: None
        """The machine's `apply`: calls a function of scalars for many lanes."""
        self.bytes_per_lane = 0
        self.program_ids: list[np.ndarray] = []
        self.grid: Program = (1, 1, 1)

    def track_origins(self) -> None:
        """From now on, track which loaded integers values were computed from."""
        from triton_viz.dsls.triton.ops.origins import OriginBuilder

        self.__class__ = OriginBuilder  # type: ignore[assignment] - it adds no state

    # --- programs ---

    def create_get_program_id(self, axis: int) -> Value:
        """The program id of each lane, along one axis."""
        return Value(self.program_ids[axis], tl.int32)

    def create_get_num_programs(self, axis: int) -> Value:
        """The grid's size along one axis."""
        return Value(np.array([self.grid[axis]], np.int32), tl.int32)

    # --- constants ---

    def constant(self, value: Any, dtype: Any) -> Value:
        """A scalar constant, the same in all lanes."""
        return rounded(np.array([value]).astype(compute_dtype(dtype)), dtype)

    def get_all_ones_value(self, type: Any) -> Value:
        """All bits set."""
        np_dtype = compute_dtype(type.scalar)
        ones = np.array([True]) if np_dtype.kind == "b" else ~np.zeros(1, np_dtype)
        return Value(ones, type.scalar)

    # --- choosing and combining elements ---

    @origin_rule(_selected_origin)
    def create_select(self, condition: Value, a: Any, b: Any) -> Any:
        """a where the condition holds, b elsewhere."""
        if isinstance(a, compat.BlockPointer):
            return self.select_block_pointer(condition, a, b)
        if condition.box is not None and condition.box.full:
            return a
        return Value(np.where(condition.data, a.data, b.data), a.dtype.scalar)

    @origin_rule("mixed")
    @recorded_as(Reduce, adapters.reduce)
    def create_reduce(self, inputs: tuple[Value, ...], axis: int | None, combine: Any) -> tuple[Value, ...]:
        """Blocks with one axis (None: all) combined away."""
        return reductions.reduce(inputs, axis, combine, self.apply)

    @origin_rule("mixed")
    @recorded_as(Scan, adapters.scan)
    def create_scan(
        self, inputs: tuple[Value, ...], axis: int, combine: Any, reverse: bool
    ) -> tuple[Value, ...]:
        """Running combinations along an axis."""
        return reductions.scan(inputs, axis, combine, reverse, self.apply)

    @origin_rule("mixed")
    def create_map_elementwise(self, inputs: tuple[Value, ...], function: Any, pack: int) -> list[Value]:
        """A function of scalars for each element."""
        return reductions.map_elements(inputs, function, pack, self.lanes.active, self.apply)

    # --- printing and assertions ---

    def create_print(self, prefix: str, hex: bool, values: list[Value], is_signed: Any = None) -> None:
        """Print a line for each value and active lane, in the order of programs."""
        for lane in self._active_lanes():
            head = f"({', '.join(str(i) for i in self.program(lane))})" + (f" {prefix}" if prefix else "")
            for value in values:
                block = value.at(lane)
                print(f"{head} {_hex(block) if hex else block}")
            if not values:
                print(head)

    def create_assert(self, condition: Value, message: str, *_: Any) -> None:
        """Raise an AssertionError for the first active lane where the condition does not hold."""
        self._must_hold(condition, f"device_assert failed: {message}" if message else "device_assert failed")

    def create_assume(self, condition: Value) -> None:
        """Raise an AssertionError if an assumption that the kernel states does not hold."""
        self._must_hold(condition, "tl.assume does not hold")

    def _active_lanes(self) -> Any:
        active = self.lanes.active
        return range(self.lanes.count) if active is None else np.flatnonzero(active).tolist()

    def _must_hold(self, condition: Value, message: str) -> None:
        if condition.box is not None and condition.box.full:
            return
        holds = condition.data.reshape(condition.lanes, -1).all(axis=1)
        broken = ~holds if self.lanes.active is None else ~holds & self.lanes.active
        if broken.any():
            error = AssertionError(message)
            error.lane = int(np.flatnonzero(broken)[0])  # type: ignore[attr-defined]
            raise error

    @not_recorded
    def create_barrier(self, *_: Any) -> None:
        """Does nothing: all lanes run the same op at a time."""

    create_grid_dependency_wait = create_barrier
    create_grid_dependency_launch_dependents = create_barrier

    def program(self, lane: int) -> Program:
        """The program of a lane."""
        x, y, z = (int(ids[lane if len(ids) > 1 else 0]) for ids in self.program_ids)
        return x, y, z

    # --- ops that are not implemented ---

    def create_inline_asm(self, assembly: str, *_: Any) -> None:
        """Raises an UnsupportedError: assembly runs on a GPU only."""
        first = assembly.strip().splitlines()[0][:60] if assembly.strip() else ""
        raise UnsupportedError(
            f"inline assembly ({first!r}) is for a GPU and cannot run on a CPU: guard it with a constexpr, "
            "and write the same in tl ops for this run"
        )

    def __getattr__(self, name: str) -> Any:
        """An op that is not implemented for lanes: Triton's interpreter runs it lane by lane, if possible."""
        if name.startswith("get_"):
            return self.constant_of_type(name)
        if not name.startswith("create_") or not hasattr(interpreter.interpreter_builder, name):
            raise UnsupportedError(f"Triton's {name.removeprefix('create_')} cannot run on a CPU yet")
        return lambda *args: self.lane_by_lane(name, *args)

    @origin_rule("mixed")
    @recorded_as(Other, adapters.unknown)
    def lane_by_lane(self, name: str, *args: Any) -> Any:
        """Run an op of Triton's interpreter for each lane, and stack the results."""
        original = getattr(interpreter.interpreter_builder, name)
        lanes = max((arg.lanes for arg in args if isinstance(arg, Value)), default=1)
        results = []
        for lane in range(lanes):
            own = [_interpreter_handle(arg, lane) if isinstance(arg, Value) else arg for arg in args]
            results.append(original(*own))
        scalar = not any(arg.shape for arg in args if isinstance(arg, Value))
        if isinstance(results[0], tuple):
            return tuple(_joined([r[i] for r in results], scalar) for i in range(len(results[0])))
        return None if results[0] is None else _joined(results, scalar)


def _interpreter_handle(value: Value, lane: int) -> interpreter.TensorHandle:
    data = value.at(lane)
    if narrow := narrow_name(value.dtype):
        data = floats.pack(data, narrow)
    elif value.dtype.is_ptr():
        data = data.astype(np.uint64)
    return interpreter.TensorHandle(np.atleast_1d(data), value.dtype)


def _joined(handles: list[Any], scalar: bool) -> Value:
    dtype = handles[0].dtype
    data = np.stack([handle.data for handle in handles])
    if scalar and data.shape[1:] == (1,):  # the interpreter's scalars are blocks of one element
        data = data[:, 0]
    if narrow := narrow_name(dtype):
        data = floats.decode(data, narrow)
    return Value(data.astype(compute_dtype(dtype), copy=False), dtype)


def _hex(block: np.ndarray) -> str:
    def one(x: Any) -> str:
        if isinstance(x, np.floating):
            return float(x).hex()
        return f"0x{int(x) & (2 ** (8 * x.dtype.itemsize) - 1):0{2 * x.dtype.itemsize}x}"

    return np.array2string(block, formatter={"all": one})
