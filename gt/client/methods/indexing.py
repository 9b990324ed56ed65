"""Methods that pick elements, and that put them back."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gt.client import keys
from gt.client.base import Number, TensorBase, check_number, upload
from gt.errors import DimensionError, ShapeError
from gt.ops import dtypes, shapes

if TYPE_CHECKING:
    from gt.client.tensor import Tensor


class Sorted(NamedTuple):
    """What sort() and topk() return, by the names that PyTorch gives it."""

    values: "Tensor"
    indices: "Tensor"


class IndexMethods(TensorBase):
    """Indexing, gathering, sorting."""

    __slots__ = ()

    def _at_dim(self, dim: int) -> int:
        return shapes.normalize_dim(dim, len(self._value.spec.shape))

    # --- x[key] ---

    def __getitem__(self, key: Any) -> "Tensor":
        return keys.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        cast("Tensor", self)._become(keys.put(self, key, self._as_mine(value)))

    def _as_mine(self, value: Any) -> Any:
        """A value in this tensor's dtype, to be put into it: a number stays a number."""
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

    def __contains__(self, value: Any) -> bool:
        """Whether an element has this value. Waits for the answer."""
        return cast("Tensor", self == value).sum().item() > 0

    # --- along one dimension ---

    def gather(self, dim: int, index: "Tensor") -> "Tensor":
        """For each position of `index`, the element that it names along a dimension."""
        return self._apply("gather", index, dim=self._at_dim(dim))

    def take_along_dim(self, indices: "Tensor", dim: int | None = None) -> "Tensor":
        """As `gather`; the other dimensions stretch to each other. Over all elements if no dim is given."""
        if dim is None:
            return cast("Tensor", self).ravel().gather(0, indices.ravel())
        dim, mine, theirs = self._at_dim(dim), self._value.spec.shape, indices.shape
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

    def scatter(self, dim: int, index: "Tensor", src: "Tensor | Number") -> "Tensor":
        """This tensor with `src`'s elements, each at the place that `index` names along a dimension."""
        if isinstance(src, bool | int | float):
            return self._apply("scatter", index, dim=self._at_dim(dim), value=self._as_mine(src))
        return self._apply("scatter", index, src, dim=self._at_dim(dim))

    def scatter_(self, dim: int, index: "Tensor", src: "Tensor | Number") -> "Tensor":
        """As `scatter`, in place."""
        return cast("Tensor", self)._become(self.scatter(dim, index, src))

    def scatter_add(self, dim: int, index: "Tensor", src: "Tensor") -> "Tensor":
        """As `scatter`, but the elements are added to what is there."""
        return self._apply("scatter_add", index, src, dim=self._at_dim(dim))

    def scatter_add_(self, dim: int, index: "Tensor", src: "Tensor") -> "Tensor":
        """As `scatter_add`, in place."""
        return cast("Tensor", self)._become(self.scatter_add(dim, index, src))

    def index_select(self, dim: int, index: "Tensor") -> "Tensor":
        """The slices along a dimension that `index` names."""
        if index.ndim > 1:
            raise DimensionError("index_select(): Index is supposed to be a vector")
        return self._apply("index", index.reshape(-1), dims=(self._at_dim(dim),))

    def index_add(self, dim: int, index: "Tensor", source: "Tensor", *, alpha: Number = 1) -> "Tensor":
        """This tensor with slices added to it, each at the place along a dimension that `index` names."""
        dim = self._at_dim(dim)
        if index.ndim != 1 or source.shape[dim : dim + 1] != index.shape:
            raise ShapeError(
                f"index_add_(): Number of indices ({index.numel()}) should be equal to source.size(dim): "
                f"({source.shape[dim] if source.ndim > dim else 1}), for dim: {dim}"
            )
        if source.dtype != self._value.spec.dtype:
            raise ShapeError("index_add_(): self and source expected to have the same dtype")
        source = source if alpha == 1 else source * alpha
        return self._apply("index_put", source, index, dims=(dim,), accumulate=True)

    def index_add_(self, dim: int, index: "Tensor", source: "Tensor", *, alpha: Number = 1) -> "Tensor":
        """As `index_add`, in place."""
        return cast("Tensor", self)._become(self.index_add(dim, index, source, alpha=alpha))

    # --- by value: how many elements there will be depends on the data, so these wait for it ---

    def masked_select(self, mask: "Tensor") -> "Tensor":
        """The elements where the mask is true, in one dimension. Waits for the mask."""
        if mask.dtype != "bool":
            raise ShapeError(f"masked_select: expected BoolTensor for mask, but got {mask.dtype}")
        shape = shapes.broadcast(self._value.spec.shape, mask.shape)
        return cast("Tensor", self).expand(shape)[mask.expand(shape)]

    def nonzero(self, *, as_tuple: bool = False) -> "Any":
        """Where the elements are that are not zero. Waits for them."""
        client = self._value.client
        values = np.asarray(cast("Tensor", self).detach())
        if as_tuple:
            found = np.nonzero(np.atleast_1d(values))
            return tuple(upload(client, np.ascontiguousarray(positions), owned=True) for positions in found)
        return upload(client, np.ascontiguousarray(np.argwhere(values)), owned=True)

    def argwhere(self) -> "Tensor":
        """Where the elements are that are not zero, one to a row. Waits for them."""
        return self.nonzero()

    def unique(
        self,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> "Any":
        """The values that occur, in ascending order. Waits for them."""
        values = np.asarray(cast("Tensor", self).detach())
        found = np.unique(
            values, return_inverse=return_inverse, return_counts=return_counts, axis=dim, equal_nan=False
        )
        parts = found if isinstance(found, tuple) else (found,)
        tensors = [upload(self._value.client, np.ascontiguousarray(part), owned=True) for part in parts]
        tensors[0] = tensors[0].to(self._value.spec.dtype)
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    # --- in order ---

    def argsort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> "Tensor":
        """Where each element of the sorted tensor comes from. Equal elements always stay in order."""
        return self._apply("argsort", dim=self._at_dim(dim), descending=descending)

    def sort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> Sorted:
        """The elements in order along a dimension, and where each comes from."""
        indices = self.argsort(dim, descending)
        return Sorted(self.gather(dim, indices), indices)

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
        """The k largest (or smallest) elements along a dimension, in order, and where each comes from."""
        indices = self._apply("topk", k=k, dim=self._at_dim(dim), largest=largest)
        return Sorted(self.gather(dim, indices), indices)


def as_list(tensors: "Sequence[Tensor]") -> "list[Tensor]":
    """Tensors that a function was given as one argument."""
    given = list(tensors)
    for number, x in enumerate(given):
        if not isinstance(x, TensorBase):
            raise TypeError(f"expected Tensor as element {number} in argument 0, but got {type(x).__name__}")
    return given
