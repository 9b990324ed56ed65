"""The sanitizer's verdict for each access of a launch."""

from triton_viz.core.data import Record


class Verdict(Record, frozen=True, tag=True, kw_only=True):
    """An access at one place in the source, of all programs that came there: whether it stays inside."""

    access: str
    """load, store or atomic."""
    tensor: str
    """The tensor whose pointer it is; empty if unknown, several names if it may be several."""
    verdict: str
    """ok: it is right. violation: an `Issue` shows an element. undecided: unknown."""
    proof: str
    """proved: for whatever data there are. checked: on the data of this launch. Else why it is undecided."""
    expression: str = ""
    """How the address came about, in the user's names."""
