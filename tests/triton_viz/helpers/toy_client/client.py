"""A client that counts stored elements."""

from collections.abc import Callable
from typing import Any, ClassVar

from tests.triton_viz.helpers.toy_client.records import StoreCount
from triton_viz import Client, ForLoopCallbacks, OpCallbacks
from triton_viz.clients.utils import record
from triton_viz.core.data import Op, Store


class Toy(Client):
    """Makes a `StoreCount` of every store of every program."""

    NAME: ClassVar[str] = "toy"

    def pre_run_callback(self, fn: Callable) -> None:
        self._records: list[StoreCount] = []

    def post_run_callback(self, fn: Callable) -> None: ...
    def arg_callback(self, name: str, arg: Any) -> None: ...
    def grid_callback(self, grid: Any) -> None: ...
    def grid_idx_callback(self, grid_idx: Any) -> None: ...

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        return OpCallbacks(after_callback=self._count if op_type is Store else None)

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        return ForLoopCallbacks()

    def finalize(self) -> list[StoreCount]:
        return self._records

    def _count(self, mask: Any, **_: Any) -> None:
        self._records.append(record(StoreCount, elements=int(mask.sum())))
