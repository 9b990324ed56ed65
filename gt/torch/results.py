"""The layouts of an op's results: from the meta device, or from the worker where they depend on data."""

from typing import Any

import torch

from gt.ops.aten import RESULTS, TORCH_DTYPES, result_text
from gt.torch.buffers import Handle, Layout, emit, name_of
from gt.torch.checks import check
from gt.torch.schemas import Schema

Results = Layout | list[Any]
"""One tensor's layout; or for each result a layout, a list of layouts, or its value if it is not a tensor."""

_OTHER_ON_META = frozenset(
    f"aten::{name}"
    for name in (
        *("native_layer_norm", "native_batch_norm", "_native_batch_norm_legit_functional"),
        *("_native_batch_norm_legit.no_stats", "_batch_norm_with_update_functional"),
        *("_native_batch_norm_legit", "_batch_norm_with_update", "_native_multi_head_attention"),
    )
)
"""Ops that have results with other sizes or dtypes on the meta device than on a worker, or more of them."""


_CHECKED_ON_CPU = frozenset(
    f"aten::{name}" for name in ("linear", "mm", "bmm", "mv", "addmm", "baddbmm", "convolution")
)
"""Ops for which the meta device accepts inputs of different dtypes, or raises other messages than a CPU."""


_CONVOLUTIONS = frozenset({"aten::convolution", "aten::convolution_backward"})
"""Ops whose results are contiguous on the meta device, and channels last elsewhere if an input is."""


def results_on_meta(schema: Schema, given: dict[str, Any]) -> Results:
    """The layouts of the results of an op with these arguments, by PyTorch's meta device. Raises its
    errors."""
    check(schema.name, given)
    if schema.name in _CHECKED_ON_CPU:
        dtypes = {one.dtype for one in given.values() if isinstance(one, torch.Tensor)}
        if len(dtypes) > 1:
            _call(schema, {name: _on_cpu(one) for name, one in given.items()})  # raises
    meta = {name: _on_meta(one) for name, one in given.items()}
    if schema.creates:
        meta["device"] = torch.device("meta")
    try:
        results = _call(schema, {**meta})
    except RuntimeError:
        if schema.name in _CHECKED_ON_CPU:
            _call(
                schema, {name: _on_cpu(one) for name, one in given.items()}
            )  # raises the error that PyTorch raises on a CPU
        raise
    if schema.name in _CONVOLUTIONS and any(map(is_channels_last, (meta["input"], meta["weight"]))):
        return _channels_last(results)
    if schema.name not in _OTHER_ON_META or not isinstance(results, list):
        return results
    found: Any = _call(schema, {name: _on_cpu(one) for name, one in given.items()})
    return [one if _same(one, other) else other for one, other in zip(results, found, strict=True)]


def _call(schema: Schema, given: dict[str, Any]) -> Results:
    args = [given.pop(one.name) for one in schema.positional]
    return _layouts(schema.function(*args, **given))


CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
"""By the number of a tensor's dimensions."""


def is_channels_last(tensor: torch.Tensor) -> bool:
    """Whether the channels of images are next to each other in memory."""
    kind = CHANNELS_LAST.get(tensor.dim())
    return kind is not None and tensor.is_contiguous(memory_format=kind) and not tensor.is_contiguous()


def _channels_last(results: Results) -> Results:
    if isinstance(results, list):
        return [_channels_last(one) if isinstance(one, Layout) else one for one in results]
    kind = CHANNELS_LAST.get(len(results.size))
    if kind is None:
        return results
    return _layout(torch.empty(results.size, dtype=results.dtype, device="meta", memory_format=kind))


def _on_cpu(one: Any) -> Any:
    """A CPU tensor of the same size: one element, repeated, unless it is small and may be written to."""
    if not isinstance(one, torch.Tensor):
        return one
    size = one.shape if one.dim() <= 1 else ()
    return torch.zeros(size, dtype=one.dtype, device="cpu").expand(one.shape)


def _same(one: Layout, other: Layout | None) -> bool:
    return other is not None and (one.size, one.dtype) == (other.size, other.dtype)


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


def fetch_results(value: Handle, schema: Schema) -> tuple[Results, list[Handle]]:
    """The layouts and the values of an op's results, read from the worker. Waits."""
    specs = emit("specs", (value,), None)
    numbers = specs.client.fetch(specs.id).tolist()
    layouts: list[Any] = []
    while numbers:
        rank, dtype = numbers.pop(0), getattr(torch, TORCH_DTYPES[numbers.pop(0)])
        layouts.append(Layout(tuple(numbers[:rank]), tuple(numbers[rank : 2 * rank]), dtype))
        del numbers[: 2 * rank]
    values = items_with_shapes(value, layouts)
    if schema.result_kinds == ["Tensor"]:
        return layouts[0], values
    return [layouts] if schema.result_kinds == ["List[Tensor]"] else layouts, values


def items_with_shapes(value: Handle, layouts: list[Layout]) -> list[Handle]:
    """The results of an op whose instruction has no shapes: the `item` of each has its shape."""
    return [
        emit("item", (value,), {"index": n, RESULTS: results_attribute(layout)})
        for n, layout in enumerate(layouts)
    ]


def results_attribute(results: Results) -> str:
    """The attribute with the dtypes and shapes of an op's results, by which a dispatcher can place them."""
    if isinstance(results, Layout):
        return result_text(results.size, name_of(results.dtype).removeprefix("torch."))
    layouts: list[Layout] = []
    for one in results:
        layouts += one if isinstance(one, list) else [one] if isinstance(one, Layout) else []
    return "".join([f"{results_attribute(one)};" for one in layouts]) or ";"
