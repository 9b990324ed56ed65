"""The methods that the op table defines."""

from gt.tensors.base import TensorBase


class GeneratedMethods(TensorBase):
    """Operators, methods and aliases."""

    __slots__ = ()
