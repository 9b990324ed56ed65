"""All rows, by name."""

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

GROUPS = (
    *(elementwise, logic, activations, reductions, shaping, indexing, products),
    *(convolution, normalization, losses, training, creation),
)

TABLE: dict[str, Row] = {row.name: row for group in GROUPS for row in group.ROWS}
