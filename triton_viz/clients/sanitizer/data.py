"""What the sanitizer says of each access of a launch."""

from triton_viz.core.data import Op


class Verdict(Op, frozen=True, tag=True, kw_only=True):
    """An access at one place in the source, of all programs that came there: whether it stays inside."""

    access: str
    """load, store or atomic."""
    tensor: str
    """Whose pointer it is; empty if that is not clear, several if it may be several."""
    verdict: str
    """ok: it is right. violation: an `Issue` shows an element. undecided: nobody knows."""
    proof: str
    """proved: for whatever data there are. checked: on the data of this launch. Else why nobody knows."""
    expression: str = ""
    """How the address came about, in the user's names."""
