"""`torch.compile(model, backend="tapestry")`: whole forward and backward graphs on the stream.

Imported when `torch.compile` first uses the backend: this module imports torch._dynamo, which takes seconds.
"""

import warnings
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import _COMPILER_FNS, register_backend
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy

from gt.torch.compiling import NAME, uses_device
from gt.torch.device_graph import DeviceGraph


def tapestry(module: torch.fx.GraphModule, inputs: Any, **refused: Any) -> Any:
    """The backend: a graph as TorchDynamo captured it, compiled. Raises TypeError for modes and options."""
    check_arguments(**refused)
    if not uses_device(module, inputs):
        warnings.warn(
            f'torch.compile(backend="{NAME}"): a graph without tensors of the device tapestry runs eagerly '
            f'on {_devices(inputs)}. Move its inputs to "tapestry", or compile it with backend="inductor".',
            stacklevel=2,
        )
        return module.forward
    return aot_autograd(fw_compiler=_compile, partition_fn=_partition, keep_inference_input_mutations=True)(
        module, inputs
    )


def check_arguments(mode: Any = None, options: Any = None) -> None:
    """Raise TypeError for arguments of torch.compile that the backend does not take."""
    given = [f"{name}={one!r}" for name, one in (("mode", mode), ("options", options)) if one]
    given = [one for one in given if one != "mode='default'"]
    if given:
        raise TypeError(
            f'torch.compile(backend="{NAME}") takes no mode and no options, and was given '
            f"{' and '.join(given)}. Workers compile graphs by themselves, in the background."
        )


def register() -> None:
    """Register the backend with TorchDynamo, unless it is."""
    if NAME not in _COMPILER_FNS:
        register_backend(tapestry, name=NAME)


def _devices(inputs: Any) -> str:
    found = sorted({str(one.device) for one in inputs if isinstance(one, torch.Tensor)})
    return ", ".join(found) or "the CPU"


def _compile(module: torch.fx.GraphModule, inputs: Any) -> Any:
    return _boxed(DeviceGraph(module))


def _boxed(graph: DeviceGraph) -> Any:
    """A function that takes its arguments as one list, marked as AOTAutograd requires."""

    def run(args: list[Any]) -> Any:
        return graph(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _partition(joint: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """Divide a graph into forward and backward. Random numbers are saved, even where a checkpoint would draw
    them again: another draw of the stream's generator gives other numbers."""
    for node in joint.graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            node.meta.pop("recompute", None)
            several = not isinstance(node.meta["val"], torch.Tensor)
            for one in node.users if several else (node,):  # the results of an op that has several
                one.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    return min_cut_rematerialization_partition(joint, *args, **kwargs)
