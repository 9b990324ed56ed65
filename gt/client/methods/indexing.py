"""Methods that pick elements, and that put them back."""

from gt.client.base import TensorBase


class IndexMethods(TensorBase):
    """Indexing, gathering, sorting."""

    __slots__ = ()
