"""Windows of a matrix at the zoom that the page requests: a number for each cell of the screen.

The elements of a tensor, or the programs of a grid, are arranged in rows of `columns` numbers. A window
starts at a row and a column and has `across` by `down` cells; a cell represents `bin_x` by `bin_y` numbers.
"""

import msgspec
import numpy as np

from triton_viz.visualizer.payloads import BinaryHeader, BinaryLayer

UNTOUCHED, BY_PROGRAM, MASKED, BY_OP = range(4)
"""Marks of a cell, in increasing order of importance."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a matrix, and its zoom."""

    count: int
    """The number of elements or programs; the last row may be incomplete."""
    columns: int
    top: int
    left: int
    across: int
    down: int
    bin_x: int
    bin_y: int

    def mark(self, marks: np.ndarray, positions: np.ndarray, value: int) -> None:
        """Set the marks of the cells of these positions, unless a cell has a more important one."""
        rows, cols = np.divmod(positions[positions < self.count], self.columns)
        down, across = (rows - self.top) // self.bin_y, (cols - self.left) // self.bin_x
        seen = (down >= 0) & (down < self.down) & (across >= 0) & (across < self.across)
        cells = down[seen] * self.across + across[seen]
        marks[cells] = np.maximum(marks[cells], value)

    def gather(self, numbers: np.ndarray, how: str) -> np.ndarray:
        """One number for each cell: the maximum or the mean of its numbers; NaN for none."""
        cols = self.columns
        bottom = min(-(-self.count // cols), self.top + self.down * self.bin_y)
        right = min(cols, self.left + self.across * self.bin_x)
        result = np.full((self.down, self.across), np.nan)
        if bottom <= self.top or right <= self.left:
            return result
        begin, end = self.top * cols, min(self.count, bottom * cols)
        # Counts stay integers, where -1 stands for none: converting millions takes too long.
        part, none = (numbers, -1) if numbers.dtype.kind == "i" else (numbers.astype(np.float64), np.nan)
        part = part[begin:end]
        part = np.pad(part, (0, (bottom - self.top) * cols - len(part)), constant_values=none)
        part = part.reshape(bottom - self.top, cols)[:, self.left : right]
        tall = np.arange(0, part.shape[0], self.bin_y)
        wide = np.arange(0, part.shape[1], self.bin_x)
        if how == "max":
            filled = part if part.dtype.kind == "i" else np.where(np.isnan(part), -np.inf, part)
            reduced = np.maximum.reduceat(np.maximum.reduceat(filled, tall, axis=0), wide, axis=1)
            reduced = np.where((reduced == none) | (reduced == -np.inf), np.nan, reduced)
        else:
            known = part != none if part.dtype.kind == "i" else ~np.isnan(part)
            with np.errstate(invalid="ignore", over="ignore"):  # sums of infinities and very large numbers
                rows = np.add.reduceat(np.where(known, part, 0.0), tall, axis=0)
                sums = np.add.reduceat(rows, wide, axis=1)
            counts = np.add.reduceat(np.add.reduceat(known.astype(int), tall, axis=0), wide, axis=1)
            reduced = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        result[: reduced.shape[0], : reduced.shape[1]] = reduced
        return result


def pack(window: Window, layers: dict[str, np.ndarray], limits: dict[str, tuple[float, float]]) -> bytes:
    """A binary answer: the header's length, the header as JSON, then each array, all padded to 8 bytes."""
    described, arrays = [], b""
    for name, array in layers.items():
        with np.errstate(over="ignore"):  # values beyond float32 become infinite
            kept = array.ravel().astype(np.uint8 if name == "marks" else np.float32)
        low, high = limits.get(name, (None, None))
        described.append(BinaryLayer(name=name, dtype=kept.dtype.name, low=low, high=high))
        arrays += _padded(kept.tobytes())
    header = msgspec.json.encode(BinaryHeader(across=window.across, down=window.down, layers=described))
    return len(header).to_bytes(8, "little") + _padded(header) + arrays


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def limits_of(numbers: np.ndarray) -> tuple[float, float] | None:
    """The smallest and the largest finite number, or None."""
    finite = numbers[np.isfinite(numbers)]
    return (float(finite.min()), float(finite.max())) if len(finite) else None
