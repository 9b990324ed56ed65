"""Normalization."""

from collections.abc import Sequence

from gt.errors import ShapeError
from gt.ops import dtypes
from gt.tensors.numpy_names import with_numpy_names
from gt.tensors.tensor import Tensor

__all__ = ["layer_norm", "rms_norm"]


@with_numpy_names
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last dimensions with mean 0 and deviation 1, then times weight, plus bias."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    affine = () if weight is None else (weight,) if bias is None else (weight, bias)
    result = input._apply("layer_norm", *affine, normalized_shape=shape, eps=eps)
    return result + bias if weight is None and bias is not None else result


@with_numpy_names
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The last dimensions divided by the root of their mean square, then times weight."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ShapeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
        )
    eps = 2.0 ** (1 - dtypes.PRECISION[input.dtype]) if eps is None else eps
    square = (input * input).mean(dim=tuple(range(-len(shape), 0)), keepdim=True)
    result = input / (square + eps).sqrt()
    return result if weight is None else result * weight
