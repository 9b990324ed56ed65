"""The state of one client on a worker: its values, failures, sites and modifiers."""

from typing import Any

from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instructions import Site
from gt.stream.modifiers import ClientModifiers
from gt.stream.repeat_builder import RepeatBuilder


class ClientState:
    """One client's tensors on a worker. Other clients' instructions cannot refer to them.

    A tensor is either a value or, if it could not be computed, a failure with its cause. A failed tensor is
    not among the values, so an op that reads it raises a KeyError: ops that succeed need no check for
    failures.
    """

    __slots__ = ("client_marks", "failures", "modifiers", "repeat_builder", "sites", "values", "watcher")

    def __init__(
        self,
        modifiers: ClientModifiers,
        repeat_builder: RepeatBuilder | None = None,
        watcher: HotPathDetector | None = None,
    ) -> None:
        self.modifiers = modifiers
        """This client's modifiers at the worker."""
        self.repeat_builder = repeat_builder
        """Builds repeats, if sequences are compiled and the client sends no repeats."""
        self.watcher = watcher
        """Counts repeats, if sequences are not compiled."""
        self.client_marks = False
        """Whether the client sends repeats that modifiers then change: the tape has the client's markers, and
        the worker's own would overlap them."""
        self.values: dict[int, Any] = {}
        self.failures: dict[int, str] = {}
        self.sites: dict[int, Site] = {}

    @property
    def detector(self) -> HotPathDetector | None:
        """The detector for this client's stream on this worker, if there is one."""
        return self.watcher if self.repeat_builder is None else self.repeat_builder.detector
