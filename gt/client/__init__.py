"""The client: issues the instructions of one program, sends them in batches, and reads data back.

`client` is independent of how a server is reached (`link`); `connection` reaches one over a socket; `session`
chooses or starts the server that the program uses; `signals` give tensors layouts. No engine is ever imported
here.
"""

from gt.autograd.graph import AutogradGraph, no_grad
from gt.client.client import Client
from gt.tensors.tensor import Tensor

__all__ = ["AutogradGraph", "Client", "Tensor", "no_grad"]
