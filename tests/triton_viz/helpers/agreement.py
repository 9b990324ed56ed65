"""A library's op against plain PyTorch: the same inputs, outputs and gradients side by side."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import triton_viz

CLIENTS: tuple[str, ...] = ()
"""The clients that watch the library's kernels."""

TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 4e-2}


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An input whose gradient is compared, too."""
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return values.to(dtype).requires_grad_()


def ints(high: int, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


def watched() -> Any:
    """While inside, the library's kernels run on a CPU, watched by `CLIENTS`."""
    return triton_viz.trace(CLIENTS)


def agree(
    op: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: Any,
    tolerance: float | None = None,
) -> None:
    """Outputs and input gradients of an op that launches kernels are those of a reference that does not.

    The reference computes in float32: an op in bfloat16 may round once, at any point.
    """
    with watched():
        got = _outputs_and_gradients(op, inputs, lambda x: x)
    expected = _outputs_and_gradients(reference, inputs, torch.Tensor.float)
    assert len(got) == len(expected)
    dtypes = [x.dtype for x in inputs if isinstance(x, torch.Tensor) and x.is_floating_point()]
    tolerance = tolerance or max(TOLERANCE[dtype] for dtype in dtypes)
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine.float(), theirs.float(), rtol=tolerance, atol=tolerance)


def _outputs_and_gradients(
    op: Callable[..., Any], inputs: tuple[Any, ...], cast: Callable[[torch.Tensor], torch.Tensor]
) -> list[torch.Tensor]:
    # Kernels may write to their inputs, so each side has its own copy.
    fresh = [_fresh(x, cast) if isinstance(x, torch.Tensor) else x for x in inputs]
    result = op(*fresh)
    outputs = [out for out in (result if isinstance(result, tuple) else (result,)) if out is not None]
    graph = [out for out in outputs if out.requires_grad]
    values = [out.detach().clone() for out in outputs]
    # Not ones: several ops skip a kernel if the incoming gradient is one.
    torch.autograd.backward(graph, [randn(*out.shape, seed=99).detach().to(out.dtype) for out in graph])
    leaves = [x for x in fresh if isinstance(x, torch.Tensor) and x.requires_grad]
    gradients = [x.grad for x in leaves]
    assert all(grad is not None for grad in gradients)
    return values + [grad for grad in gradients if grad is not None]


def _fresh(x: torch.Tensor, cast: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    copy = x.detach().clone()
    return (cast(copy) if x.is_floating_point() else copy).requires_grad_(x.requires_grad)


def rms(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def sparsemax(x: torch.Tensor) -> torch.Tensor:
    """The projection of each row onto the probability simplex."""
    ordered = x.sort(-1, descending=True).values
    sums = ordered.cumsum(-1) - 1
    counts = torch.arange(1, x.shape[-1] + 1)
    support = (ordered * counts > sums).sum(-1, keepdim=True)
    threshold = sums.gather(-1, support - 1) / support
    return F.relu(x - threshold)
