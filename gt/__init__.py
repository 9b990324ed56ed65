"""GT: PyTorch-like tensors over a purely functional instruction stream.

    import gt

    a = gt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (a * a).sum().backward()
    print(a.grad)

Every operation is one instruction of a stream from the client over the dispatcher to a worker;
`GT_INSTRUCTION_LOG=FILE` writes all instructions to a file. By default, the program starts a server inside
itself. `import gt` imports no engine: torch loads with the first operation, and `gt.nn` and `gt.optim` when
they are first named.

This module is the public API, and nothing else.
"""

from typing import TYPE_CHECKING

from gt import debug, errors
from gt.autograd import gradients as autograd
from gt.autograd.graph import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from gt.client.session import close, connect, init
from gt.ops import Size
from gt.ops.dtypes import NAMED
from gt.tensors.device import Device as device
from gt.tensors.functions.convolution import *
from gt.tensors.functions.creation import *
from gt.tensors.functions.dtypes import *
from gt.tensors.functions.elementwise import *
from gt.tensors.functions.exchange import *
from gt.tensors.functions.normalization import *
from gt.tensors.functions.products import *
from gt.tensors.functions.random_numbers import *
from gt.tensors.functions.reductions import *
from gt.tensors.functions.shaping import *
from gt.tensors.generated.functions import *
from gt.tensors.random import manual_seed
from gt.tensors.tensor import Tensor

bool = NAMED["bool"]
uint8 = NAMED["uint8"]
int8 = NAMED["int8"]
int16 = short = NAMED["int16"]
int32 = int = NAMED["int32"]
int64 = long = NAMED["int64"]
float16 = half = NAMED["float16"]
bfloat16 = NAMED["bfloat16"]
float32 = float = NAMED["float32"]
float64 = double = NAMED["float64"]

if TYPE_CHECKING:
    from gt import nn, optim
    from gt.client import signals as signal
    from gt.client.signals import load_config
    from gt.nn.files import load, save

_ON_FIRST_USE = {
    "nn": "gt.nn",
    "optim": "gt.optim",
    "load": "gt.nn.files",
    "save": "gt.nn.files",
    "load_config": "gt.client.signals",
    "signal": "gt.client.signals",
}

_MODULES = ("nn", "optim", "signal")
"""The names in `_ON_FIRST_USE` that are modules, not attributes of one."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    module = _ON_FIRST_USE.get(name)
    if module is None:
        from gt.tensors.api import FUNCTIONS

        if name in FUNCTIONS:  # of an op that was registered after gt was imported
            return getattr(import_module("gt.tensors.generated.functions"), name)
        raise AttributeError(f"module 'gt' has no attribute {name!r}")
    loaded = import_module(module)
    found = globals()[name] = loaded if name in _MODULES else getattr(loaded, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_FIRST_USE})
