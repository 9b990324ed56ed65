"""The arguments of an aten op: CPU tensors among them, and how all of them are encoded in an instruction."""

from typing import Any

import torch

from gt.ops import TABLE, Spec
from gt.ops.aten import SEED
from gt.torch.buffers import DEVICE, Layout, name_of
from gt.torch.generators import drawing_from, next_seed
from gt.torch.lowering import Lowered
from gt.torch.results import Results
from gt.torch.schemas import IGNORED, Argument, Schema


def move_to_device(schema: Schema, given: dict[str, Any]) -> bool:
    """Move CPU tensors that are numbers or indices to the device; returns whether there were any.

    Raises RuntimeError for other tensors that are not on the device.
    """
    found = False
    for name, one in given.items():
        if isinstance(one, torch.Tensor):
            if one.device.type != DEVICE.type:
                given[name] = _on_device(schema, schema.by_name[name], one)
                found = True
        elif isinstance(one, list | tuple) and any(map(_is_elsewhere, one)):
            given[name] = [_on_device(schema, schema.by_name[name], item) for item in one]
            found = True
    return found


def _is_elsewhere(one: Any) -> bool:
    return isinstance(one, torch.Tensor) and one.device.type != DEVICE.type


def _on_device(schema: Schema, argument: Argument, one: Any) -> Any:
    if not _is_elsewhere(one):
        return one
    indexes = argument.kind == "optional tensors"  # as on other devices, an index may be on the CPU
    if argument.mutated or (one.dim() and not indexes) or one.device.type != "cpu":
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"tapestry:0 and {one.device}! (in {schema.name}, argument {argument.name})"
        )
    return one.to(DEVICE)


def row_infers(lowered: Lowered, results: Results) -> bool:
    """Whether the op table infers the same result as PyTorch. If not, the op is not lowered to the row."""
    if not isinstance(results, Layout):
        return False
    row, tensors, attrs = lowered
    try:
        specs = tuple([Spec(tuple(one.shape), name_of(one.dtype)[6:]) for one in tensors])
        found = TABLE[row].infer(specs, dict(attrs or {}))
    except Exception:  # noqa: BLE001 - the row does not take these
        return False
    return tuple(found.shape) == results.size and found.dtype == name_of(results.dtype)[6:]


def encode(schema: Schema, given: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any] | None]:
    """An op's inputs and attributes in an instruction: `gt.worker.engine.torch.aten` decodes them."""
    inputs: list[torch.Tensor] = []
    attrs: dict[str, Any] = {}
    for one in schema.arguments:
        value = given[one.name]
        if one.kind == "tensor":
            if isinstance(value, torch.Tensor):
                inputs.append(value)
            else:
                attrs[one.name] = _attribute(value)  # a number
        elif one.kind == "optional tensor":
            if value is not None:
                inputs.append(value)
                attrs[one.name] = True
        elif one.kind == "tensors":
            if value is not None:
                inputs += value
                attrs[one.name] = len(value)
        elif one.kind == "optional tensors":
            inputs += [tensor for tensor in value if tensor is not None]
            attrs[one.name] = [tensor is not None for tensor in value]
        elif one.name not in IGNORED and (
            value != one.default
            # A plan replaces the floats that an op is called with, so they have to be attributes.
            or (type(value) is float and value is not one.default)
        ):
            attrs[one.name] = _attribute(value)
    if schema.random and "generator" in given:
        with drawing_from(given["generator"]):
            attrs[SEED] = next_seed()
    return inputs, attrs or None


def _attribute(value: Any) -> Any:
    if isinstance(value, torch.dtype | torch.memory_format):
        return str(value)
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, list | tuple):
        return [_attribute(one) for one in value]
    return value
