"""Reductions and scans with arguments of their own, and the conventions of the others."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gt.errors import ArgumentError, DTypeError, ShapeError
from gt.ops import dtypes, shapes
from gt.tensors.api import api
from gt.tensors.base import Number, TensorBase, check_dtype
from gt.tensors.methods.casts import CastMethods

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor

Dims = int | Sequence[int] | None


class Extremes(NamedTuple):
    """The result of max(dim) and min(dim): values and their indices."""

    values: "Tensor"
    indices: "Tensor"


class ReductionMethods(CastMethods):
    """Reductions over some dimensions or all."""

    __slots__ = ()

    # --- any number of dimensions ---

    @api()
    def mean(self, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> "Tensor":
        """The mean over some dimensions, or over all."""
        if dtype is not None and not dtypes.is_float(check_dtype(dtype)):
            raise DTypeError(
                "mean(): could not infer output dtype. Optional dtype must be a floating point dtype. "
                f"Got: {check_dtype(dtype)}"
            )
        return self._reduce("mean", dim, keepdim, dtype)

    @api()
    def aminmax(self, *, dim: int | None = None, keepdim: bool = False) -> "tuple[Tensor, Tensor]":
        """The smallest and the largest element."""
        return self.amin(dim, keepdim), self.amax(dim, keepdim)

    @api()
    def count_nonzero(self, dim: Dims = None) -> "Tensor":
        """The number of elements that are not 0."""
        return self._binary_op("ne", 0).sum(dim)

    @api()
    def var(
        self,
        dim: Dims | bool = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Number | None = None,
    ) -> "Tensor":
        """The variance. It divides by the number of elements less the correction, which is 1."""
        return self._spread("var", dim, unbiased, keepdim, correction)

    @api()
    def std(
        self,
        dim: Dims | bool = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Number | None = None,
    ) -> "Tensor":
        """The standard deviation: the square root of the variance."""
        return self._spread("std", dim, unbiased, keepdim, correction)

    @api()
    def norm(self, p: Any = 2, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> "Tensor":
        """The p-norm of the elements: the Euclidean norm for 2, the largest absolute value for infinity."""
        p = {"fro": 2, "inf": math.inf, "-inf": -math.inf}.get(p, p) if isinstance(p, str) else p
        if not isinstance(p, Number):
            raise ArgumentError(f"linalg.vector_norm: a norm of order {p!r} is not supported")
        return self._reduce("norm", dim, keepdim, dtype, p=p)

    # --- one dimension, or all ---

    @api()
    def max(self, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        """The largest element; with its index along a dimension; or the larger elements of two tensors."""
        return self._extreme("max", dim, keepdim, other)

    @api()
    def min(self, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        """The smallest element; with its index along a dimension; or the smaller elements of two tensors."""
        return self._extreme("min", dim, keepdim, other)

    # --- the conventions ---

    def _dims(self, dim: Any) -> tuple[int, ...] | None:
        if dim is None or dim == () or dim == []:
            return None
        rank = len(self._value.spec.shape)
        dims = (dim,) if isinstance(dim, int) else dim
        normal = tuple(shapes.normalize_dim(d, rank) for d in dims)
        if len(set(normal)) != len(normal):
            raise ShapeError(f"a dimension appears more than once in dim={dim}")
        # PyTorch accepts dimension 0 of a tensor without dimensions, which has none to reduce.
        return normal if rank else None

    def _reduce(self, op: str, dim: Any, keepdim: bool, dtype: Any = None, **more: Any) -> "Tensor":
        x = self if dtype is None else self._cast(dtype)
        return _as_dtype(x._apply(op, dim=self._dims(dim), keepdim=keepdim, **more), dtype)

    def _one_dim(self, op: str, dim: Any) -> int | None:
        if dim is None:
            return None
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise TypeError(f"{op}(): argument 'dim' must be int, not {type(dim).__name__}")
        rank = len(self._value.spec.shape)
        normal = shapes.normalize_dim(dim, rank)
        return normal if rank else None

    def _reduce_one(self, op: str, dim: Any, keepdim: bool, dtype: Any = None) -> "Tensor":
        x = self if dtype is None else self._cast(dtype)
        return _as_dtype(x._apply(op, dim=self._one_dim(op, dim), keepdim=keepdim), dtype)

    def _spread(
        self, op: str, dim: Any, unbiased: bool, keepdim: bool, correction: Number | None
    ) -> "Tensor":
        if isinstance(dim, bool):  # x.var(False) is the old form of unbiased=False
            dim, unbiased = None, dim
        by = int(unbiased) if correction is None else correction
        return self._reduce(op, dim, keepdim, correction=by)

    def _scan(self, op: str, dim: Any, dtype: Any, **more: Any) -> "Tensor":
        if dim is None:
            raise TypeError(f'{op}() missing 1 required positional arguments: "dim"')
        x = self if dtype is None else self._cast(dtype)
        return _as_dtype(x._apply(op, dim=self._one_dim(op, dim) or 0, **more), dtype)

    def _extreme(self, name: str, dim: Any, keepdim: bool, other: Any) -> Any:
        if isinstance(dim, TensorBase):
            dim, other = None, dim
        if other is not None:
            if not isinstance(other, TensorBase):
                raise TypeError(f"{name}(): argument 'other' must be Tensor, not {type(other).__name__}")
            return self._binary_op(f"{name}imum", other)
        if dim is None:
            return self._apply(f"a{name}", dim=None, keepdim=False)
        index_of = self._cast("uint8") if self._value.spec.dtype == "bool" else self
        one = self._one_dim(name, dim)
        indices = index_of._apply(f"arg{name}", dim=one, keepdim=keepdim)
        if one is None:  # of a number: itself
            return Extremes(self._apply("reshape", shape=()), indices)
        return Extremes(self._apply("take_along", indices, dim=one), indices)


def _as_dtype(result: "Tensor", dtype: Any) -> "Tensor":
    """A result in the dtype that was asked for. Integers are added up and multiplied in 64 bits."""
    return result if dtype is None else result._cast(dtype)
