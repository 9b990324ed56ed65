"""A tensor's layout as a small drawing, for a terminal or a notebook."""

import html
from typing import NamedTuple

from gt.stream.layouts import Partial, Placement, Sharded
from gt.transport.protocol import Layouts

COLORS = ("#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc", "#d9d2e9", "#fce5cd", "#d0e0e3", "#ead1dc")
MAX_DRAWN_WORKERS = 16
"""How many workers are drawn; the others are counted."""


class _Cell(NamedTuple):
    worker: str
    text: str


class LayoutView:
    """A drawing of a tensor's layout. `str` is for a terminal; a notebook shows it as a table."""

    def __init__(self, shape: tuple[int, ...], dtype: str, layouts: Layouts) -> None:
        self.shape = shape
        self.dtype = dtype
        self.error = layouts.error
        self.placements = layouts.placements
        """Its own placement, then those of its copies."""

    def _title(self) -> str:
        what = f"{self.dtype}{list(self.shape)}"
        if not self.placements:
            return f"{what}: {self.error or 'nowhere yet: there is no worker'}"
        return f"{what} {_as_text(self.placements[0])}"

    def _cells(self) -> tuple[list[_Cell], bool]:
        """The part that each worker has, and whether to draw them side by side."""
        place = self.placements[0]
        layout = place.layout
        beside = isinstance(layout, Sharded) and layout.axis == len(self.shape) - 1 and layout.axis > 0
        cells = []
        for index, worker in list(enumerate(place.workers))[:MAX_DRAWN_WORKERS]:
            box = place.box(index, self.shape)
            parts = [
                ":" if (a, b) == (0, n) else f"{a}:{b}"
                for a, b, n in zip(box.start, box.stop, self.shape, strict=True)
            ]
            text = f"[{', '.join(parts)}]"
            cells.append(_Cell(worker, f"a term of {text}" if isinstance(layout, Partial) else text))
        if len(place.workers) > MAX_DRAWN_WORKERS:
            cells.append(_Cell("...", f"{len(place.workers) - MAX_DRAWN_WORKERS} more"))
        return cells, beside

    def __str__(self) -> str:
        lines = [self._title()]
        if self.placements:
            cells, beside = self._cells()
            widths = [max(len(cell.worker), len(cell.text)) + 2 for cell in cells]
            if not beside:
                widths = [max(widths)] * len(cells)
            drawn = [
                [cell.worker.center(width), cell.text.center(width)]
                for cell, width in zip(cells, widths, strict=True)
            ]
            lines += _beside(drawn, widths) if beside else _below(drawn, widths[0])
        lines += [f"also {_as_text(placement)}" for placement in self.placements[1:]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self._title()}>"

    def _repr_html_(self) -> str:
        title = f"<div>{html.escape(self._title())}</div>"
        if not self.placements:
            return title
        cells, beside = self._cells()
        drawn = [
            f'<td style="background:{COLORS[index % len(COLORS)]};color:#000;border:1px solid #888;'
            f'padding:6px 12px;text-align:center"><b>{html.escape(cell.worker)}</b><br>'
            f"{html.escape(cell.text)}</td>"
            for index, cell in enumerate(cells)
        ]
        rows = [f"<tr>{''.join(drawn)}</tr>"] if beside else [f"<tr>{cell}</tr>" for cell in drawn]
        others = "".join(
            f"<div>also {html.escape(_as_text(placement))}</div>" for placement in self.placements[1:]
        )
        return f'{title}<table style="border-collapse:collapse">{"".join(rows)}</table>{others}'


def _as_text(placement: Placement) -> str:
    layout, count = placement.layout, len(placement.workers)
    if isinstance(layout, Sharded):
        return f"split along axis {layout.axis} over {count} workers"
    if isinstance(layout, Partial):
        return f"as {count} terms, of which it is the {layout.op}"
    return f"on {placement.workers[0]}" if count == 1 else f"whole on each of {count} workers"


def _below(drawn: list[list[str]], width: int) -> list[str]:
    lines = ["┌" + "─" * width + "┐"]
    for number, cell in enumerate(drawn):
        lines += ["├" + "─" * width + "┤"] if number else []
        lines += [f"│{line}│" for line in cell]
    return [*lines, "└" + "─" * width + "┘"]


def _beside(drawn: list[list[str]], widths: list[int]) -> list[str]:
    bars = ["─" * width for width in widths]
    rows = ["│" + "│".join(cell[row] for cell in drawn) + "│" for row in range(2)]
    return ["┌" + "┬".join(bars) + "┐", *rows, "└" + "┴".join(bars) + "┘"]
