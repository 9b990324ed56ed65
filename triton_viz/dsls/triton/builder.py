"""The builder: what each op of Triton's language does, for all lanes at once.

Triton's own language layer (types, promotion, broadcasting) calls it, as it calls the compiler's builder or
its interpreter's. Every value is a `Value`: its data have a leading lane axis.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from triton_viz.core.grid import floats
from triton_viz.core.grid.affine import Affine, Box
from triton_viz.core.grid.lanes import Lanes
from triton_viz.core.grid.memory import Memory
from triton_viz.core.grid.value import Value
from triton_viz.dsls.triton import compat, libdevice, reductions
from triton_viz.dsls.triton.dot import DotOps
from triton_viz.dsls.triton.types import ADDRESS, COMPUTED, NARROW, RANGES, computed, stored, width
from triton_viz.errors import UnsupportedError

Program = tuple[int, int, int]
_INT32 = np.dtype(np.int32)


class LaneBuilder(compat.BlockPointerOps, DotOps):
    """All ops, for the lanes of one chunk on one thread."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self.lanes = Lanes(1)
        self.log: list[Callable[[], None]] | None = None
        """How to undo what was written since the chunk began, if that may be needed."""
        self.on_waiting_op: Callable[[], None] = lambda: None
        self.on_write: Callable[[], None] = lambda: None
        self.apply: Callable[..., Any] = lambda *_: None
        """Calls a function of scalars for many lanes; the machine's."""
        self.bytes_per_lane = 0
        self.program_ids: list[np.ndarray] = []
        self.grid: Program = (1, 1, 1)
        self.arch = None
        self.options = interpreter.InterpreterOptions(debug=True, sanitize_overflow=False)
        self.codegen_fns = {
            "convert_custom_types": _convert_custom_types,
            "min_dot_size": lambda left, right: (1, 1, 1),
        }

    # --- programs ---

    def create_get_program_id(self, axis: int) -> Value:
        """Which program this lane is, along one axis."""
        return Value(self.program_ids[axis], tl.int32)

    def create_get_num_programs(self, axis: int) -> Value:
        """The grid's size along one axis."""
        return Value(np.array([self.grid[axis]], _INT32), tl.int32)

    # --- types and constants ---

    def get_ptr_ty(self, element: Any, address_space: Any) -> Any:
        """A pointer's type."""
        return tl.pointer_type(element, address_space)

    def get_block_ty(self, element: Any, shape: list[int]) -> Any:
        """A block's type."""
        return tl.block_type(element, shape)

    def get_null_value(self, type: Any) -> Value:
        """Zero."""
        return Value(np.zeros(1, computed(type.scalar)), type.scalar)

    def get_all_ones_value(self, type: Any) -> Value:
        """All bits set."""
        kind = computed(type.scalar)
        ones = np.array([True]) if kind.kind == "b" else ~np.zeros(1, kind)
        return Value(ones, type.scalar)

    def get_fp16(self, value: float) -> Value:
        """A constant."""
        return Value(np.array([value], np.float16), tl.float16)

    def get_fp32(self, value: float) -> Value:
        """A constant."""
        return Value(np.array([value], np.float32), tl.float32)

    def get_fp64(self, value: float) -> Value:
        """A constant."""
        return Value(np.array([value], np.float64), tl.float64)

    def get_bf16(self, value: float) -> Value:
        """A constant."""
        return Value(floats.round_to(np.array([value], np.float32), "bf16"), tl.bfloat16)

    def get_cache_policy(self, *_: Any) -> None:
        """Nothing is cached here."""

    # --- making and reshaping blocks ---

    def create_make_range(self, type: Any, start: int, stop: int) -> Value:
        """start, start + 1, ... stop - 1."""
        form = Affine(np.array([start], np.int64), (1,), (stop - start,), start, stop - 1)
        return Value(None, tl.int32, affine=form, kind=_INT32)

    def create_splat(self, type: Any, arg: Value) -> Value:
        """A block of one number."""
        shape = tuple(type.shape)
        dtype, data = arg.dtype.scalar, arg.data
        if data.dtype.kind == "b":
            bounds = None if data.all() else (np.zeros(len(data), np.int64), np.where(data, shape[0], 0))
            return Value(None, dtype, box=Box((bounds, *(None,) * (len(shape) - 1)), shape))
        form = arg.numbers
        if form is not None:
            return Value(None, dtype, affine=form.broadcast(shape), kind=data.dtype)
        spread = data.reshape(len(data), *(1,) * len(shape))
        return Value(np.broadcast_to(spread, (len(data), *shape)), dtype)

    def create_unsplat(self, arg: Value) -> Value:
        """The only element of a block."""
        return Value(arg.data.reshape(arg.lanes), arg.dtype)

    def create_expand_dims(self, arg: Value, axis: int) -> Value:
        """With a new axis of length one."""
        if arg.affine is not None:
            return Value(None, arg.dtype, affine=arg.affine.expand_dims(axis), kind=arg.kind)
        if arg.box is not None:
            return Value(None, arg.dtype, box=arg.box.expand_dims(axis))
        return Value(np.expand_dims(arg.data, axis + 1), arg.dtype)

    def create_broadcast(self, arg: Value, shape: Any) -> Value:
        """Repeated along axes of length one."""
        shape = tuple(_plain(n) for n in shape)
        if arg.affine is not None:
            return Value(None, arg.dtype, affine=arg.affine.broadcast(shape), kind=arg.kind)
        if arg.box is not None:
            return Value(None, arg.dtype, box=arg.box.broadcast(shape))
        return Value(np.broadcast_to(arg.data, (arg.lanes, *shape)), arg.dtype)

    def create_trans(self, arg: Value, order: Any) -> Value:
        """With its axes in another order."""
        order = tuple(_plain(axis) for axis in order)
        if arg.affine is not None:
            return Value(None, arg.dtype, affine=arg.affine.transpose(order), kind=arg.kind)
        if arg.box is not None:
            return Value(None, arg.dtype, box=arg.box.transpose(order))
        return Value(arg.data.transpose(0, *(axis + 1 for axis in order)), arg.dtype)

    def create_reshape(self, arg: Value, shape: Any, allow_reorder: bool = False) -> Value:
        """The same elements in another shape."""
        shape = tuple(_plain(n) for n in shape)
        return Value(arg.data.reshape(arg.lanes, *shape), arg.dtype)

    def create_cat(self, left: Value, right: Value, *_: Any) -> Value:
        """One after the other."""
        return Value(np.concatenate(_aligned(left.data, right.data), axis=1), left.dtype)

    def create_join(self, left: Value, right: Value) -> Value:
        """Side by side along a new last axis."""
        return Value(np.stack(_aligned(left.data, right.data), axis=-1), left.dtype)

    def create_split(self, arg: Value) -> tuple[Value, Value]:
        """The two halves of the last axis."""
        return Value(arg.data[..., 0], arg.dtype), Value(arg.data[..., 1], arg.dtype)

    def create_gather(self, source: Value, index: Value, axis: int) -> Value:
        """Elements picked along an axis."""
        places = index.data.astype(np.int64)
        size = source.shape[axis]
        if places.size and (places.min() < 0 or places.max() >= size):
            raise IndexError(f"tl.gather picks index {places.min()} to {places.max()} of an axis of {size}")
        data, places = _aligned(source.data, places)
        return Value(np.take_along_axis(data, places, axis + 1), source.dtype)

    def create_histogram(self, data: Value, bins: int, mask: Value | None = None) -> Value:
        """How often each whole number from 0 to bins - 1 occurs in each lane."""
        keep = (data.data >= 0) & (data.data < bins)
        if mask is not None:
            keep = keep & mask.data
        lanes = len(keep)
        rows = np.arange(lanes).reshape(-1, *(1,) * (keep.ndim - 1)) * bins
        at = (np.broadcast_to(data.data, keep.shape) + rows)[keep]
        counts = np.bincount(at, minlength=lanes * bins).reshape(lanes, bins)
        return Value(counts.astype(np.int32), tl.int32)

    # --- casts ---

    def create_int_cast(self, arg: Value, type: Any, is_signed: bool) -> Value:
        """Between types of whole numbers; what does not fit wraps around."""
        dtype = type.scalar
        kind = COMPUTED[dtype]
        if arg.affine is not None and _fits(arg.affine, kind):
            return Value(None, dtype, affine=arg.affine, kind=kind)
        return Value(arg.data.astype(kind), dtype)

    def create_si_to_fp(self, arg: Value, type: Any) -> Value:
        """Whole numbers to floats."""
        return _value(arg.data.astype(COMPUTED[type.scalar]), type.scalar)

    create_ui_to_fp = create_si_to_fp

    def create_fp_to_si(self, arg: Value, type: Any) -> Value:
        """Floats to whole numbers, toward zero."""
        return Value(arg.data.astype(COMPUTED[type.scalar]), type.scalar)

    create_fp_to_ui = create_fp_to_si

    def create_fp_to_fp(self, arg: Value, type: Any, rounding: Any = None) -> Value:
        """Between floats; to nearest even unless it is asked for rounding toward zero."""
        dtype = type.scalar
        toward_zero = rounding is not None and "RTZ" in str(rounding)
        data = arg.data
        if dtype in NARROW:
            as_single = data.astype(np.float32)
            if toward_zero and data.dtype == np.float64:
                as_single = _toward_zero(data, as_single)
            return Value(floats.round_to(as_single, NARROW[dtype], toward_zero), dtype)
        rounded = data.astype(COMPUTED[dtype])
        return Value(_toward_zero(data, rounded) if toward_zero else rounded, dtype)

    create_fp_ext = create_fp_to_fp
    create_fp_trunc = create_fp_to_fp

    def create_bitcast(self, arg: Value, type: Any) -> Value:
        """The same bits as another type."""
        dtype = type.scalar
        if dtype.is_ptr() and arg.dtype.is_ptr():
            return _retyped(arg, dtype)
        bits = floats.pack(arg.data, NARROW[arg.dtype]) if arg.dtype in NARROW else arg.data
        bits = bits.view(stored(dtype)) if bits.dtype.itemsize == stored(dtype).itemsize else bits
        return Value(floats.decode(bits, NARROW[dtype]) if dtype in NARROW else bits, dtype)

    def create_int_to_ptr(self, arg: Value, type: Any) -> Value:
        """A number as an address."""
        if arg.affine is not None:
            return Value(None, type.scalar, affine=arg.affine, kind=ADDRESS)
        return Value(arg.data.astype(ADDRESS), type.scalar)

    def create_ptr_to_int(self, arg: Value, type: Any) -> Value:
        """An address as a number."""
        kind = COMPUTED[type.scalar]
        if arg.affine is not None:
            return Value(None, type.scalar, affine=arg.affine, kind=kind)
        return Value(arg.data.astype(kind), type.scalar)

    def create_addptr(self, pointer: Value, offset: Value) -> Value:
        """A pointer so many elements further on."""
        size = width(pointer.dtype)
        base, distance = pointer.numbers, offset.numbers
        if base is not None and distance is not None:
            return Value(None, pointer.dtype, affine=base.add(distance.scale(size)), kind=ADDRESS)
        return Value(pointer.data + offset.data.astype(np.int64) * size, pointer.dtype)

    # --- arithmetic ---

    def create_add(self, a: Value, b: Value) -> Value:
        """Of whole numbers."""
        if a.shape and (x := a.affine) is not None and (y := b.affine) is not None:
            return _whole(x.add(y), a, b, np.add)
        return _binary(a, b, np.add)

    def create_sub(self, a: Value, b: Value) -> Value:
        """Of whole numbers."""
        if a.shape and (x := a.affine) is not None and (y := b.affine) is not None:
            return _whole(x.add(y.negate()), a, b, np.subtract)
        return _binary(a, b, np.subtract)

    def create_mul(self, a: Value, b: Value) -> Value:
        """Of whole numbers."""
        if a.shape and (x := a.affine) is not None and (y := b.affine) is not None:
            product = x.multiply(y)
            if product is not None:
                return _whole(product, a, b, np.multiply)
        return _binary(a, b, np.multiply)

    def create_srem(self, a: Value, b: Value) -> Value:
        """The rest of a division toward zero: it has the dividend's sign."""
        if a.shape and (x := a.affine) is not None and (y := b.affine) is not None:
            by = int(y.base[0]) if y.constant and len(y.base) == 1 else 0
            if by > 0:
                low, high = (x.low, x.high) if x.low >= 0 and x.high < by else x.exact_range()
                if low >= 0 and high < by:  # nothing wraps around
                    return a
        return _binary(a, _no_zero(b), np.fmod)

    create_urem = create_srem

    def create_sdiv(self, a: Value, b: Value) -> Value:
        """Toward zero."""
        x, y = a.data, _no_zero(b).data
        if x.dtype.kind == "u":
            return Value(x // y, a.dtype.scalar)
        quotient = x // y
        # Down was right unless there is a rest and the signs differ.
        return Value(quotient + ((quotient * y != x) & ((x < 0) != (y < 0))).astype(x.dtype), a.dtype.scalar)

    create_udiv = create_sdiv
    create_idiv = create_sdiv

    def create_and(self, a: Value, b: Value) -> Value:
        """Bit by bit; of masks, where both are true."""
        if a.box is not None and b.box is not None:
            return Value(None, a.dtype, box=a.box.intersect(b.box))
        return _binary(a, b, np.bitwise_and)

    def create_or(self, a: Value, b: Value) -> Value:
        """Bit by bit; of masks, where one is true."""
        for one in (a, b):
            if one.box is not None and one.box.full:
                return one
        return _binary(a, b, np.bitwise_or)

    def create_xor(self, a: Value, b: Value) -> Value:
        """Bit by bit."""
        return _binary(a, b, np.bitwise_xor)

    def create_lshr(self, a: Value, b: Value) -> Value:
        """To the right, with zeros moving in."""
        data = a.data
        unsigned = data.view(f"u{data.dtype.itemsize}") if data.dtype.kind == "i" else data
        shifted = np.right_shift(unsigned, b.data.astype(unsigned.dtype))
        return Value(shifted.view(data.dtype), a.dtype.scalar)

    def create_ashr(self, a: Value, b: Value) -> Value:
        """To the right, with copies of the sign moving in."""
        data = a.data
        signed = data.view(f"i{data.dtype.itemsize}") if data.dtype.kind == "u" else data
        return Value(np.right_shift(signed, b.data.astype(signed.dtype)).view(data.dtype), a.dtype.scalar)

    def create_umulhi(self, a: Value, b: Value) -> Value:
        """The upper half of the product of two unsigned numbers."""
        x, y, kind = a.data, b.data, a.data.dtype
        bits = kind.itemsize * 8
        if bits == 64:
            return Value(
                libdevice.elementwise("__nv_umul64hi", x.view("u8"), y.view("u8")).view(kind), a.dtype
            )
        narrow, wide = f"u{kind.itemsize}", f"u{kind.itemsize * 2}"
        product = x.view(narrow).astype(wide) * y.view(narrow).astype(wide)
        return Value((product >> np.array(bits, wide)).astype(narrow).view(kind), a.dtype)

    def create_fneg(self, a: Value) -> Value:
        """The other sign."""
        return Value(-a.data, a.dtype)

    def create_fma(self, x: Value, y: Value, z: Value) -> Value:
        """x * y + z, rounded once."""
        dtype, kind = z.dtype.scalar, z.data.dtype
        arrays = np.broadcast_arrays(x.data, y.data, z.data)
        exact = compat.FMA.get(kind)
        if dtype not in NARROW and exact is not None:
            return Value(exact(*(np.ascontiguousarray(a) for a in arrays)), dtype)
        a, b, c = (array.astype(np.float64) for array in arrays)
        return _value((a * b + c).astype(kind), dtype)

    def create_clampf(self, x: Value, low: Value, high: Value, propagate_nan: Any) -> Value:
        """Between two limits."""
        if "NONE" in str(propagate_nan):
            return Value(np.fmin(np.fmax(x.data, low.data), high.data), x.dtype)
        return Value(np.minimum(np.maximum(x.data, low.data), high.data), x.dtype)

    def create_select(self, condition: Value, a: Any, b: Any) -> Any:
        """a where the condition holds, b elsewhere."""
        if isinstance(a, compat.BlockPointer):
            return self.select_block_pointer(condition, a, b)
        if condition.box is not None and condition.box.full:
            return a
        return Value(np.where(condition.data, a.data, b.data), a.dtype.scalar)

    def create_fabs(self, a: Value) -> Value:
        """Without its sign."""
        return Value(np.abs(a.data), a.dtype)

    def create_rsqrt(self, a: Value) -> Value:
        """1 / sqrt."""
        one = a.data.dtype.type(1)
        return _value(one / np.sqrt(a.data), a.dtype)

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, args: list[Value], type: Any, is_pure: bool
    ) -> Value:
        """A function of a math library."""
        result = libdevice.elementwise(symbol, *(arg.data for arg in args))
        return _value(result.astype(computed(type.scalar), copy=False), type.scalar)

    def create_inline_asm(self, assembly: str, *_: Any) -> None:
        """Impossible here."""
        first = assembly.strip().splitlines()[0][:60] if assembly.strip() else ""
        raise UnsupportedError(
            f"inline assembly ({first!r}) is for a GPU and cannot run on a CPU: guard it with a constexpr, "
            "and write the same in tl ops for this run"
        )

    # --- what combines elements by a function ---

    def create_reduce(self, inputs: tuple[Value, ...], axis: int | None, combine: Any) -> tuple[Value, ...]:
        """Blocks with one axis (None: all) combined away."""
        return reductions.reduce(inputs, axis, combine, self.apply)

    def create_scan(
        self, inputs: tuple[Value, ...], axis: int, combine: Any, reverse: bool
    ) -> tuple[Value, ...]:
        """Running combinations along an axis."""
        return reductions.scan(inputs, axis, combine, reverse, self.apply)

    def create_map_elementwise(self, inputs: tuple[Value, ...], function: Any, pack: int) -> list[Value]:
        """A function of scalars for each element."""
        return reductions.map_elements(inputs, function, pack, self.apply)

    # --- talking to the user ---

    def create_print(self, prefix: str, hex: bool, values: list[Value], is_signed: Any = None) -> None:
        """A line per value and active lane, in the order of programs."""
        for lane in self._active_lanes():
            head = f"({', '.join(str(i) for i in self.program(lane))})" + (f" {prefix}" if prefix else "")
            for value in values:
                block = value.at(lane)
                print(f"{head} {_hex(block) if hex else block}")
            if not values:
                print(head)

    def create_assert(self, condition: Value, message: str, *_: Any) -> None:
        """An error in the first active lane where it does not hold."""
        self._must_hold(condition, f"device_assert failed: {message}" if message else "device_assert failed")

    def create_assume(self, condition: Value) -> None:
        """What a kernel promises its compiler has to be true."""
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

    def create_barrier(self, *_: Any) -> None:
        """Lanes are in step anyway."""

    create_grid_dependency_wait = create_barrier
    create_grid_dependency_launch_dependents = create_barrier

    def program(self, lane: int) -> Program:
        """Which program a lane is."""
        x, y, z = (int(ids[lane if len(ids) > 1 else 0]) for ids in self.program_ids)
        return x, y, z

    def __getattr__(self, name: str) -> Any:
        """An op we have no lanes for: Triton's own, lane by lane. Or there is none."""
        if name.startswith("get_"):
            return _constant_or_type(name)
        if not name.startswith("create_") or not hasattr(interpreter.interpreter_builder, name):
            raise UnsupportedError(f"Triton's {name.removeprefix('create_')} cannot run on a CPU yet")
        return lambda *args: self.lane_by_lane(name, *args)

    def lane_by_lane(self, name: str, *args: Any) -> Any:
        """Run an op of Triton's interpreter for each lane, and put the results together."""
        original = getattr(interpreter.interpreter_builder, name)
        lanes = max((arg.lanes for arg in args if isinstance(arg, Value)), default=1)
        results = []
        for lane in range(lanes):
            own = [_stock(arg, lane) if isinstance(arg, Value) else arg for arg in args]
            results.append(original(*own))
        scalar = not any(arg.shape for arg in args if isinstance(arg, Value))
        if isinstance(results[0], tuple):
            return tuple(_joined([r[i] for r in results], scalar) for i in range(len(results[0])))
        return None if results[0] is None else _joined(results, scalar)


