"""The tracer: a record of every access and every dot of every program."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from triton_viz.clients.utils import kernel_call_path
from triton_viz.core.client import Client, OpCallbacks
from triton_viz.core.data import Access, Dot, Op, Program, Record, TensorInfo


class Tracer(Client):
    """Records what each program did, on which elements of which tensor."""

    NAME: ClassVar[str] = "tracer"

    def __init__(self) -> None:
        self._records: list[Any] = []

    def pre_run_callback(self, fn: Callable) -> None:
        """Start over for a new launch."""
        self._kernel = fn
        self._records = []

    def post_run_callback(self, fn: Callable) -> None:
        """Nothing to clean up."""

    def arg_callback(self, name: str, arg: Any) -> None:
        """Arguments stand in the launch."""

    def grid_callback(self, grid: Program) -> None:
        """So does the grid."""

    def grid_idx_callback(self, grid_idx: Program) -> None:
        """Remember whose ops come next."""
        self._program = grid_idx

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        """Record accesses and dots, before they happen: a load then stands before what it led to."""
        if issubclass(op_type, Access):
            return OpCallbacks(before_callback=functools.partial(self._access, op_type))
        return OpCallbacks(before_callback=self._dot if op_type is Dot else None)

    def finalize(self) -> list[Record]:
        """The records of this launch."""
        return self._records

    def _access(
        self, kind: type[Access], tensor: TensorInfo | None, offsets: np.ndarray, mask: np.ndarray
    ) -> None:
        record = kind(
            program=self._program,
            call_path=kernel_call_path(self._kernel),
            tensor=tensor.name if tensor else "",
            offsets=offsets,
            mask=mask.copy(),
        )
        self._records.append(record)

    def _dot(self, left: tuple[int, ...], right: tuple[int, ...], output: tuple[int, ...]) -> None:
        path = kernel_call_path(self._kernel)
        self._records.append(
            Dot(program=self._program, call_path=path, left=left, right=right, result=output)
        )
