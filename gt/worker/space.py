"""What a worker holds for one client."""

from typing import Any

from gt.worker.condenser import Condenser


class Space:
    """One client's part of a worker: nobody else's instructions can name what is in here.

    A tensor is either a value or, if it could not be computed, a failure with its cause. Because a failed
    tensor is simply not among the values, an op that reads it fails by itself, and looking out for that
    costs an op that succeeds nothing.
    """

    __slots__ = ("condenser", "failures", "sites", "values")

    def __init__(self, condenser: Condenser | None = None) -> None:
        self.condenser = condenser
        """Looks for what the client repeats, if that is wanted."""
        self.values: dict[int, Any] = {}
        self.failures: dict[int, str] = {}
        self.sites: dict[int, str] = {}
