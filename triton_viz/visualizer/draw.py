"""From records to what the page draws."""

from typing import Any

import numpy as np

from triton_viz.core.data import Access, Dot, Launch, Op, Program, TensorInfo


def collect_launch(launch: Launch, program: Program) -> list[tuple[str, Op]]:
    """One program's ops in the order they happened, each with an id that stays the same."""
    of = ".".join(str(index) for index in program)
    return [(f"{launch.id}-{number}-{of}", op) for number, op in launch.numbered(program)]


def get_visualization_data(launch: Launch, program: Program) -> list[dict[str, Any]]:
    """One payload per op of one program. Every payload has a `uuid`, a `type` and a source `line`."""
    tensors = {tensor.name: tensor for tensor in launch.tensors}
    return [
        payload
        for uuid, op in collect_launch(launch, program)
        if (payload := _payload(uuid, op, tensors)) is not None
    ]


def _payload(uuid: str, op: Op, tensors: dict[str, TensorInfo]) -> dict[str, Any] | None:
    common = {
        "uuid": uuid,
        "type": type(op).__name__,
        "line": op.call_path[0].line if op.call_path else 0,
    }
    if isinstance(op, Dot):
        return common | {"left": op.left, "right": op.right, "result": op.result}
    if not isinstance(op, Access):
        return None
    tensor = tensors.get(op.tensor)
    touched = tensor.elements(op.offsets[op.mask]) if tensor else np.zeros(0, np.int64)
    return common | {
        "tensor": op.tensor,
        "elements": touched[touched >= 0].tolist(),
        "outside": int((touched < 0).sum()),
        "masked": int(op.mask.size - op.mask.sum()),
    }
