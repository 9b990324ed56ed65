"""Ops of other libraries that have kernels for the CPU and none for the device.

They run in the program, on copies of their tensors: the program waits for the data. Ops that are made of
others (`torch.library.custom_op` without device types) need none of this: each op in them is an instruction.
"""

import warnings
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from gt.torch.buffers import DEVICE, is_on_device

_warned_about: set[str] = set()


def register() -> list[Any]:
    """Register the fallback; the result keeps it registered."""
    library = torch.library.Library("_", "IMPL", "PrivateUse1")
    library.fallback(_run_on_cpu)
    return [library]


def _run_on_cpu(op: Any, *args: Any, **kwargs: Any) -> Any:
    name = op.name()
    if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU"):
        raise NotImplementedError(f"{name} has no kernel for the device tapestry, and none for the CPU")
    if name not in _warned_about:
        _warned_about.add(name)
        warnings.warn(
            f"{name} has no kernel for the device tapestry: it runs on the CPU, in this program, which waits "
            "for its data",
            stacklevel=2,
        )
    return run_on_cpu(op, args, kwargs)


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def run_on_cpu(op: Any, args: Any, kwargs: Any, call: Any = None, writes: Any = _is_written) -> Any:
    """Call an op with copies of its tensors on the CPU; tensors that it changes or returns are moved back.

    `call` calls the op, and `writes` says whether it changes an argument, where its schema does not.
    """
    originals: dict[int, torch.Tensor] = {}
    copies: dict[int, torch.Tensor] = {}

    def to_cpu(one: Any) -> Any:
        if not is_on_device(one):
            return torch.device("cpu") if isinstance(one, torch.device) and one.type == DEVICE.type else one
        if id(one) not in copies:
            copies[id(one)] = copy = one.detach().cpu()
            originals[id(copy)] = one
        return copies[id(one)]

    args, kwargs = tree_map(to_cpu, (args, kwargs))
    result = (call or op)(*args, **kwargs)
    for n, argument in enumerate(op._schema.arguments):
        if writes(argument):
            given: Any = args[n] if n < len(args) else kwargs.get(argument.name)
            for changed in tree_leaves(given):
                if id(changed) in originals:
                    originals[id(changed)].copy_(changed)

    def to_device(one: Any) -> Any:
        if not isinstance(one, torch.Tensor):
            return one
        return originals[id(one)] if id(one) in originals else one.to(DEVICE)

    return tree_map(to_device, result)
