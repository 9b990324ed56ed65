"""Lowerings: with sharded inputs, an op that cannot be computed on shards becomes several ops that can.

A softmax along a sharded axis needs the maximum and the sum over that axis: an amax, a sum, and elementwise
ops. Without a lowering, its input would be gathered. A row of the op table names its lowering.
"""

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import TABLE, Row
from gt.ops.dtypes import HALF
from gt.ops.table import for_each_row
from gt.stream.instructions import Op
from gt.stream.layouts import Sharded
from gt.stream.tensor_ids import dispatcher_id

WIDE = ("float32", "float64")
"""The dtypes that `Row.lowering` is for: in half precision, rounding after every op would be visible."""


class Program:
    """The instructions that replace one instruction."""

    def __init__(self, cmd: Op) -> None:
        self.cmd = cmd
        self.ops: list[Any] = []
        self.temporary: list[int] = []

    def add(self, op: str, *inputs: int, **attrs: Any) -> int:
        """Add an instruction, and return the number of its result."""
        number = dispatcher_id()
        self.temporary.append(number)
        self.ops.append(Op(number, op, inputs, attrs or None, self.cmd.site))
        return number

    def finish(self, op: str, *inputs: int, **attrs: Any) -> list[Any]:
        """All instructions: the last one makes the original's result, then temporary tensors are freed."""
        last = Op(self.cmd.result, op, inputs, attrs or None, self.cmd.site)
        return [*self.ops, last, *self.temporary]

    def keep(self, handle: TensorHandle, what: str, number: int) -> int:
        """Keep a result as long as the tensor that it was derived from, instead of freeing it at the end."""
        handle.derived[what] = number
        self.temporary.remove(number)
        return number

    def number(self, op: str, x: int, number: float) -> int:
        """An op with a tensor and a number."""
        return self.add(op, x, scalar=number, reflected=False)


