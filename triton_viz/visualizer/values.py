"""The values of tensors over time, from recorded reads and writes."""

import math
import re

import numpy as np

from triton_viz.core.data import Access, Atomic, Launch, Load, Store
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.visualizer.payloads import Histogram
from triton_viz.visualizer.record_columns import listed
from triton_viz.visualizer.tooltip import json_number


def has_values(launch: Launch) -> bool:
    """Whether the values of accesses were recorded."""
    return any(isinstance(record, Access) and record.values is not None for record in launch.records)


def tensor_values(launch: Launch, tensor: TensorInfo, upto: int) -> tuple[np.ndarray, np.ndarray]:
    """The value of each element of a tensor after a record of all programs, and whether it is known.

    An element that was read before its first write had that value from the start. Integer tensors keep their
    dtype, others are float64.
    """
    count = math.prod(tensor.shape)
    values = np.zeros(count, _type_of(launch, tensor))
    known, written = np.zeros(count, bool), np.zeros(count, bool)
    stores: list[tuple[np.ndarray, np.ndarray | None]] = []
    for number, record in enumerate(launch.records):
        if not isinstance(record, Access) or tensor.name not in record.elements.tensors:
            continue
        for positions, kept in listed(record, tensor):
            if isinstance(record, Load) and kept is not None:
                fresh = ~(known[positions] | written[positions])
                values[positions[fresh]] = kept[fresh]
                known[positions[fresh]] = True
            elif isinstance(record, Store | Atomic):
                written[positions] = True
                if number <= upto:
                    stores.append((positions, kept if isinstance(record, Store) else None))
    for positions, kept in stores:
        known[positions] = kept is not None  # the result of an atomic is not recorded
        if kept is not None:
            values[positions] = kept
    return values, known


def _type_of(launch: Launch, tensor: TensorInfo) -> np.dtype:
    """The dtype for the recorded values of a tensor: float64 cannot represent all 64-bit integers."""
    kept = {
        record.values.dtype
        for record in launch.records
        if isinstance(record, Access) and record.values is not None and tensor.name in record.elements.tensors
    }
    if not any(dtype.kind in "iu" for dtype in kept) or any(dtype.kind not in "biu" for dtype in kept):
        return np.dtype(np.float64)
    if re.fullmatch(r"u?int(8|16|32|64)", tensor.dtype):
        return np.dtype(tensor.dtype)
    common = np.result_type(*kept)
    return common if common.kind in "iu" else np.dtype(np.float64)


def histogram(name: str, values: np.ndarray, bins: int) -> Histogram:
    """The distribution of values. The limits of integers are exact, even if those of bins are not."""
    whole = values.dtype.kind in "iu" and values.size > 0
    exact = (values.min(), values.max()) if whole else None
    numbers = np.asarray(values, np.float64).ravel()
    nan, infinite = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return Histogram(
            name=name, counts=[], edges=[], elements=0, nan=nan, infinite=infinite,
            lowest=None, highest=None, mean=None,
        )  # fmt: skip
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        bins = 1
    with np.errstate(over="ignore"):
        wide = not np.isfinite(high - low)
    # The distance between very large doubles may overflow: divide them by two.
    counts, edges = np.histogram(numbers / 2 if wide else numbers, bins)
    edges = edges * 2 if wide else edges
    return Histogram(
        name=name,
        counts=counts.tolist(),
        edges=np.clip(edges, -np.finfo(float).max, np.finfo(float).max).tolist(),
        elements=len(numbers),
        nan=nan,
        infinite=infinite,
        lowest=low if exact is None else json_number(exact[0]),
        highest=high if exact is None else json_number(exact[1]),
        mean=float(np.mean(numbers / 2) * 2 if wide else np.mean(numbers)),
    )
