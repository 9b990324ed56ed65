"""The symbolic builder: each op of Triton's language, on expressions.

Triton's own language layer calls it like the executor's builder. An unknown op has an unknown result; one
that may access memory stops the analysis.
"""

import math
from collections.abc import Callable
from typing import Any

import triton.language as tl

from triton_viz.dsls.triton.ops.builder_base import BuilderBase
from triton_viz.dsls.triton.ops.types import width
from triton_viz.dsls.triton.symbolic import integers
from triton_viz.dsls.triton.symbolic.combining import CombiningOps
from triton_viz.dsls.triton.symbolic.expression import (
    FALSE,
    TRUE,
    Reason,
    add,
    any_of,
    both,
    choose,
    equal,
    maximum,
    minimum,
    multiply,
    not_negative,
    number,
    opposite,
    program_id,
    scale,
    subtract,
    unknown_condition,
)
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.integers import IntegerType, wrap
from triton_viz.dsls.triton.symbolic.nodes import Cond, Sum
from triton_viz.dsls.triton.symbolic.symbolic_access import AccessOps
from triton_viz.dsls.triton.symbolic.symbolic_ops import Stopped
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic, indices, integer_type

_MEMORY = ("load", "store", "atomic", "descriptor", "gather", "scatter", "copy", "tma")
"""An unknown op whose name contains one of these may access memory."""


