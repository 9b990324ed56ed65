"""`gt.torch.shard`: how a model's parameters and batches are distributed over workers.

    model = gt.torch.shard(Model().to("tapestry"))                # "data": each worker has a part of a batch
    model = gt.torch.shard(model, "fsdp")                         # and a part of every parameter
    model = gt.torch.shard(model, "tensor")                       # a part of every large product
    model = gt.torch.shard(model, {"*.q_proj": "column", "*.o_proj": "row"})

The rest of a program stays as it is, and results do not depend on layouts. `shard` issues signals, which
change the layouts of values; the dispatcher inserts the communication. With one worker it has no effect.
"""

import fnmatch
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from gt.client import signals
from gt.errors import ConfigError
from gt.stream.instructions import Op, Signal
from gt.stream.layouts import Replicated, Sharded
from gt.torch.buffers import Handle, is_on_device, read, write
from gt.torch.kernels import operation
from gt.torch.sites import site

WAYS = ("data", "tensor", "fsdp", "zero")
LAYOUTS = ("column", "row", "shard", "replicate")

COLUMN = (
    *(
        "q_proj",
        "k_proj",
        "v_proj",
        "query",
        "key",
        "value",
        "gate_proj",
        "up_proj",
        "fc1",
        "c_fc",
        "linear1",
    ),
    *("wi", "wi_0", "wi_1", "w1", "w3", "intermediate.dense", "lin1"),
)
"""Names of layers that are split along their outputs, in transformers of Hugging Face and PyTorch."""
ROW = ("o_proj", "out_proj", "down_proj", "fc2", "mlp.c_proj", "linear2", "wo", "w2", "output.dense", "lin2")
"""Names of the layers that follow these, which are split along their inputs."""


class TargetLayout(NamedTuple):
    """A layout and the numbers of its workers, which are empty for all workers."""

    layout: Replicated | Sharded
    workers: tuple[int, ...] = ()


_layouts: Any = WeakTensorKeyDictionary()
"""The layouts of parameters. Gradients are given the layout of their parameter before an optimizer step."""


def shard(target: Any, how: Any = None, *, dim: int | None = None, workers: Any = ()) -> Any:
    """Distribute a model, or a batch, over workers; returns it.

    A model's `how` is "data" (the default: parameters on all workers, batches in parts), "fsdp" or "zero"
    (each worker keeps a part of every parameter, gradient and optimizer state), "tensor" (large products in
    parts), or layouts by patterns of modules' or parameters' names: a mapping, or the path of a YAML file
    with one. A layout is "column" or "row" for a linear layer, "shard" or {"shard": {"axis": n}},
    "replicate", or a signal's name. Parameters that no pattern matches are on all workers. A tensor, or a
    tuple, list or dict of tensors, is distributed along `dim`.
    """
    if not isinstance(target, nn.Module):
        return _batch(target, 0 if dim is None else dim, tuple(workers))
    if dim is not None:
        raise TypeError("gt.torch.shard(model, dim=...): dim is for tensors; pass how=... for a model")
    _check_on_device(target)
    how = "data" if how is None else how
    if isinstance(how, str | os.PathLike) and how not in WAYS:
        how = _file(how)
    if isinstance(how, Mapping):
        layouts = dict(_by_patterns(target, how))
    elif how == "tensor":
        layouts = dict(_by_patterns(target, _tensor_layouts(target)))
    else:
        layouts = {id(one): _part(one) for one in target.parameters()} if how != "data" else {}
    everywhere = TargetLayout(Replicated(), tuple(workers))
    for one in target.parameters():
        where = layouts.get(id(one), everywhere)
        _layouts[one] = where if where.workers else where._replace(workers=tuple(workers))
        _set_layout(one, _layouts[one])
    for one in target.buffers():
        _set_layout(one, everywhere)
    for number, hook in list(target._forward_pre_hooks.items()):
        if hook in (_split_batch, _copy_batch):  # the hooks of an earlier call
            del target._forward_pre_hooks[number]
            target._forward_pre_hooks_with_kwargs.pop(number, None)
    in_parts = how in ("data", "fsdp", "zero")
    target.register_forward_pre_hook(_split_batch if in_parts else _copy_batch, with_kwargs=True)
    return target


# --- batches ---


