"""All rows, by name."""

import dataclasses

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
from gt.ops.sharding import rule_of

GROUPS = (
    *(elementwise, logic, activations, reductions, shaping, indexing, products),
    *(convolution, normalization, losses, training, creation),
)

TABLE: dict[str, Row] = {
    row.name: dataclasses.replace(row, sharding=rule_of(row)) for group in GROUPS for row in group.ROWS
}
