"""The tracer: records every access, product, reduction and scan, once for all programs that ran it
together."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from triton_viz.clients.utils import ChunkRecords, record
from triton_viz.core.client import Client, ForLoopCallbacks, OpCallbacks
from triton_viz.core.config import cfg
from triton_viz.core.data import Access, Compute, Load, Op, Program, join_chunks
from triton_viz.core.records.columns import Programs
from triton_viz.dsls.base import Accessed


class Tracer(Client):
    """Records the ops of each program and the elements that they access.

    With `values`, it also records the values that were read and written. With `arithmetic`, it records all
    ops; otherwise it leaves out arithmetic.
    """

    NAME: ClassVar[str] = "tracer"
    vectorized: ClassVar[bool] = True

    def __init__(self, values: bool | None = None, arithmetic: bool = False) -> None:
        self._values, self._arithmetic = values, arithmetic
        self._records = ChunkRecords()
        self._joined: list[Op] | None = None

    def pre_run_callback(self, fn: Callable) -> None:
        """Start over for a new launch."""
        self._records, self._joined = ChunkRecords(), None
        self._keep_values = cfg.values if self._values is None else self._values

    def post_run_callback(self, fn: Callable) -> None:
        """Does nothing."""

    def arg_callback(self, name: str, arg: Any) -> None:
        """Does nothing: accesses name their tensors."""

    def grid_callback(self, grid: Program) -> None:
        """Does nothing: records name their programs."""

    def grid_idx_callback(self, grid_idx: Programs) -> None:
        """Begin the records of these programs."""
        self._records.begin(grid_idx)

    def discard_callback(self) -> None:
        """Discard the records of programs that will run again."""
        self._records.discard()

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        """Record each op after its execution, so that a failed op is not recorded."""
        if issubclass(op_type, Access):
            return OpCallbacks(after_callback=functools.partial(self._access, op_type))
        if op_type is Compute:
            return OpCallbacks(after_callback=self._compute if self._arithmetic else None)
        return OpCallbacks(after_callback=functools.partial(self._other, op_type))

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        """No callbacks: records have their iterations."""
        return ForLoopCallbacks()

    def finalize(self) -> list[Op]:
        """The records of this launch: one for each op and iteration, of all programs that ran it."""
        if self._joined is None:
            self._joined = join_chunks(self._records.chunks())
        return self._joined

    def _access(
        self,
        kind: type[Access],
        accessed: Accessed,
        values: Any = None,
        result: Any = None,
        operation: str | None = None,
    ) -> None:
        shown = result if kind is Load else values
        kept: np.ndarray | None = shown.data if self._keep_values and shown is not None else None
        named = {} if operation is None else {"operation": operation}
        self._add(kind, elements=accessed.elements, values=kept, **named)

    def _other(self, kind: type[Op], result: Any = None, operands: Any = None, **fields: Any) -> None:
        if "output" in fields:
            fields["result"] = fields.pop("output")
        self._add(kind, **fields)

    def _compute(self, result: Any = None, operands: Any = None, **fields: Any) -> None:
        self._add(Compute, **fields, result=getattr(result, "shape", ()))

    def _add(self, kind: type[Op], **fields: Any) -> None:
        self._records.add(record(kind, **fields))
