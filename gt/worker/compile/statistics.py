"""Counts of repeats, for a worker's statistics."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.repeats import Repeat


class HotStatistics:
    """Counts of repeats that clients sent, and of the detectors of clients that have left."""

    def __init__(self) -> None:
        self._hot = 0
        self._repetitions: Counter[str] = Counter()
        self._patterns: set[int] = set()

    def count(self, instructions: Iterable[Any]) -> None:
        """Count the repeats among these instructions, which the client detected."""
        for one in instructions:
            if type(one) is Repeat:
                self._hot += one.size
                self._repetitions[one.sequence.id] += 1

    def keep(self, detector: HotPathDetector) -> None:
        """Add the counts of a detector, whose client leaves."""
        self._hot += detector.hot_instructions
        self._repetitions.update(detector.repetitions)
        self._patterns |= detector.patterns()

    def get_stats(self, detectors: Iterable[HotPathDetector]) -> dict[str, Any]:
        """The counts, including those of the detectors of connected clients."""
        total = HotStatistics()
        total._hot, total._patterns = self._hot, set(self._patterns)
        total._repetitions = self._repetitions.copy()
        for detector in detectors:
            total.keep(detector)
        return {
            "hot_instructions": total._hot,
            "unique_sequences": len(total._patterns) + len(total._repetitions),
            "hot_sequences": len(total._repetitions),
            "repetitions": dict(total._repetitions),
        }
