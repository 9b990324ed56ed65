"""The sanitizer's verdict for each access of a launch."""

from triton_viz.core.data import Record


class Verdict(Record, frozen=True, tag=True, kw_only=True):
    """The sanitizer's verdict on the access at one line of source, for all programs that executed it."""

    access: str
    """load, store or atomic."""
    tensor: str
    """The names of the tensors whose pointers it may use; empty if unknown."""
    verdict: str
    """ok: in bounds. violation: an `Issue` shows an element. undecided: not decided."""
    proof: str
    """proved: for any data. checked: for the data of this launch. Otherwise why it is undecided."""
    expression: str = ""
    """The expression of the address, in the names of the source."""
