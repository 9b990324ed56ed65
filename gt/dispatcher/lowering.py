"""Ops that a sum over parts cannot express become several that it can, where their inputs lie in parts."""

from typing import Any

from gt.dispatcher.tensor_handle import TensorHandle
from gt.transport.protocol import Op


def lower(cmd: Op, inputs: list[TensorHandle]) -> list[Any] | None:
    """The instructions that do the same in parts; None if the op itself will do."""
    return None
