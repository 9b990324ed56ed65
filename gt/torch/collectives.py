"""`torch.distributed` over tensors of the device, for programs that torchrun starts, such as those with DDP.

A collective is an op of PyTorch's dispatcher. Each process is a client of its own server, or of a common one,
so its tensors are fetched, gloo exchanges them between the programs, and the results are sent back. Within a
program, `gt.torch.shard` distributes a model over workers without that.
"""

import functools
import inspect
import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_map

from gt.torch.buffers import DEVICE, is_on_device
from gt.torch.custom_ops import run_on_cpu

_warned: list[bool] = []


def register() -> list[Any]:
    """Register the collectives; the result keeps them registered."""
    if not dist.is_available():
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own kernels are replaced
        library = _registered()
    # `init_process_group()` without a backend.
    dist.Backend.default_device_backend_map[DEVICE.type] = dist.Backend.GLOO
    dist.BackendConfig.__init__ = _also_for_cpu(dist.BackendConfig.__init__)
    DistributedDataParallel.__init__ = _checking(DistributedDataParallel.__init__)
    return [library]


def _checking(init: Any) -> Any:
    """DDP's constructor, which refuses what PyTorch does with memory that the device does not have."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def call(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs).arguments
        wrong = [name for name in ("find_unused_parameters", "static_graph") if given.get(name)]
        if wrong and any(map(is_on_device, given["module"].parameters())):
            raise NotImplementedError(
                f"DistributedDataParallel({wrong[0]}=True): PyTorch would use pinned memory, which the "
                "device tapestry does not have. Use gt.init(workers=N) and gt.torch.shard(model, "
                '"data"), where parameters may be unused'
            )
        init(*args, **kwargs)

    return call


def _registered() -> torch.library.Library:
    library = torch.library.Library("c10d", "IMPL")
    for full in torch._C._dispatch_get_all_op_names():
        if full.startswith("c10d::") and torch._C._dispatch_has_kernel_for_dispatch_key(full, "PrivateUse1"):
            packet, _, overload = full.removeprefix("c10d::").partition(".")
            op = getattr(getattr(torch.ops.c10d, packet), overload or "default")
            library.impl(
                full.removeprefix("c10d::"), functools.partial(_run, op), "PrivateUse1", allow_override=True
            )
    return library


def _also_for_cpu(init: Any) -> Any:
    @functools.wraps(init)
    def call(self: Any, backend: Any) -> None:
        init(self, backend)
        backends = self.device_backend_map
        if DEVICE.type in backends:
            backends.setdefault("cpu", backends[DEVICE.type])

    return call


def _run(op: Any, *args: Any, **kwargs: Any) -> Any:
    if not _warned:
        _warned.append(True)
        warnings.warn(
            "torch.distributed on the device tapestry: each collective fetches its tensors and sends them "
            "back. To train on several workers, start one process without torchrun, with gt.init(workers=N), "
            'and use gt.torch.shard(model, "data") in place of DistributedDataParallel',
            stacklevel=2,
        )

    if "send" in op.name():  # not waited for: two programs may send to each other before they receive
        return run_on_cpu(op, args, kwargs)

    def call(*args: Any, **kwargs: Any) -> Any:
        result = op(*args, **kwargs)
        return tree_map(lambda one: one.wait() and None if _is_work(one) else one, result)

    result = run_on_cpu(op, args, kwargs, call, lambda argument: not argument.name.startswith("input"))
    return tree_map(lambda one: _done(args[0]) if one is None else one, result, is_leaf=_is_none)


def _is_none(one: Any) -> bool:
    return one is None


def _is_work(one: Any) -> bool:
    return isinstance(one, torch.ScriptObject)


def _done(tensors: Any) -> Any:
    """What a collective returns for its caller to wait for, when it is done."""
    from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]

    future = torch.futures.Future()
    future.set_result(tensors)
    return _create_work_from_future(future).boxed()
