"""Methods that read or write elements by index."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gt.errors import DimensionError, ShapeError
from gt.ops import dtypes, shapes
from gt.tensors import index_keys as keys
from gt.tensors.api import api
from gt.tensors.base import Number, TensorBase, check_number, upload
from gt.tensors.methods.shaping import ShapeMethods

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor


class Sorted(NamedTuple):
    """The result of sort() and topk(), with PyTorch's names."""

    values: "Tensor"
    indices: "Tensor"


class IndexMethods(ShapeMethods):
    """Indexing, gathering, sorting."""

    __slots__ = ()

    # --- x[key] ---

    def __getitem__(self, key: Any) -> "Tensor":
        return keys.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        cast("Tensor", self)._become(keys.put(self, key, self._as_mine(value)))

    def _as_mine(self, value: Any) -> Any:
        """A value in this tensor's dtype, to write into it: a number stays a number."""
        dtype = self._value.spec.dtype
        if isinstance(value, np.generic) and dtypes.find(value.dtype) is not None:
            value = value.item()
        if isinstance(value, bool | int | float):
            whole = bool if dtype == "bool" else float if dtypes.is_float(dtype) else int
            return check_number(whole(value))
        if isinstance(value, np.ndarray):
            value = upload(self._value.client, value)
        if not isinstance(value, TensorBase):
            raise TypeError(f"can't assign a {type(value).__name__} to a {dtype} tensor")
        return cast("Tensor", value).to(dtype)

    def __iter__(self) -> "Iterator[Tensor]":
        if not self._value.spec.shape:
            raise TypeError("iteration over a 0-d tensor")
        return (self[row] for row in range(self._value.spec.shape[0]))

    # --- along one dimension ---

    @api()
    def gather(self, dim: int, index: "Tensor") -> "Tensor":
        """The elements at the indices along a dimension, in the shape of `index`."""
        return self._apply("gather", index, dim=self._dim(dim))

    @api()
    def take_along_dim(self, indices: "Tensor", dim: int | None = None) -> "Tensor":
        """As `gather`; the other dimensions are broadcast. Over the flattened tensor if no dim is given."""
        if dim is None:
            return cast("Tensor", self).ravel().gather(0, indices.ravel())
        dim, mine, theirs = self._dim(dim), self._value.spec.shape, indices.shape
        if len(mine) != len(theirs):
            raise ShapeError(
                f"take_along_dim(): input and indices should have the same number of dimensions, but got "
                f"{len(mine)} dimensions for input, and {len(theirs)} dimensions for indices"
            )
        common = shapes.broadcast(
            mine[:dim] + (1,) + mine[dim + 1 :], theirs[:dim] + (1,) + theirs[dim + 1 :]
        )
        front, back = common[:dim], common[dim + 1 :]
        wide = cast("Tensor", self).expand(front + (mine[dim],) + back)
        return wide.gather(dim, indices.expand(front + (theirs[dim],) + back))

    @api(in_place=True)
    def scatter(
        self, dim: int, index: "Tensor", src: "Tensor | Number | None" = None, *, value: Number | None = None
    ) -> "Tensor":
        """This tensor with `src`'s elements, or one value, at the indices along `dim`."""
        if (src is None) is (value is None):
            raise TypeError("scatter() takes either a tensor, src, or a number, value")
        number = src if value is None else value
        if isinstance(number, bool | int | float):
            return self._apply("scatter", index, dim=self._dim(dim), value=self._as_mine(number))
        return self._apply("scatter", index, cast("Tensor", src), dim=self._dim(dim))

    @api(in_place=True)
    def scatter_add(self, dim: int, index: "Tensor", src: "Tensor") -> "Tensor":
        """As `scatter`, but the elements are added to this tensor's."""
        return self._apply("scatter_add", index, src, dim=self._dim(dim))

    @api()
    def index_select(self, dim: int, index: "Tensor") -> "Tensor":
        """The slices at the indices along a dimension."""
        if index.ndim > 1:
            raise DimensionError("index_select(): Index is supposed to be a vector")
        return self._apply("index", index.reshape(-1), dims=(self._dim(dim),))

    @api(in_place=True)
    def index_add(self, dim: int, index: "Tensor", source: "Tensor", *, alpha: Number = 1) -> "Tensor":
        """This tensor with slices added to those at the indices along a dimension."""
        dim = self._dim(dim)
        if index.ndim != 1 or source.shape[dim : dim + 1] != index.shape:
            raise ShapeError(
                f"index_add_(): Number of indices ({index.numel()}) should be equal to source.size(dim): "
                f"({source.shape[dim] if source.ndim > dim else 1}), for dim: {dim}"
            )
        if source.dtype != self._value.spec.dtype:
            raise ShapeError("index_add_(): self and source expected to have the same dtype")
        source = source if alpha == 1 else source * alpha
        return self._apply("index_put", source, index, dims=(dim,), accumulate=True)

    # --- results whose shape depends on the data, which these wait for ---

    @api()
    def masked_select(self, mask: "Tensor") -> "Tensor":
        """The elements where the mask is true, in one dimension. Waits for the mask."""
        if mask.dtype != "bool":
            raise ShapeError(f"masked_select: expected BoolTensor for mask, but got {mask.dtype}")
        shape = shapes.broadcast(self._value.spec.shape, mask.shape)
        return cast("Tensor", self).expand(shape)[mask.expand(shape)]

    @api()
    def nonzero(self, *, as_tuple: bool = False) -> "Any":
        """The indices of the elements that are not 0. Waits for the data."""
        client = self._value.client
        values = np.asarray(cast("Tensor", self).detach())
        if as_tuple:
            found = np.nonzero(np.atleast_1d(values))
            return tuple(upload(client, np.ascontiguousarray(positions), owned=True) for positions in found)
        return upload(client, np.ascontiguousarray(np.argwhere(values)), owned=True)

    @api()
    def argwhere(self) -> "Tensor":
        """The indices of the elements that are not 0, one in each row. Waits for the data."""
        return self.nonzero()

    @api()
    def unique(
        self,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> "Any":
        """The distinct values, in ascending order. Waits for the data."""
        values = np.asarray(cast("Tensor", self).detach())
        found = np.unique(
            values, return_inverse=return_inverse, return_counts=return_counts, axis=dim, equal_nan=False
        )
        parts = found if isinstance(found, tuple) else (found,)
        tensors = [upload(self._value.client, np.ascontiguousarray(part), owned=True) for part in parts]
        tensors[0] = tensors[0].to(self._value.spec.dtype)
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    # --- sorting ---

    @api()
    def argsort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> "Tensor":
        """The indices that sort the tensor along a dimension. The order of equal elements is kept."""
        return self._apply("argsort", dim=self._dim(dim), descending=descending)

    @api()
    def sort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> Sorted:
        """The elements in order along a dimension, and the index of each."""
        indices = self.argsort(dim, descending)
        return Sorted(self.gather(dim, indices), indices)

    @api()
    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
        """The k largest (or smallest) elements along a dimension, in order, and the index of each."""
        indices = self._apply("topk", k=k, dim=self._dim(dim), largest=largest)
        return Sorted(self.gather(dim, indices), indices)


def as_list(tensors: "Sequence[Tensor]") -> "list[Tensor]":
    """Tensors that a function was given as one argument."""
    given = list(tensors)
    for number, x in enumerate(given):
        if not isinstance(x, TensorBase):
            raise TypeError(f"expected Tensor as element {number} in argument 0, but got {type(x).__name__}")
    return given