def lower(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """The instructions that replace an op whose inputs are in parts; None if the op itself is computed."""
    row, dtype = TABLE.get(cmd.op), inputs[0].spec.dtype
    if row is None:
        return None
    name = row.lowering if dtype in WIDE else row.half_lowering if dtype in HALF else ""
    return _named(name)(cmd, inputs) if name else None


@functools.cache
def _named(name: str) -> Callable[[Op, list[TensorHandle]], list[Any] | None]:
    """The lowering that a row names: a function of this module, or "package.module:function"."""
    module, _, function = name.rpartition(":")
    return getattr(importlib.import_module(module or __name__), function)


def _split(handle: TensorHandle) -> int | None:
    """The axis along which a tensor is split, no part of it empty."""
    layout = handle.placement.layout
    return layout.axis if isinstance(layout, Sharded) and 0 not in layout.sizes else None


def _is_split_along(x: TensorHandle, dim: Any) -> bool:
    axis = _split(x)
    if axis is None:
        return False
    rank = len(x.spec.shape)
    return dim is None or axis in [d % rank for d in ((dim,) if isinstance(dim, int) else dim)]


def _count(x: TensorHandle, dim: Any) -> int:
    shape = x.spec.shape
    return math.prod(shape) if dim is None else math.prod(shape[d] for d in dim)


def softmax(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """softmax and log_softmax: an amax, a sum, and elementwise ops."""
    attrs = cmd.attrs or {}
    dim: Any = attrs["dim"]
    if not _is_split_along(inputs[0], dim):
        return None
    program, (x,) = Program(cmd), cmd.inputs
    largest = program.add("amax", x, dim=[dim], keepdim=True)
    shifted = program.add("sub", x, largest)
    exponentials = program.add("exp", shifted)
    total = program.add("sum", exponentials, dim=[dim], keepdim=True)
    if cmd.op == "softmax":
        return program.finish("truediv", exponentials, total)
    return program.finish("sub", shifted, program.add("log", total))


def logsumexp(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """logsumexp: an amax and a sum of exponentials."""
    attrs: Any = cmd.attrs or {}
    dim, keepdim = attrs["dim"], attrs["keepdim"]
    if not _is_split_along(inputs[0], dim):
        return None
    program, (x,) = Program(cmd), cmd.inputs
    largest = program.add("amax", x, dim=dim, keepdim=True)
    # Where the largest is infinite, the difference to it would not be a number.
    finite = program.add("masked_fill", largest, program.add("isinf", largest), value=0)
    exponentials = program.add("exp", program.add("sub", x, finite))
    logs = program.add("log", program.add("sum", exponentials, dim=dim, keepdim=True))
    total = program.add("add", logs, finite)
    rank = len(inputs[0].spec.shape)
    reduced = (
        set(range(rank))
        if dim is None
        else {d % rank for d in (dim if isinstance(dim, list | tuple) else [])}
    )
    shape = [1 if axis in reduced else n for axis, n in enumerate(inputs[0].spec.shape)]
    if not keepdim:
        shape = [n for axis, n in enumerate(shape) if axis not in reduced]
    return program.finish("reshape", total, shape=shape)


def variance(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """var and std: a mean, and a sum of squares."""
    attrs: Any = cmd.attrs or {}
    dim, freedom = attrs["dim"], _count(inputs[0], attrs["dim"]) - attrs["correction"]
    if not _is_split_along(inputs[0], dim) or freedom <= 0:
        return None
    program, (x,) = Program(cmd), cmd.inputs
    centered = program.add("sub", x, program.add("mean", x, dim=dim, keepdim=True))
    total = program.add("sum", program.add("square", centered), dim=dim, keepdim=attrs["keepdim"])
    if cmd.op == "var":
        return program.finish("truediv", total, scalar=float(freedom), reflected=False)
    return program.finish("sqrt", program.number("truediv", total, float(freedom)))


def norm(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """norm of order 1, 2 or infinity: a sum or an amax."""
    attrs: Any = cmd.attrs or {}
    dim, keepdim, p = attrs["dim"], attrs["keepdim"], attrs["p"]
    if not _is_split_along(inputs[0], dim) or p not in (1, 2, math.inf):
        return None
    program, (x,) = Program(cmd), cmd.inputs
    if p == 2:
        return program.finish("sqrt", program.add("sum", program.add("square", x), dim=dim, keepdim=keepdim))
    size = program.add("abs", x)
    return program.finish("sum" if p == 1 else "amax", size, dim=dim, keepdim=keepdim)


def total_norm(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """total_norm of order 2: one sum of squares per tensor."""
    attrs: Any = cmd.attrs or {}
    alike = all(handle.spec.dtype == inputs[0].spec.dtype for handle in inputs)
    if attrs["order"] != 2 or not alike or all(handle.placement.whole for handle in inputs):
        return None
    program, total = Program(cmd), None
    # Sharded inputs last: their terms are added up first, and reduced once.
    order = sorted(range(len(inputs)), key=lambda i: _split(inputs[i]) is not None)
    sums: dict[bool, int] = {}
    for i in order:
        one = program.add("sum", program.add("square", cmd.inputs[i]), dim=None, keepdim=False)
        split = _split(inputs[i]) is not None
        sums[split] = program.add("add", sums[split], one) if split in sums else one
    total = program.add("add", *sums.values()) if len(sums) == 2 else next(iter(sums.values()))
    return program.finish("sqrt", total)


def class_loss(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """A mean over rows: the sum, divided by the number of rows that are not ignored, which depends on the
    targets."""
    attrs: Any = cmd.attrs or {}
    x, target = inputs[:2]
    if attrs["reduction"] != "mean" or len(inputs) != 2 or not _by_rows(x, target):
        return None
    program = Program(cmd)
    total = program.add(cmd.op, *cmd.inputs, **{**attrs, "reduction": "sum"})
    return program.finish("truediv", total, _kept(program, cmd.inputs[1], target, attrs))


def class_loss_gradient(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """The gradient of such a mean: that of the sum, divided by the number of rows that are not ignored."""
    attrs: Any = cmd.attrs or {}
    if attrs["reduction"] != "mean" or len(inputs) != 3 or not _by_rows(*inputs[1:3]):
        return None
    program, (g, x, target) = Program(cmd), cmd.inputs
    # If all rows are ignored, the gradient is 0, not 0 / 0.
    count = program.add("clamp", _kept(program, target, inputs[2], attrs), min=1, max=None)
    share = program.add("truediv", g, count)
    return program.finish(cmd.op, share, x, target, **{**attrs, "reduction": "sum"})


def _by_rows(x: TensorHandle, target: TensorHandle) -> bool:
    return bool(target.spec.shape) and (_split(x) not in (None, 1) or _split(target) is not None)


def _kept(program: Program, target: int, handle: TensorHandle, attrs: Any) -> int:
    """The number of rows that are not ignored. It is computed once for the loss and its gradient."""
    what = f"rows that are not {attrs['ignore_index']}"
    if what in handle.derived:
        return handle.derived[what]
    kept = program.number("ne", target, attrs["ignore_index"])
    return program.keep(handle, what, program.add("sum", kept, dim=None, keepdim=False))


def wide_sum(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """Parts of a sum are added up before they are rounded, as one worker would."""
    attrs: Any = cmd.attrs or {}
    if not _is_split_along(inputs[0], attrs["dim"]):
        return None
    program = Program(cmd)
    total = program.add(cmd.op, program.add("cast", *cmd.inputs, dtype="float32"), **attrs)
    return program.finish("cast", total, dtype=inputs[0].spec.dtype)


LOWERINGS: set[str] = set()
"""The ops that have a lowering."""
NARROW: set[str] = set()
"""The ops that have one in half precision."""


def _list(row: Row) -> None:
    if row.lowering:
        LOWERINGS.add(row.name)
    if row.half_lowering:
        NARROW.add(row.name)


for_each_row(_list)
