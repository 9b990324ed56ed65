"""The analysis results for each access in the source, for lookup while the kernel runs."""

import dataclasses
from collections.abc import Iterable

from triton_viz.clients.utils import Columns
from triton_viz.core.data import Site
from triton_viz.dsls.static_analysis import NEVER, AccessVerdict, Analysis

Spot = tuple[tuple[Site, ...], Columns, str]
"""One access in the source: the call path, the columns of its calls, and load, store or atomic."""


@dataclasses.dataclass(frozen=True)
class Known:
    """The analysis results for a spot."""

    tensors: tuple[str, ...] = ()
    """The tensors whose pointers it may use; empty if unknown."""
    proved: bool = False
    """Whether it is proved to be in bounds for any data."""
    masked: bool | None = None
    """Whether it has a mask; None if unknown."""
    verdicts: tuple[AccessVerdict, ...] = ()

    @property
    def expression(self) -> str:
        """The expression of the address."""
        return self.verdicts[0].expression if self.verdicts else ""

    @property
    def described(self) -> bool:
        """Whether it goes through a tensor descriptor or a block pointer."""
        return any(verdict.through_descriptor for verdict in self.verdicts)

    @property
    def may_wrap(self) -> bool:
        """Whether an integer in the address may wrap around, depending on data."""
        return any(verdict.may_wrap for verdict in self.verdicts)

    @property
    def overflow(self) -> AccessVerdict | None:
        """A witness for an integer in the address that wraps around."""
        return next((verdict for verdict in self.verdicts if verdict.overflow), None)


def known_spots(analysis: Analysis, tensors: Iterable[str]) -> dict[Spot, Known]:
    """The analysis results of each spot.

    If the analysis stopped early, the tensors of a spot may be incomplete, and are left out.
    """
    by_spot: dict[Spot, list[AccessVerdict]] = {}
    for access in analysis.accesses:
        if access.kind != "descriptor" and access.call_path:
            by_spot.setdefault((access.call_path, access.columns, access.kind), []).append(access)
    names = set(tensors)
    found = {}
    for spot, verdicts in by_spot.items():
        named = [tuple(v.tensor.split(", ")) for v in verdicts if v.reason != NEVER]
        clear = analysis.complete and all(name in names for one in named for name in one)
        found[spot] = Known(
            tensors=tuple(dict.fromkeys(name for one in named for name in one)) if clear else (),
            proved=analysis.complete and all(_is_proved(verdict) for verdict in verdicts),
            masked=any(verdict.masked for verdict in verdicts),
            verdicts=tuple(verdicts),
        )
    return found


def _is_proved(access: AccessVerdict) -> bool:
    return access.verdict == "ok" and not (access.outside_view or access.misaligned)
