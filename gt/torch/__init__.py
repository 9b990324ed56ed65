"""`torch.device("tapestry")`: PyTorch programs over the instruction stream.

    import torch, gt.torch

    model = torch.nn.Linear(4, 2).to("tapestry")
    model(torch.randn(8, 4, device="tapestry")).sum().backward()

PyTorch's own autograd, modules and optimizers run in the program; below autograd every aten op becomes an
instruction. A tensor of the device is a plain `torch.Tensor` whose storage has no memory: see `buffers.py`.
"""

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from gt.torch.device import TapestryModule, patch_accelerator

_module = TapestryModule()
_setup_privateuseone_for_python_backend("tapestry", backend_module=_module)

from gt.torch import (  # noqa: E402 - the device must have its name first
    attention,
    autocast,
    backward,
    collectives,
    compiling,
    custom_ops,
    forward_mode,
    generators,
    linear,
    pinned,
    printing,
    registration,
    scopes,
    set_data,
    storages,
    unsupported,
)

_libraries = [
    *(registration.register(), attention.register(), linear.register()),
    *(one for library in (autocast, collectives, custom_ops, unsupported) for one in library.register()),
]
set_data.move_by_data()
backward.patch_backward()
scopes.patch_modules_and_optimizers()
storages.patch_storages()
compiling.patch_compile()
generators.patch_generator()
forward_mode.patch_forward_mode()
printing.patch_printing()
if not torch.cuda.is_available():
    patch_accelerator(_module)
    pinned.patch_pinned_memory()

from gt.torch.shard import shard  # noqa: E402 - the kernels must be registered first

__all__ = ["shard"]
