"""The sanitizer's verdict for each access of a launch."""

from triton_viz.core.data import Record


class Verdict(Record, frozen=True, tag=True, kw_only=True):
    """Whether the access at one line of source is in bounds, for all programs that executed it."""

    access: str
    """load, store or atomic."""
    tensor: str
    """The tensor whose pointer it is; empty if unknown, several names if it may be several."""
    verdict: str
    """ok: it is in bounds. violation: an `Issue` shows an element. undecided: unknown."""
    proof: str
    """proved: for any data. checked: on the data of this launch. Else the reason why it is undecided."""
    expression: str = ""
    """The expression of the address, in the user's names."""
