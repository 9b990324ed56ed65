"""`gt.autograd`, under the path that the specification names."""

from gt.autograd.graph import AutogradGraph, TapeNode, enable_grad, is_grad_enabled, no_grad, set_grad_enabled

__all__ = ["AutogradGraph", "TapeNode", "enable_grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]
