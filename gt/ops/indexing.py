"""Ops that pick elements, and ops that put them back."""

from gt.ops.row import Row

ROWS: list[Row] = []