def _batch(target: Any, dim: int, workers: tuple[int, ...]) -> Any:
    leaves = tree_leaves(target)
    if not any(isinstance(one, torch.Tensor) for one in leaves):
        raise TypeError(f"gt.torch.shard() takes a model or tensors, not {type(target).__name__}")
    for one in leaves:
        if isinstance(one, torch.Tensor):
            _check_tensor(one)
            if not -one.dim() <= dim < one.dim():
                raise IndexError(
                    f"gt.torch.shard(dim={dim}): a tensor of shape {list(one.shape)} has no such dim"
                )
            _set_layout(one, TargetLayout(Sharded(dim % one.dim()), workers))
    return target


def _split_batch(module: nn.Module, args: Any, kwargs: Any) -> None:
    """Distribute those arguments of a model that have one entry for each element of the batch."""
    tensors = [one for one in tree_leaves((args, kwargs)) if is_on_device(one) and one.dim()]
    for one in tensors:
        if one.shape[0] == tensors[0].shape[0] > 1:
            _set_layout(one, TargetLayout(Sharded(0)))


def _copy_batch(module: nn.Module, args: Any, kwargs: Any) -> None:
    """Replicate the arguments of a model on all workers."""
    for one in tree_leaves((args, kwargs)):
        if is_on_device(one):
            _set_layout(one, TargetLayout(Replicated()))


# --- setting layouts ---


def _set_layout(tensor: torch.Tensor, where: TargetLayout) -> None:
    """Give a tensor's value another layout."""
    value = read(tensor)
    client = value.client
    number = client.next_id()
    client.emit(Signal(number, "shard", where.layout, where.workers))
    client.emit(Op(number, "reshape", (value.id,), {"shape": list(tensor.shape)}, site(client)))
    write(tensor, Handle(client, number))