class SymbolicBuilder(CombiningOps, AccessOps, BuilderBase):
    """All ops, on expressions."""

    def __init__(self, grid: tuple[int, int, int]):
        super().__init__(grid)
        BuilderBase.__init__(self)

    # --- programs, types and constants ---

    def create_get_program_id(self, axis: int) -> Symbolic:
        """The program id along one axis, as a variable."""
        return Symbolic(program_id(axis, self.grid[axis]), tl.int32, (), Origin(f"tl.program_id({axis})"))

    def create_get_num_programs(self, axis: int) -> Symbolic:
        """The grid's size along one axis."""
        return Symbolic(number(self.grid[axis]), tl.int32, (), Origin(f"tl.num_programs({axis})"))

    def constant(self, value: Any, dtype: Any) -> Symbolic:
        """A scalar constant."""
        if dtype.is_floating():
            return Symbolic(float(value), dtype, (), Origin(f"{value:g}"))
        if dtype.is_bool():
            return Symbolic(TRUE if value else FALSE, dtype, (), Origin(str(bool(value))))
        return Symbolic(wrap(number(int(value)), integer_type(dtype)), dtype, (), Origin(str(int(value))))

    def get_all_ones_value(self, type: Any) -> Symbolic:
        """All bits set."""
        dtype = type.scalar
        type_ = integer_type(dtype)
        return self.constant(1 if dtype.is_bool() else -1 if type_.signed else type_.high, dtype)

    # --- casts ---

    def create_int_cast(self, arg: Symbolic, type: Any, is_signed: bool) -> Symbolic:
        """A cast between integer types."""
        dtype = type.scalar
        if dtype.is_bool():
            low_bit = integers.bits_and(arg.sum, number(1), integer_type(arg.dtype))
            return Symbolic(opposite(equal(low_bit, number(0))), dtype, arg.shape, arg.origin)
        return Symbolic(wrap(arg.sum, integer_type(dtype)), dtype, arg.shape, arg.origin)

    def create_si_to_fp(self, arg: Symbolic, type: Any) -> Symbolic:
        """Integers to floats."""
        exact = isinstance(arg.node, Sum) and arg.node.is_const and abs(arg.node.const) < 1 << 24
        return Symbolic(float(arg.sum.const) if exact else None, type.scalar, arg.shape, arg.origin)

    create_ui_to_fp = create_si_to_fp

    def create_fp_to_si(self, arg: Symbolic, type: Any) -> Symbolic:
        """Floats to integers, toward zero."""
        if isinstance(arg.node, float) and math.isfinite(arg.node):
            type_ = integer_type(type.scalar)
            if type_.low <= arg.node <= type_.high:
                return Symbolic(number(int(arg.node)), type.scalar, arg.shape, arg.origin)
        return self.open_value(type, arg.shape, "a float turned into an integer", arg.origin)

    create_fp_to_ui = create_fp_to_si

    def create_fp_to_fp(self, arg: Symbolic, type: Any, rounding: Any = None) -> Symbolic:
        """A cast between floats."""
        exact = isinstance(arg.node, float) and arg.node.is_integer() and abs(arg.node) <= 256
        return Symbolic(arg.node if exact else None, type.scalar, arg.shape, arg.origin)

    create_fp_ext = create_fp_to_fp
    create_fp_trunc = create_fp_to_fp

    def create_bitcast(self, arg: Symbolic, type: Any) -> Symbolic:
        """The same bits as another type."""
        dtype = type.scalar
        if dtype.is_ptr() and arg.dtype.is_ptr():
            return Symbolic(arg.node, dtype, arg.shape, arg.origin)
        if isinstance(arg.node, Sum) and dtype.is_int() and not dtype.is_bool():
            return Symbolic(wrap(arg.node, integer_type(dtype)), dtype, arg.shape, arg.origin)
        if isinstance(arg.node, Cond) and dtype.is_bool():
            return arg
        return self.open_value(dtype, arg.shape, "the bits of a float", arg.origin)

    def create_int_to_ptr(self, arg: Symbolic, type: Any) -> Symbolic:
        """An integer as an address."""
        return Symbolic(arg.sum, type.scalar, arg.shape, arg.origin)

    def create_ptr_to_int(self, arg: Symbolic, type: Any) -> Symbolic:
        """An address as an integer."""
        return Symbolic(wrap(arg.sum, integer_type(type.scalar)), type.scalar, arg.shape, arg.origin)

    def create_addptr(self, pointer: Symbolic, offset: Symbolic) -> Symbolic:
        """A pointer moved by a number of elements."""
        moved = add(pointer.sum, scale(offset.sum, width(pointer.dtype)))
        return Symbolic(moved, pointer.dtype, pointer.shape, Origin("add", pointer.origin, offset.origin))

    # --- arithmetic ---

    def create_and(self, a: Symbolic, b: Symbolic) -> Symbolic:
        """Bitwise and; of masks, where both are true."""
        if isinstance(a.node, Cond) and isinstance(b.node, Cond):
            return _bool(both(a.node, b.node), a, b, "and")
        return _integer_result(integers.bits_and(a.sum, b.sum, integer_type(a.dtype)), a, b, "and")

    def create_or(self, a: Symbolic, b: Symbolic) -> Symbolic:
        """Bitwise or; of masks, where one is true."""
        if isinstance(a.node, Cond) and isinstance(b.node, Cond):
            return _bool(any_of((a.node, b.node)), a, b, "or")
        return _integer_result(integers.bits_or(a.sum, b.sum, integer_type(a.dtype)), a, b, "or")

    def create_xor(self, a: Symbolic, b: Symbolic) -> Symbolic:
        """Bitwise exclusive or."""
        if isinstance(a.node, Cond) and isinstance(b.node, Cond):
            return _bool(_differ(a.node, b.node), a, b, "xor")
        return _integer_result(integers.bits_xor(a.sum, b.sum, integer_type(a.dtype)), a, b, "xor")

    def create_lshr(self, a: Symbolic, b: Symbolic) -> Symbolic:
        """A logical shift to the right, which fills with zeros."""
        type_ = integer_type(a.dtype)
        unsigned = IntegerType(type_.bits, False)
        shifted = integers.shift_right(wrap(a.sum, unsigned), b.sum, unsigned)
        return _integer_result(wrap(shifted, type_), a, b, "shr")

    def create_ashr(self, a: Symbolic, b: Symbolic) -> Symbolic:
        """An arithmetic shift to the right, which fills with the sign bit."""
        type_ = integer_type(a.dtype)
        signed = IntegerType(type_.bits, True)
        return _integer_result(
            wrap(integers.shift_right(wrap(a.sum, signed), b.sum, signed), type_), a, b, "shr"
        )

    def create_umulhi(self, a: Symbolic, b: Symbolic) -> Symbolic:
        """The upper half of the product of two unsigned integers."""
        type_ = integer_type(a.dtype)
        unsigned = IntegerType(type_.bits, False)
        product = multiply(wrap(a.sum, unsigned), wrap(b.sum, unsigned))
        upper = integers.floor_divide(product, 1 << type_.bits)
        return Symbolic(wrap(upper, type_), a.dtype, a.shape, Origin("umulhi", a.origin, b.origin))

    def create_iabs(self, a: Symbolic) -> Symbolic:
        """The absolute value of an integer."""
        absolute = wrap(integers.absolute(a.sum), integer_type(a.dtype))
        return Symbolic(absolute, a.dtype, a.shape, Origin("abs", a.origin))

    def create_fneg(self, a: Symbolic) -> Symbolic:
        """The negative of a float."""
        node = -a.node if isinstance(a.node, float) else None
        return Symbolic(node, a.dtype, a.shape, Origin("-", a.origin))

    def create_select(self, condition: Symbolic, a: Symbolic, b: Symbolic) -> Symbolic:
        """a where the condition holds, b elsewhere."""
        test = condition.condition
        if test is TRUE or test is FALSE:
            return a if test is TRUE else b
        if isinstance(a.node, Cond) or isinstance(b.node, Cond):
            node: Any = any_of((both(test, a.condition), both(opposite(test), b.condition)))
        elif isinstance(a.node, Sum) and isinstance(b.node, Sum):
            node = choose(test, a.node, b.node)
        else:
            node = a.node if a.node == b.node else None
        origin = a.origin if a.origin is b.origin else Origin("where", condition.origin, a.origin, b.origin)
        shape = max(a.shape, b.shape, key=len)
        return Symbolic(node, a.dtype.scalar, shape, origin)

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, args: list[Symbolic], type: Any, is_pure: bool
    ) -> Symbolic:
        """A function of a math library."""
        origin = Origin(symbol.removeprefix("__nv_"), *(arg.origin for arg in args))
        return self.open_value(type, args[0].shape if args else (), f"the result of {origin.op}", origin)

    def create_inline_asm(
        self, assembly: str, constraints: str, args: list[Symbolic], types: list[Any], *_: Any
    ) -> "_Results":
        """Inline assembly: its results are unknown."""
        origin = Origin("inline_asm", *(arg.origin for arg in args))
        shape = args[0].shape if args else ()
        return _Results([self.open_value(t, shape, "the result of inline assembly", origin) for t in types])

    # --- ops without a result ---

    def create_print(self, *_: Any) -> None:
        """Does nothing: printing has no effect on addresses."""

    create_assert = create_assume = create_barrier = create_print
    create_grid_dependency_wait = create_grid_dependency_launch_dependents = create_print

    def __getattr__(self, name: str) -> Any:
        """A constant (`get_int32`), or an unknown op, whose result is unknown."""
        if name.startswith("get_"):
            return self.constant_of_type(name)
        if not name.startswith("create_"):
            raise AttributeError(name)
        short = name.removeprefix("create_")
        if any(word in short for word in _MEMORY):
            raise Stopped(f"{short} is unknown, and may access memory")
        return lambda *args: self._not_known(short, *args)

    def _not_known(self, name: str, *args: Any) -> Symbolic:
        values = [arg for arg in args if isinstance(arg, Symbolic)]
        if not values:
            raise Stopped(f"{name} is unknown")
        shape = max((value.shape for value in values), key=math.prod)
        origin = Origin(name, *(value.origin for value in values))
        return self.open_value(values[0].dtype, shape, f"the result of {name}", origin)


