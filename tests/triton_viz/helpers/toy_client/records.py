"""What the toy client leaves in a launch."""

from triton_viz.core.data import Record


class StoreCount(Record, frozen=True, tag=True, kw_only=True):
    """How many elements each line stored."""

    elements: int
