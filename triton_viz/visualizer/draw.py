"""From records to what the page draws."""

from typing import Any

import numpy as np

from triton_viz.core.data import Dot, Launch, Program, Record, TensorInfo


def collect_launch(launch: Launch, program: Program) -> list[tuple[str, Record]]:
    """One program's records in the order they happened, each with an id that stays the same."""
    return [
        (f"{launch.id}-{number}", record)
        for number, record in enumerate(launch.records)
        if record.program == program
    ]


def get_visualization_data(launch: Launch, program: Program) -> list[dict[str, Any]]:
    """One payload per op of one program. Every payload has a `uuid`, a `type` and a source `line`."""
    tensors = {tensor.name: tensor for tensor in launch.tensors}
    return [_payload(uuid, record, tensors) for uuid, record in collect_launch(launch, program)]


def _payload(uuid: str, record: Record, tensors: dict[str, TensorInfo]) -> dict[str, Any]:
    common = {
        "uuid": uuid,
        "type": type(record).__name__,
        "line": record.call_path[0].line if record.call_path else 0,
    }
    if isinstance(record, Dot):
        return common | {"left": record.left, "right": record.right, "result": record.result}
    tensor = tensors.get(record.tensor)
    touched = tensor.elements(record.offsets[record.mask]) if tensor else np.zeros(0, np.int64)
    return common | {
        "tensor": record.tensor,
        "elements": touched[touched >= 0].tolist(),
        "outside": int((touched < 0).sum()),
        "masked": int(record.mask.size - record.mask.sum()),
    }
