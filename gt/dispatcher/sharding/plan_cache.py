"""The plans of ops that were planned before, by all that a plan depends on."""

from collections.abc import Callable, Sequence
from typing import Any

from gt.dispatcher.sharding.planning import Plan, kind_of, plan
from gt.dispatcher.tensor_handle import TensorHandle
from gt.stream.instructions import Op

MAX_SHARDING_PLANS = 20_000
"""How many plans are kept; when there are more, all are dropped."""


class PlanCache:
    """Plans by op, attributes, placements of the inputs, and home worker."""

    def __init__(self) -> None:
        self._plans: dict[Any, Plan] = {}
        self._keys: dict[Any, int] = {}

    def find(
        self,
        cmd: Op,
        handles: Sequence[TensorHandle],
        sizes: Callable[[int, tuple[str, ...]], tuple[int, ...]],
        home: str,
    ) -> Plan:
        """The plan for an op without a signal, which is made if there is none."""
        attrs = cmd.attrs or {}
        key = (cmd.op, kind_of(attrs), tuple([self.key_of(handle) for handle in handles]), home)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) > MAX_SHARDING_PLANS:
                self._plans.clear()
            found = self._plans[key] = plan(cmd.op, attrs, [*handles], sizes, home, None)
        return found

    def key_of(self, handle: TensorHandle) -> int:
        """A number that is equal for tensors with equal specs and placements: all that a plan depends on."""
        if handle.key < 0:
            properties = (
                handle.spec.shape,
                handle.spec.dtype,
                handle.placement,
                tuple(handle.versions),
                handle.origin is None,
            )
            handle.key = self._keys.setdefault(properties, len(self._keys))
        return handle.key
