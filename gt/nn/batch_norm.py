"""Batch normalization."""

from gt.autograd.graph import no_grad
from gt.errors import ShapeError
from gt.nn.module import Module, Parameter
from gt.tensors.functions.creation import ones, zeros
from gt.tensors.tensor import Tensor

__all__ = ["BatchNorm1d", "BatchNorm2d"]


class _BatchNorm(Module):
    """Each channel normalized to mean 0 and variance 1 over the batch, then a learned scale and offset.

    Training updates running averages of mean and variance; after eval(), they are used instead of the
    batch's.
    """

    ranks: tuple[int, ...] = ()
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = Parameter(ones(num_features, dtype=dtype)) if affine else None
        self.bias = Parameter(zeros(num_features, dtype=dtype)) if affine else None
        self.batches = 0
        """The number of batches so far, for a plain average (momentum=None): kept on the client."""
        if track_running_stats:
            self.register_buffer("running_mean", zeros(num_features, dtype=dtype))
            self.register_buffer("running_var", ones(num_features, dtype=dtype))
            self.register_buffer("num_batches_tracked", zeros((), dtype="int64"))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        if x.ndim not in self.ranks:
            raise ShapeError(
                f"expected {' or '.join(f'{n}D' for n in self.ranks)} input (got {x.ndim}D input)"
            )
        if x.shape[1] != self.num_features:
            raise ShapeError(
                f"running_mean should contain {x.shape[1]} elements not {self.num_features}: "
                f"the input has shape {list(x.shape)}, and its dimension 1 is that of the channels"
            )
        if self.training or not self.track_running_stats:
            dims = (0, *range(2, x.ndim))
            count = x.numel() // max(self.num_features, 1)
            if self.training and count <= 1:
                raise ValueError(
                    f"Expected more than 1 value per channel when training, got input size {list(x.shape)}"
                )
            mean, var = x.mean(dims), x.var(dims, correction=0)
            if self.training and self.track_running_stats:
                self._update_averages(mean.detach(), var.detach() * (count / (count - 1)))
        else:
            mean, var = self.running_mean, self.running_var
        scale = (var + self.eps).rsqrt()
        if self.weight is not None:
            scale = scale * self.weight
        shape = (1, -1, *(1,) * (x.ndim - 2))
        result = (x - mean.reshape(shape)) * scale.reshape(shape)
        return result if self.bias is None else result + self.bias.reshape(shape)

    def _update_averages(self, mean: Tensor, var: Tensor) -> None:
        self.batches += 1
        share = 1 / self.batches if self.momentum is None else self.momentum
        with no_grad():
            self.running_mean.lerp_(mean, share)
            self.running_var.lerp_(var, share)
            self.num_batches_tracked.add_(1)

    def extra_repr(self) -> str:
        """The settings that are printed."""
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"


class BatchNorm1d(_BatchNorm):
    """Batch normalization of rows (N, C) or signals (N, C, L)."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of images (N, C, H, W)."""

    ranks = (4,)
