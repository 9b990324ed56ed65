"""The builder: the ops with which `nki.language` and `nki.isa` are implemented, and which clients receive.

Values have one lane: programs run one after the other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from triton_viz.dsls.nki.dtypes import cast
from triton_viz.dsls.nki.functions import FUNCTIONS, REDUCTIONS, identity_of
from triton_viz.dsls.nki.tensor import Tensor, as_value
from triton_viz.executor.value import Value


class Builder:
    """Executes ops. Its callers track undefined elements."""

    # --- engines ---

    def instruction(
        self,
        name: str,
        engine: str,
        number: int,
        reads: tuple[Tensor, ...],
        writes: tuple[Tensor, ...],
        seconds: float,
    ) -> None:
        """Begin an instruction of an engine. The following ops belong to it."""

    # --- HBM ---

    def load(self, source: Tensor, mask: np.ndarray | None) -> Value:
        """The elements of a part of a tensor in HBM."""
        values, _ = source.read(mask)
        return as_value(np.array(values), source.dtype)

    def store(self, target: Tensor, values: Value, mask: np.ndarray | None) -> None:
        """Write values to a part of a tensor in HBM."""
        target.write(values.data[0], None, mask)

    def atomic(self, target: Tensor, values: Value, mask: np.ndarray | None, operation: str) -> Value:
        """Combine values with a part of a tensor in HBM, in which elements may occur several times."""
        before, _ = target.read(mask)
        before = np.array(before)
        keep = target.checked(mask)
        added = np.broadcast_to(cast(values.data[0], target.dtype), target.shape)
        if target.picked is None:
            at: Any = ... if keep is None else np.broadcast_to(keep, target.shape)
            target.array[at] = (before + added)[at]
        else:
            keep = np.ones(target.shape, bool) if keep is None else keep
            positions = tuple(np.broadcast_to(c, target.shape)[keep] for c in target.picked.coordinates)
            np.add.at(target.array, positions, added[keep])
        return as_value(before, target.dtype)

    # --- between memories on the chip ---

    def transfer(self, values: Value, source: str, destination: str, tensor: str) -> Value:
        """Copy elements from one memory to another, or within a memory."""
        return values

    # --- arithmetic ---

    def dot(self, left: Value, right: Value) -> Value:
        """The product of two tiles, left as (M, K) and right as (K, N), in float32."""
        a, b = (side.data[0].astype(np.float32, copy=False) for side in (left, right))
        return as_value(a @ b)

    def reduce(self, inputs: tuple[Value, ...], axis: int, combine: str) -> tuple[Value, ...]:
        """A reduction along an axis."""
        data = inputs[0].data[0]
        if data.shape[axis] == 0:
            shape = data.shape[:axis] + data.shape[axis + 1 :]
            return (as_value(np.full(shape, identity_of(combine, data.dtype), data.dtype)),)
        result = np.asarray(REDUCTIONS[combine](data, axis=axis))
        if data.dtype.kind in "iu" and result.dtype != data.dtype:
            result = result.astype(data.dtype)
        return (as_value(result),)

    def scan(self, inputs: tuple[Value, ...], axis: int, combine: str, step: Callable[..., Any]) -> Value:
        """A running combination along the last axis: each step takes the previous result and its index."""
        data = inputs[0].data[0]
        result = np.empty(data.shape, np.float32)
        state: Any = None
        for position in range(data.shape[axis]):
            state = step(state, position)
            result[..., position] = state
        return as_value(result)


def _op(self: Builder, function: str, *operands: Value) -> Value:
    return as_value(np.asarray(FUNCTIONS[function].compute(*(operand.data[0] for operand in operands))))


COMPUTED = {
    name: row.operations for row in FUNCTIONS.values() for name in (row.client_name, row.integer_name) if name
}
"""The names of the elementwise methods, whose first argument is the function, and how many operations each is
on an element."""

for _name in COMPUTED:
    setattr(Builder, _name, _op)
