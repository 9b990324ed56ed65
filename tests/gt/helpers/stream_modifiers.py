"""Stream modifiers for tests, where other processes can import them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gt.stream.instructions import Op, Upload
from gt.stream.modifiers import fresh_id


class DoublesProducts:
    """Makes a @ b into (2 * a) @ b: one more tensor, made and freed, for each product."""

    def __init__(self) -> None:
        self.products = 0

    def process(self, cmd: Any) -> Iterator[Any]:
        if not (isinstance(cmd, Op) and cmd.op == "matmul"):
            yield cmd
            return
        self.products += 1
        a, b = cmd.inputs
        doubled = fresh_id()
        yield Op(doubled, "add", (a, a), None, cmd.site)
        yield Op(cmd.result, "matmul", (doubled, b), None, cmd.site)
        yield doubled

    def get_stats(self) -> dict[str, Any]:
        return {"products": self.products}


class PassesOn:
    """Changes nothing."""

    def process(self, cmd: Any) -> Iterator[Any]:
        yield cmd

    def get_stats(self) -> Any:
        return {}


class NumpyStats(PassesOn):
    """Counts with NumPy's numbers."""

    def get_stats(self) -> Any:
        return {"count": np.int64(3), "mean": np.float32(0.5), "each": np.arange(3), 7: [np.bool_(True)]}


class RaisingStats(PassesOn):
    """Fails when it is asked."""

    def get_stats(self) -> Any:
        raise LookupError("nothing counted yet")


class ObjectStats(PassesOn):
    """Gives something that cannot travel."""

    def get_stats(self) -> Any:
        return {"lock": object()}


class ListStats(PassesOn):
    """Gives no dictionary."""

    def get_stats(self) -> Any:
        return [1, 2]


class CyclicStats(PassesOn):
    """Gives a dictionary that contains itself."""

    def get_stats(self) -> Any:
        found: dict[str, Any] = {}
        found["self"] = found
        return found


class HugeStats(PassesOn):
    """Gives more than a message may have."""

    def get_stats(self) -> Any:
        return {"text": "x" * (1 << 27)}


class SurrogateStats(PassesOn):
    """Gives a text that is not Unicode."""

    def get_stats(self) -> Any:
        return {"text": "\ud800"}


BAD_STATS = {
    "NumpyStats": {"count": 3, "mean": 0.5, "each": [0, 1, 2], 7: [True]},
    "RaisingStats": "LookupError: nothing counted yet",
    "ObjectStats": "is a object; statistics are numbers",
    "ListStats": "expected a dictionary, but got [1, 2]",
    "CyclicStats": "RecursionError",
    "HugeStats": "the limit is",
    "SurrogateStats": "UnicodeEncodeError",
}
"""By modifier: its statistics, or what the error says that stands in their place."""


class UploadsInPlaceOfCopies(PassesOn):
    """Makes ops into arrays, which cannot be sent from a server to a worker as they are."""

    def process(self, cmd: Any) -> Iterator[Any]:
        yield Upload(cmd.result, np.ones(2)) if isinstance(cmd, Op) else cmd
