"""Tensor methods that are written out, in the groups of the op table; the others are made from its rows."""
