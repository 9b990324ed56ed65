"""`torch.device("tapestry")`: PyTorch programs over the instruction stream.

    import torch, gt.torch

    model = torch.nn.Linear(4, 2).to("tapestry")
    model(torch.randn(8, 4, device="tapestry")).sum().backward()

PyTorch's own autograd, modules and optimizers run in the program; below autograd every aten op becomes an
instruction. A tensor of the device is a plain `torch.Tensor` whose storage has no memory: see `buffers.py`.
"""

from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from gt.torch.device import TapestryModule

_setup_privateuseone_for_python_backend("tapestry", backend_module=TapestryModule())

from gt.torch import autocast, backward, modules, registration, storages  # noqa: E402 - the device must have its name first

_libraries = [registration.register(), *autocast.register()]
modules.keep_ties()
backward.stay_in_thread()
storages.without_memory()
