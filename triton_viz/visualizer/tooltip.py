"""The payload of an element's tooltip."""

import math
from typing import Any

import numpy as np

from triton_viz.core.data import Access, Launch, Program
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.visualizer.draw import collect_launch
from triton_viz.visualizer.payloads import ElementTip, Toucher
from triton_viz.visualizer.raw_tensor_data import uuid_of

MOST_OPS = 20
_MOST_EXACT = 2**53 - 1
"""JavaScript's numbers are doubles, which represent all integers up to this one."""


def element_tip(
    launch: Launch, tensor: TensorInfo, element: int, program: Program, value: Any = None
) -> ElementTip:
    """An element's index, address and value, and the first ops of a program that have it in their block."""
    index = [int(i) for i in np.unravel_index(element, tensor.shape)] if tensor.shape else []
    offset = sum(i * stride for i, stride in zip(index, tensor.strides, strict=True))
    return ElementTip(
        tensor=tensor.name,
        index=index,
        element=element,
        address=hex(tensor.address + offset * tensor.itemsize),
        value=json_number(value),
        touched_by=_touchers(launch, tensor, offset, program),
    )


def _touchers(launch: Launch, tensor: TensorInfo, offset: int, program: Program) -> list[Toucher]:
    found: list[Toucher] = []
    for number, op, lane in collect_launch(launch, program):
        if not isinstance(op, Access) or tensor.name not in op.elements.tensors:
            continue
        here = op.elements.elements(lane) == offset
        if op.elements.which is not None:
            which = op.elements.which[lane if len(op.elements.which) > 1 else 0]
            here = here & (np.asarray(which) == op.elements.tensors.index(tensor.name))
        if here.any():
            touched = bool((here & op.elements.mask(lane)).any())
            line = op.call_path[0].line if op.call_path else 0
            uuid = uuid_of(launch, number, program)
            found.append(Toucher(uuid=uuid, type=type(op).__name__, line=line, masked=not touched))
            if len(found) == MOST_OPS:
                break
    return found


def json_number(value: Any) -> float | int | bool | str | None:
    """A number for JSON. Numbers that are not finite, or integers too large to be exact, become strings."""
    if value is None:
        return None
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return str(plain)
    if isinstance(plain, int) and abs(plain) > _MOST_EXACT:
        return str(plain)
    return plain
