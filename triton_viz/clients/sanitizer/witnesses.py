"""Violations that the analysis has proved, before the kernel runs."""

from collections.abc import Iterator

from triton_viz.clients.sanitizer.sites import Known
from triton_viz.dsls.static_analysis import AccessVerdict, Witness


def proved_violations(known: Known) -> Iterator[tuple[str, AccessVerdict, Witness]]:
    """The kind, verdict and witness of each proved violation."""
    for verdict in known.verdicts:
        for kind, witness in (
            ("out of bounds", verdict.witness or verdict.outside_view),
            ("misaligned", verdict.misaligned),
        ):
            if witness is not None:
                yield kind, verdict, witness