def _stock(value: Value, lane: int) -> interpreter.TensorHandle:
    data = value.at(lane)
    if value.dtype in NARROW:
        data = floats.pack(data, NARROW[value.dtype])
    elif value.dtype.is_ptr():
        data = data.astype(np.uint64)
    return interpreter.TensorHandle(np.atleast_1d(data), value.dtype)


def _joined(handles: list[Any], scalar: bool) -> Value:
    dtype = handles[0].dtype
    data = np.stack([handle.data for handle in handles])
    if scalar and data.shape[1:] == (1,):  # the interpreter's scalars are blocks of one
        data = data[:, 0]
    if dtype in NARROW:
        data = floats.decode(data, NARROW[dtype])
    return Value(data.astype(computed(dtype), copy=False), dtype)


def _constant_or_type(name: str) -> Callable[..., Any]:
    """`get_int32(5)` and its like, a function for each type of whole numbers."""
    dtype = getattr(tl, name.removeprefix("get_"), None)
    if not isinstance(dtype, tl.dtype):
        raise AttributeError(name)
    kind = computed(dtype)
    return lambda value: Value(np.array([value]).astype(kind), dtype)


def _convert_custom_types(input: Any, type: Any, rounding: Any, _semantic: Any) -> Any:
    return tl.tensor(_semantic.builder.create_fp_to_fp(input.handle, type, rounding), type)


