"""`torch.compile` with tensors of the device.

Inductor, the default backend, generates code for devices whose memory it can address. Graphs with tensors of
the device run eagerly instead, with one warning. The backend "tapestry" (`backend.py`) is
registered when it is first used, because TorchDynamo takes seconds to import.
"""

import functools
import pkgutil
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_impls import op_implementations_dict
from torch.utils._pytree import tree_leaves

from gt.torch import scopes
from gt.torch.buffers import is_on_device
from gt.torch.generators import DeviceGenerator
from gt.torch.results import CHANNELS_LAST, is_channels_last

NAME = "tapestry"
"""The backend's name."""

_warned = False


def patch_compile() -> None:
    """Make `torch.compile` support the device and its backend."""
    for op in (torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default):
        op_implementations_dict[op] = _as_on_device(op_implementations_dict[op])
    inductor: Any = torch._TorchCompileInductorWrapper
    compile_graph = inductor.__call__

    @functools.wraps(compile_graph)
    def call(self: Any, model_: Any, inputs_: Any, **kwargs: Any) -> Any:
        if not uses_device(model_, inputs_):
            return compile_graph(self, model_, inputs_, **kwargs)
        _warn_eager()
        return model_.forward

    inductor.__call__ = call
    make_inductor = inductor.__init__

    @functools.wraps(make_inductor)
    def init_inductor(self: Any, *args: Any, **kwargs: Any) -> None:
        _skip_package()
        make_inductor(self, *args, **kwargs)

    inductor.__init__ = init_inductor
    other: Any = torch._TorchCompileWrapper
    make = other.__init__

    @functools.wraps(make)
    def init(self: Any, backend: Any, mode: Any, options: Any, *args: Any, **kwargs: Any) -> None:
        _skip_package()
        if backend == NAME:
            from gt.torch.backend import check_arguments, register

            check_arguments(mode, options)
            register()
        make(self, backend, mode, options, *args, **kwargs)

    other.__init__ = init
    if "torch._dynamo.backends.registry" in sys.modules:
        from gt.torch.backend import register

        register()


@functools.cache
def _skip_package() -> None:
    """Exclude the device's kernels from TorchDynamo's capture: PyTorch calls them while it traces, too.

    Not `scopes`, whose function is in place of `Module.__call__`.
    """
    from torch._dynamo import trace_rules
    from torch._dynamo.variables.script_object import TorchScriptObjectVariable

    folder = Path(__file__).parent
    names = [f"gt.{one.name}" for one in pkgutil.iter_modules([str(folder.parent)])]
    names += [f"gt.torch.{one.name}" for one in pkgutil.iter_modules([str(folder)])]
    for name in names:
        if name not in ("gt.torch", scopes.__name__):
            trace_rules.add(name)
    # TorchDynamo ends a graph at a generator of PyTorch's own class, and fails for one of another class.
    kind: Any = TorchScriptObjectVariable
    is_script_object = kind.is_matching_cls
    kind.is_matching_cls = lambda one: one is not DeviceGenerator and is_script_object(one)


def _as_on_device(convolve: Any) -> Any:
    """A convolution of fake tensors whose results have the strides that it gives them on the device."""

    @functools.wraps(convolve)
    def call(fake_mode: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        made = convolve(fake_mode, op, *args, **kwargs)
        names = [argument.name for argument in op._schema.arguments]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        inputs = given["input"], given["weight"]
        if not all(map(is_on_device, inputs)) or not any(map(is_channels_last, inputs)):
            return made
        with fake_mode:
            if isinstance(made, torch.Tensor):
                return made.contiguous(memory_format=CHANNELS_LAST[made.dim()])
            gradients = [
                None if one is None else one.contiguous(memory_format=CHANNELS_LAST[one.dim()])
                for one in made[:2]
            ]
            return (*gradients, made[2])

    return call


def uses_device(module: Any, inputs: Any) -> bool:
    """Whether a graph of TorchDynamo's takes, has or makes tensors of the device."""
    if any(map(is_on_device, tree_leaves(inputs))):
        return True
    for node in module.graph.nodes:
        if any(map(is_on_device, tree_leaves(node.meta.get("example_value")))):
            return True
    return any(map(is_on_device, (*module.parameters(), *module.buffers())))


def _warn_eager() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "torch.compile: inductor generates no code for the device tapestry, so graphs with its tensors "
            f'run eagerly there. Use torch.compile(..., backend="{NAME}") to send whole graphs, and to have '
            "workers compile them.",
            stacklevel=2,
        )