class _Results:
    """The results of inline assembly."""

    def __init__(self, values: list[Symbolic]):
        self._values = values

    def get_result(self, position: int) -> Symbolic:
        """One result."""
        return self._values[position]


def _shape(a: Symbolic, b: Symbolic) -> tuple[int, ...]:
    return a.shape if len(a.shape) >= len(b.shape) else b.shape


def _integer_result(node: Sum, a: Symbolic, b: Symbolic, op: str) -> Symbolic:
    return Symbolic(node, a.dtype.scalar, _shape(a, b), Origin(op, a.origin, b.origin))


def _bool(node: Cond, a: Symbolic, b: Symbolic, op: str) -> Symbolic:
    return Symbolic(node, tl.int1, _shape(a, b), Origin(op, a.origin, b.origin))


def _differ(a: Cond, b: Cond) -> Cond:
    return any_of((both(a, opposite(b)), both(opposite(a), b)))


def _arithmetic(op: str, function: Callable[[Sum, Sum], Sum]) -> Callable[..., Symbolic]:
    """An op on two integers of the same type; the result wraps around."""

    def run(self: SymbolicBuilder, a: Symbolic, b: Symbolic) -> Symbolic:
        if isinstance(a.node, Cond) and isinstance(b.node, Cond) and op in ("add", "sub", "mul"):
            # Triton's int1 is a one-bit integer.
            node = both(a.node, b.node) if op == "mul" else _differ(a.node, b.node)
            return _bool(node, a, b, op)
        return _integer_result(wrap(function(a.sum, b.sum), integer_type(a.dtype)), a, b, op)

    return run