def _plain(number: Any) -> int:
    return number.value if isinstance(number, tl.constexpr) else int(number)


def _aligned(*arrays: np.ndarray) -> list[np.ndarray]:
    """With as many lanes each."""
    lanes = max(len(array) for array in arrays)
    return [np.broadcast_to(array, (lanes, *array.shape[1:])) for array in arrays]


def _retyped(value: Value, dtype: Any) -> Value:
    if value.affine is not None:
        return Value(None, dtype, affine=value.affine, kind=value.kind)
    return Value(value.data, dtype)


def _value(data: np.ndarray, dtype: Any) -> Value:
    """A result, rounded if its type is one that NumPy lacks."""
    return Value(floats.round_to(data, NARROW[dtype]) if dtype in NARROW else data, dtype)


def _fits(form: Affine, kind: np.dtype) -> bool:
    low, high = RANGES[kind]
    if low <= form.low and form.high <= high:
        return True
    form.low, form.high = form.exact_range()
    return low <= form.low and form.high <= high


def _whole(form: Affine, a: Value, b: Value, function: np.ufunc) -> Value:
    """A result that is affine, unless a number is too large for its type and wraps around."""
    kind = COMPUTED[a.dtype.scalar]
    if _fits(form, kind):
        return Value(None, a.dtype, affine=form, kind=kind)
    return _binary(a, b, function)


