"""GT: PyTorch-like tensors over a purely functional instruction stream.

    import gt

    a = gt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (a * a).sum().backward()
    print(a.grad)

Every operation is one line of a stream that flows client -> dispatcher -> worker; `GT_INSTRUCTION_LOG=FILE`
writes it down. A server starts by itself inside the program. `import gt` imports no engine: torch
loads with the first operation.

This module is the public API, and nothing else.
"""

from gt import debug, errors
from gt.client.autograd import no_grad
from gt.client.creation import arange, from_numpy, full, manual_seed, ones, rand, randn, tensor, zeros
from gt.client.tensor import Tensor

__all__ = [
    "Tensor",
    "arange",
    "debug",
    "errors",
    "from_numpy",
    "full",
    "manual_seed",
    "no_grad",
    "ones",
    "rand",
    "randn",
    "tensor",
    "zeros",
]
