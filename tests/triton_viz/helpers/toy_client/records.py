"""The records of the toy client."""

from triton_viz.core.data import Record


class StoreCount(Record, frozen=True, tag=True, kw_only=True):
    """The number of elements that a store wrote."""

    elements: int