def _no_zero(divisor: Value) -> Value:
    """A divisor in which zeros are ones: what a division by zero gives is anybody's guess."""
    data = divisor.data
    if data.dtype.kind in "iu" and not data.all():
        return Value(np.where(data == 0, data.dtype.type(1), data), divisor.dtype)
    return divisor


def _binary(a: Value, b: Value, function: Callable[..., np.ndarray]) -> Value:
    dtype = a.dtype.scalar
    x, y = a.data, b.data
    if x.dtype.kind == "b" and y.dtype.kind == "b" and function in (np.add, np.subtract, np.multiply):
        # Triton's int1 is a number of one bit.
        function = np.bitwise_and if function is np.multiply else np.bitwise_xor
    result = function(x, y)
    kind = computed(dtype)
    if result.dtype != kind:
        result = result.astype(kind)
    return _value(result, dtype)


def _toward_zero(exact: np.ndarray, rounded: np.ndarray) -> np.ndarray:
    beyond = np.abs(rounded.astype(exact.dtype)) > np.abs(exact)
    return np.where(beyond, np.nextafter(rounded, rounded.dtype.type(0)), rounded)


def _hex(block: np.ndarray) -> str:
    def one(x: Any) -> str:
        if isinstance(x, np.floating):
            return float(x).hex()
        return f"0x{int(x) & (2 ** (8 * x.dtype.itemsize) - 1):0{2 * x.dtype.itemsize}x}"

    return np.array2string(block, formatter={"all": one})


