"""The op table: all rows, by name."""

import dataclasses
from collections.abc import Callable

from gt.ops import (
    activations,
    convolution,
    creation,
    elementwise,
    indexing,
    logic,
    losses,
    normalization,
    products,
    reductions,
    shaping,
    training,
)
from gt.ops.row import Row
from gt.ops.run_time import RUN_TIME
from gt.ops.sharding.kinds import rule_of

GROUPS = (
    *(elementwise, logic, activations, reductions, shaping, indexing, products),
    *(convolution, normalization, losses, training, creation),
)

TABLE: dict[str, Row] = {}
_listeners: list[Callable[[Row], None]] = []


def register(row: Row) -> Row:
    """Add an op to the table, and with it its methods, functions and in-place forms.

    A process has the ops that were registered in it: workers of other processes have to import the module
    that registers a new one. Raises ValueError if an op of that name, or one of its methods, exists.
    """
    if row.name in TABLE:
        raise ValueError(f"the op table has a row {row.name!r} already")
    if row.compiled_numbers is None:
        row = dataclasses.replace(row, compiled_numbers=("scalar",) if row.kind == "BinaryOp" else ())
    if row.sharding is None:
        row = dataclasses.replace(row, sharding=rule_of(row))
    for listener in _listeners:
        listener(row)
    TABLE[row.name] = row
    RUN_TIME.update(row.run_time)
    return row


def for_each_row(listener: Callable[[Row], None]) -> None:
    """Call a function with every row, and with each one that is registered later."""
    _listeners.append(listener)
    for row in list(TABLE.values()):
        listener(row)


for _group in GROUPS:
    for _row in _group.ROWS:
        register(_row)
