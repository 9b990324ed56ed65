"""The client: tensors that a user holds, and the stream of instructions they become.

A tensor knows its id, shape and dtype, never where it lives. Imports `gt.ops` and `gt.transport`, and
`gt.server` only to start one where there is none; no engine is ever imported here.
"""

from gt.autograd.graph import AutogradGraph, no_grad
from gt.client.client import Client
from gt.tensors.tensor import Tensor

__all__ = ["AutogradGraph", "Client", "Tensor", "no_grad"]