def _elementwise(function: Callable[..., np.ndarray]) -> Callable[..., Value]:
    """An op of one argument, or of two of one type."""

    def op(self: LaneBuilder, *args: Value) -> Value:
        if len(args) == 2:
            return _binary(args[0], args[1], function)
        (a,) = args
        return _value(function(a.data), a.dtype)

    return op


def _compared(function: np.ufunc, order: str) -> Callable[..., Value]:
    """A comparison; of affine numbers, the result may be a box."""

    def op(self: LaneBuilder, a: Value, b: Value) -> Value:
        if a.shape and order and (x := a.affine) is not None and (y := b.affine) is not None:
            difference = x.add(y.negate()) if "<" in order else y.add(x.negate())
            if "=" in order:
                difference = Affine(
                    difference.base - 1,
                    difference.steps,
                    difference.shape,
                    difference.low - 1,
                    difference.high - 1,
                )
            box = difference.below_zero()
            if box is not None:
                return Value(None, tl.int1, box=box)
        return Value(function(a.data, b.data), tl.int1)

    return op


_ELEMENTWISE: dict[str, Callable[..., np.ndarray]] = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
    "precise_divf": np.divide,
    "approx_divf": np.divide,
    "frem": np.fmod,
    "shl": np.left_shift,
    "minsi": np.minimum,
    "minui": np.minimum,
    "minimumf": np.minimum,
    "minnumf": np.fmin,
    "maxsi": np.maximum,
    "maxui": np.maximum,
    "maximumf": np.maximum,
    "maxnumf": np.fmax,
    "iabs": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "precise_sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "erf": libdevice.erf,
}
_COMPARED = {"LT": (np.less, "<"), "LE": (np.less_equal, "<="), "GT": (np.greater, ">")} | {
    "GE": (np.greater_equal, ">="),
    "EQ": (np.equal, ""),
    "NE": (np.not_equal, ""),
}
for _name, _function in _ELEMENTWISE.items():
    setattr(LaneBuilder, f"create_{_name}", _elementwise(_function))
for _name, (_ufunc, _order) in _COMPARED.items():
    for _prefix in ("icmpS", "icmpU", "icmp", "fcmpO", "fcmpU"):
        _op = _compared(_ufunc, _order if _prefix.startswith("i") else "")
        setattr(LaneBuilder, f"create_{_prefix}{_name}", _op)
