"""The layouts of an op's results: from the meta device, or from the worker where they depend on data."""

from typing import Any

import torch

from gt.ops.aten import DTYPES
from gt.torch.buffers import Handle, Layout, emit
from gt.torch.schemas import Schema

Results = Layout | list[Any]
"""One tensor's layout; or for each result a layout, a list of them, or what it is if it is no tensor."""


def results_on_meta(schema: Schema, given: dict[str, Any]) -> Results:
    """What PyTorch says that an op with these arguments gives. Raises what it raises."""
    meta = {name: _on_meta(one) for name, one in given.items()}
    if schema.creates:
        meta["device"] = torch.device("meta")
    args = [meta.pop(one.name) for one in schema.positional]
    return _layouts(schema.function(*args, **meta))


def _on_meta(one: Any) -> Any:
    if isinstance(one, torch.Tensor):
        return torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device="meta")
    if isinstance(one, list | tuple):
        return [_on_meta(item) for item in one]
    return one


def _layouts(found: Any) -> Results:
    if isinstance(found, torch.Tensor):
        return _layout(found)
    if isinstance(found, list):
        return [[_layout(one) for one in found]]
    found = found if isinstance(found, tuple) else (found,)
    return [_layout(one) if isinstance(one, torch.Tensor) else _several(one) for one in found]


def _several(one: Any) -> Any:
    return [_layout(item) for item in one] if isinstance(one, list) else one


def _layout(tensor: torch.Tensor) -> Layout:
    return Layout(tuple(tensor.shape), tensor.stride(), tensor.dtype)


def ask(value: Handle, schema: Schema) -> Results:
    """What an op gave, by asking the worker. Waits."""
    specs = emit("specs", (value,), None)
    numbers = specs.client.fetch(specs.id).tolist()
    layouts: list[Any] = []
    while numbers:
        rank, dtype = numbers.pop(0), getattr(torch, DTYPES[numbers.pop(0)])
        layouts.append(Layout(tuple(numbers[:rank]), tuple(numbers[rank : 2 * rank]), dtype))
        del numbers[: 2 * rank]
    if schema.result_kinds == ["Tensor"]:
        return layouts[0]
    return [layouts] if schema.result_kinds == ["List[Tensor]"] else layouts
