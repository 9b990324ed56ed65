"""GT: PyTorch-like tensors over a purely functional instruction stream.

    import gt

    a = gt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (a * a).sum().backward()
    print(a.grad)

Every operation is one line of a stream that flows client -> dispatcher -> worker; `GT_INSTRUCTION_LOG=FILE`
writes it down. A server starts by itself inside the program. `import gt` imports no engine: torch
loads with the first operation, and `gt.nn` and `gt.optim` when they are first named.

This module is the public API, and nothing else.
"""

from typing import TYPE_CHECKING

from gt import autograd, debug, errors
from gt.client.autograd import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from gt.client.device import Device as device
from gt.client.functions.activations import *
from gt.client.functions.convolution import *
from gt.client.functions.creation import *
from gt.client.functions.dtypes import *
from gt.client.functions.elementwise import *
from gt.client.functions.exchange import *
from gt.client.functions.indexing import *
from gt.client.functions.logic import *
from gt.client.functions.normalization import *
from gt.client.functions.products import *
from gt.client.functions.reductions import *
from gt.client.functions.shaping import *
from gt.client.random import manual_seed
from gt.client.session import close, connect, init
from gt.client.tensor import Tensor
from gt.ops import Size
from gt.ops.dtypes import NAMED

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
    from gt.client.modules.files import load, save
    from gt.client.signals import load_config

_ON_FIRST_USE = {
    "nn": "gt.nn",
    "optim": "gt.optim",
    "load": "gt.client.modules.files",
    "save": "gt.client.modules.files",
    "load_config": "gt.client.signals",
    "signal": "gt.client.signals",
}

_MODULES = ("nn", "optim", "signal")
"""Of these, the modules themselves."""


def __getattr__(name: str) -> object:
    module = _ON_FIRST_USE.get(name)
    if module is None:
        raise AttributeError(f"module 'gt' has no attribute {name!r}")
    from importlib import import_module

    loaded = import_module(module)
    found = globals()[name] = loaded if name in _MODULES else getattr(loaded, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_FIRST_USE})