def _set_gradient_layouts(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    """Give gradients the layouts of their parameters, which adds up partial sums once."""
    if not _layouts:
        return
    for group in optimizer.param_groups:
        for one in group["params"]:
            where = _layouts.get(one)
            if where is not None and one.grad is not None and is_on_device(one.grad):
                _set_layout(one.grad, where)


register_optimizer_step_pre_hook(_set_gradient_layouts)


def zeros_like(
    self: torch.Tensor,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> torch.Tensor:
    """The kernel of `torch.zeros_like`: an optimizer's state gets the layout of its parameter."""
    options = {"dtype": dtype, "layout": layout, "device": device, "pin_memory": pin_memory}
    made = torch.empty_like(self, **options, memory_format=memory_format).zero_()
    where = _layouts.get(self) if _layouts else None
    if where is not None and is_on_device(made):
        _set_layout(made, where)
    return made


FUSED = ("_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_")
"""The ops of fused optimizers, which take lists of tensors."""


def fused(name: str) -> Any:
    """The kernel of a fused optimizer: with distributed parameters, an op for each, in its own layout."""

    def run(parameters: Any, *args: Any, **kwargs: Any) -> None:
        step = operation(f"aten::{name}").run
        if len(parameters) < 2 or not _layouts or not any(one in _layouts for one in parameters):
            step(parameters, *args, **kwargs)
            return
        for n, one in enumerate(parameters):
            step([one], *[given[n : n + 1] if isinstance(given, list) else given for given in args], **kwargs)

    return run


def _part(parameter: torch.Tensor) -> TargetLayout:
    """The layout of one part per worker: along the first axis, or along the longest if that one is short."""
    sizes = list(parameter.shape)
    if not sizes or max(sizes) < 2:
        return TargetLayout(Replicated())
    return TargetLayout(Sharded(0 if sizes[0] >= min(64, max(sizes)) else sizes.index(max(sizes))))


# --- layouts by names ---


def _tensor_layouts(model: nn.Module) -> dict[str, Any]:
    """Layouts of the linear layers: by their names, or else alternately column and row for consecutive
    ones."""
    found: dict[str, Any] = {}
    for name, module in model.named_modules():
        weight: Any = getattr(module, "weight", None)
        if isinstance(weight, torch.Tensor) and weight.dim() == 2:
            for layout, names in (("column", COLUMN), ("row", ROW)):
                if any(f".{name}".endswith(f".{known}") for known in names):
                    found[name] = layout
    if found:
        return found
    before: nn.Linear | None = None
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            follows = before is not None and before.out_features == module.in_features
            found[name] = "row" if follows else "column"
            before = None if follows else module
    if not found:
        raise ValueError(
            'gt.torch.shard(model, "tensor"): the model has no linear layers. Say which parameters to split: '
            'gt.torch.shard(model, {"name.*": "shard"})'
        )
    return found


def _file(path: Any) -> Mapping[str, Any]:
    if not Path(path).exists():
        raise ValueError(
            f"gt.torch.shard(model, {str(path)!r}): it is one of {', '.join(map(repr, WAYS))}, a mapping of "
            "patterns to layouts, or the path of a YAML file with one"
        )
    import yaml

    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ConfigError(f"{path}: a mapping of patterns to layouts is expected, such as '*.q_proj: column'")
    return found


def _by_patterns(model: nn.Module, layouts: Mapping[str, Any]) -> Iterator[tuple[int, TargetLayout]]:
    """The layout of each parameter that a pattern matches, by the parameter's `id()`."""
    modules, parameters = dict(model.named_modules()), dict(model.named_parameters(remove_duplicate=False))
    for pattern, layout in layouts.items():
        matched = False
        for name, one in parameters.items():
            owner, _, own = name.rpartition(".")
            if fnmatch.fnmatchcase(owner, pattern) or fnmatch.fnmatchcase(name, pattern):
                matched = True
                yield id(one), _layout(pattern, layout, modules[owner], own, one)
        if not matched:
            names = ", ".join(list(parameters)[:6])
            raise ValueError(f"gt.torch.shard: no parameter matches {pattern!r}. There are {names}, ...")


def _layout(pattern: str, layout: Any, module: nn.Module, own: str, parameter: torch.Tensor) -> TargetLayout:
    if isinstance(layout, Mapping):
        return _written(pattern, layout, parameter)
    if layout == "replicate":
        return TargetLayout(Replicated())
    if layout == "shard":
        return _part(parameter)
    if layout in ("column", "row"):
        # A weight has a row for each output, but a column in Hugging Face's Conv1D and in embeddings.
        turned = type(module).__name__ == "Conv1D" or isinstance(module, nn.Embedding | nn.EmbeddingBag)
        if parameter.dim() == 1:
            return TargetLayout(Sharded(0)) if layout == "column" else TargetLayout(Replicated())
        return TargetLayout(Sharded(int((layout == "row") != turned)))
    if not isinstance(layout, str):
        raise TypeError(f"gt.torch.shard: {layout!r}, for {pattern!r}, is not a layout: {_known()}")
    try:
        scope = signals._find(layout)
    except ConfigError as error:
        raise ValueError(
            f"gt.torch.shard: {layout!r}, for {pattern!r}, is not a layout: {_known()}"
        ) from error
    return TargetLayout(scope.layout or Replicated(), scope.workers)


def _written(pattern: str, layout: Mapping[str, Any], parameter: torch.Tensor) -> TargetLayout:
    """The layout that {"shard": {"axis": 0, "workers": [0, 1]}} or {"replicate": true} describes."""
    if layout.keys() == {"replicate"}:
        return TargetLayout(Replicated())
    given = layout.get("shard")
    if (
        layout.keys() != {"shard"}
        or not isinstance(given, Mapping)
        or not given.keys() <= {"axis", "workers"}
    ):
        raise ValueError(f"gt.torch.shard: {dict(layout)!r}, for {pattern!r}, is not a layout: {_known()}")
    axis = given.get("axis", 0)
    if not isinstance(axis, int) or not -parameter.dim() <= axis < parameter.dim():
        raise ValueError(
            f"gt.torch.shard: {pattern!r} is split along axis {axis!r}, and a parameter of it has the shape "
            f"{list(parameter.shape)}"
        )
    return TargetLayout(Sharded(axis % parameter.dim()), tuple(given.get("workers", ())))


def _known() -> str:
    names = ", ".join(map(repr, LAYOUTS))
    return f'there are {names}, {{"shard": {{"axis": 0}}}}, and the names of signals'


# --- checks ---


def _check_on_device(model: nn.Module) -> None:
    for name, one in model.named_parameters():
        if not is_on_device(one):
            raise ValueError(
                f"gt.torch.shard: the parameter {name} is on the device {one.device}. "
                'Move the model first: model.to("tapestry")'
            )


def _check_tensor(tensor: torch.Tensor) -> None:
    if not is_on_device(tensor):
        raise ValueError(
            f"gt.torch.shard: the tensor is on the device {tensor.device}. Move it first: x.to('tapestry')"
        )
