"""In-place forms of methods."""

from gt.tensors.base import TensorBase


class GeneratedInPlace(TensorBase):
    """`x.NAME_()` for every method that has an in-place form, and `x += y` and its like."""

    __slots__ = ()
