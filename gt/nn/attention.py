"""Attention over several heads at once."""

import math

from gt.errors import ShapeError
from gt.nn import functional, init
from gt.nn.layers import Linear
from gt.nn.module import Module, Parameter
from gt.tensors.functions.creation import zeros
from gt.tensors.tensor import Tensor


class MultiheadAttention(Module):
    """Multi-head attention, with PyTorch's layer and parameter names.

    As in PyTorch, the first dimension is the sequence and the second the batch unless `batch_first`, a
    boolean mask is true where attention is *not* allowed, and the result is a pair: the output, and the
    weights or None. Other sizes for keys and values (kdim, vdim) are not supported.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        batch_first: bool = False,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first = dropout, batch_first
        self.in_proj_weight = Parameter(zeros(3 * embed_dim, embed_dim, dtype=dtype))
        self.in_proj_bias = Parameter(zeros(3 * embed_dim, dtype=dtype)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        init.xavier_uniform_(self.in_proj_weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output, and the attention weights (averaged over the heads)."""
        if query.shape[-1] != self.embed_dim:
            raise ShapeError(
                f"was expecting embedding dimension of {self.embed_dim}, but got {query.shape[-1]}"
            )
        if query.ndim not in (2, 3):
            raise ShapeError(f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D")
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        batched = query.ndim == 3
        q, k, v = self._projected(query, key, value)
        if batched and not self.batch_first:
            q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        # (batch, length, heads * size) -> (batch, heads, length, size)
        q, k, v = (self._split(x) for x in (q, k, v))
        mask = self._mask(attn_mask, key_padding_mask, batched)
        rate = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = (q * self.head_dim**-0.5) @ k.transpose(-2, -1)
            if mask is not None:
                scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == "bool" else scores + mask
            weights = functional.dropout(functional.softmax(scores, -1), rate)
            out = weights @ v
        else:
            out = functional.scaled_dot_product_attention(q, k, v, mask, rate)
        out = out.transpose(-3, -2).flatten(-2)
        if batched and not self.batch_first:
            out = out.transpose(0, 1)
        if weights is not None and average_attn_weights:
            weights = weights.mean(-3)
        return self.out_proj(out), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        if query is key and key is value:  # the usual case: one product instead of three
            out = functional.linear(query, self.in_proj_weight, self.in_proj_bias)
            return list(out.chunk(3, -1))
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        inputs = (query, key, value)
        return [functional.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(-3, -2)

    def _mask(self, mask: Tensor | None, padding: Tensor | None, batched: bool) -> Tensor | None:
        """Both masks in one: true where attention is allowed, or numbers that are added to the scores."""
        if mask is not None:
            mask = ~mask if mask.dtype == "bool" else mask
            if batched and mask.ndim == 3:  # one for each head
                mask = mask.unflatten(0, (-1, self.num_heads))
        if padding is None:
            return mask
        # One row for all queries and heads.
        padding = ~padding if padding.dtype == "bool" else padding
        padding = padding.unflatten(0, (-1, 1, 1)) if batched else padding
        if mask is None or mask.dtype == padding.dtype == "bool":
            return padding if mask is None else mask & padding
        return _added(mask) + _added(padding)

    def extra_repr(self) -> str:
        """The sizes that are printed."""
        return f"{self.embed_dim}, {self.num_heads}, batch_first={self.batch_first}"


def _added(mask: Tensor) -> Tensor:
    """A mask to add to scores."""
    return zeros(mask.shape).masked_fill(~mask, -math.inf) if mask.dtype == "bool" else mask