def _compared(op: str) -> Callable[..., Symbolic]:
    def run(self: SymbolicBuilder, a: Symbolic, b: Symbolic) -> Symbolic:
        if isinstance(a.node, float) and isinstance(b.node, float):
            return _bool(TRUE if _ON_FLOATS[op](a.node, b.node) else FALSE, a, b, op)
        if isinstance(a.node, float | None) or isinstance(b.node, float | None):
            args = (*indices(_shape(a, b)), *self.scope())
            return _bool(unknown_condition(Reason("a comparison of floats"), args), a, b, op)
        if isinstance(a.node, Cond) and isinstance(b.node, Cond) and op in ("eq", "ne"):
            differ = _differ(a.node, b.node)
            return _bool(differ if op == "ne" else opposite(differ), a, b, op)
        difference = subtract(a.sum, b.sum)
        return _bool(_ON_SUMS[op](difference), a, b, op)

    return run


_ON_SUMS: dict[str, Callable[[Sum], Cond]] = {
    "ge": not_negative,
    "gt": lambda a: not_negative(add(a, number(-1))),
    "le": lambda a: not_negative(scale(a, -1)),
    "lt": lambda a: not_negative(add(scale(a, -1), number(-1))),
    "eq": lambda a: equal(a, number(0)),
    "ne": lambda a: opposite(equal(a, number(0))),
}
"""Comparisons of a difference with zero."""

_ON_FLOATS: dict[str, Callable[[float, float], bool]] = {
    "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b,
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}

_ARITHMETIC: dict[str, tuple[str, Callable[[Sum, Sum], Sum]]] = {
    "add": ("add", add),
    "sub": ("sub", subtract),
    "mul": ("mul", multiply),
    "minsi": ("min", minimum),
    "minui": ("min", minimum),
    "maxsi": ("max", maximum),
    "maxui": ("max", maximum),
    **dict.fromkeys(("sdiv", "udiv", "idiv"), ("div", integers.divide)),
    **dict.fromkeys(("srem", "urem"), ("mod", integers.remainder)),
}


def _shl(self: SymbolicBuilder, a: Symbolic, b: Symbolic) -> Symbolic:
    return _integer_result(integers.shift_left(a.sum, b.sum, integer_type(a.dtype)), a, b, "shl")


SymbolicBuilder.create_shl = _shl  # type: ignore[attr-defined]
for _name, (_op, _function) in _ARITHMETIC.items():
    setattr(SymbolicBuilder, f"create_{_name}", _arithmetic(_op, _function))
for _op in _ON_SUMS:
    for _prefix in ("icmpS", "icmpU", "icmp", "fcmpO", "fcmpU"):
        setattr(SymbolicBuilder, f"create_{_prefix}{_op.upper()}", _compared(_op))
