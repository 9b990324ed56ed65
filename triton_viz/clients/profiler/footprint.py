"""Footprints: the elements of a tensor that any program accessed, as one byte each."""

import math

import numpy as np

from triton_viz.clients.profiler.blocks import Batch
from triton_viz.core.records.tensor_info import TensorInfo

_MOST_CLASSES = 64
"""With more different masks than this, elements are marked one by one."""
_BATCH = 1 << 20


class Footprint:
    """The accessed elements of one tensor: a byte for each element of the storage."""

    def __init__(self, tensor: TensorInfo):
        start, end = tensor.storage
        self._shift = (tensor.address - start) // tensor.itemsize
        self._seen = np.zeros(max(1, -(-(end - start) // tensor.itemsize)), bool)

    @staticmethod
    def bytes_for(tensor: TensorInfo) -> int:
        """The size of a footprint in bytes."""
        return (tensor.storage[1] - tensor.storage[0]) // tensor.itemsize

    def count(self) -> int:
        """The number of accessed elements."""
        return int(np.count_nonzero(self._seen))

    def union(self, other: "Footprint") -> "Footprint":
        """The union of both footprints."""
        result = object.__new__(Footprint)
        result._shift, result._seen = self._shift, self._seen | other._seen
        return result

    def add(self, batch: Batch) -> None:
        """Mark the elements that a batch accesses."""
        if batch.listed:
            self._mark_listed(batch)
            return
        active = batch.active
        first = batch.first[active] + self._shift
        if first.size == 0:
            return
        bounded = [(axis, pair) for axis, pair in enumerate(batch.bounds) if pair is not None]
        if not bounded:
            self._mark(first, batch.shape, batch.steps)
            return
        code = np.zeros(first.size, np.int64)
        for axis, pair in bounded:
            radix = batch.shape[axis] + 1
            code = (code * radix + pair[0][active]) * radix + np.maximum(pair[1][active], 0)
        classes = code[:1] if (code == code[0]).all() else np.unique(code)
        if len(classes) > _MOST_CLASSES:
            self._mark_listed(batch)
            return
        for one in classes.tolist():
            shape, shift, rest = list(batch.shape), 0, one
            for axis, _ in reversed(bounded):
                rest, end = divmod(rest, batch.shape[axis] + 1)
                rest, start = divmod(rest, batch.shape[axis] + 1)
                shape[axis] = max(0, end - start)
                shift += start * batch.steps[axis]
            if math.prod(shape):
                self._mark(first[code == one] + shift, tuple(shape), batch.steps)

    def _mark(self, first: np.ndarray, shape: tuple[int, ...], steps: tuple[int, ...]) -> None:
        """Mark blocks that begin at these elements."""
        axes = [(n, s) for n, s in zip(shape, steps, strict=True) if s and n > 1]
        sizes, strides = tuple(n for n, _ in axes), tuple(s for _, s in axes)
        distance = np.diff(first)
        if first.size > 1 and (distance == distance[0]).all():
            step = int(distance[0])
            if step == 0:
                first = first[:1]
            self._window(int(first[0]), (first.size, *sizes), (step, *strides))[...] = True
            return
        first = np.unique(first)
        begin = int(first[0])
        self._window(begin, (int(first[-1]) - begin + 1, *sizes), (1, *strides))[first - begin] = True

    def _window(self, first: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
        return np.ndarray(shape, bool, buffer=self._seen.data, offset=first, strides=strides)

    def _mark_listed(self, batch: Batch) -> None:
        rows, lanes = np.nonzero(batch.active)
        some = max(1, _BATCH // max(batch.size, 1))
        for begin in range(0, len(rows), some):
            offsets, kept = batch.elements(rows[begin : begin + some], lanes[begin : begin + some])
            self._seen[offsets[kept] + self._shift] = True
