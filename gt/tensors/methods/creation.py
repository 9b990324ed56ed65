"""Methods that create a tensor with this one's dtype."""

from typing import TYPE_CHECKING, Any

from gt.tensors.api import api
from gt.tensors.base import Number, apply, check_dtype, check_number, create
from gt.tensors.generated.methods import GeneratedMethods
from gt.tensors.methods.shaping import Size, as_shape

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor


class CreationMethods(GeneratedMethods):
    """New tensors of this one's dtype, on its server."""

    __slots__ = ()

    def new_full(
        self,
        size: Size,
        fill_value: Number,
        *,
        dtype: Any = None,
        device: Any = None,
        pin_memory: bool | None = False,
        requires_grad: bool = False,
    ) -> "Tensor":
        """A tensor filled with one value."""
        value, shape = check_number(fill_value), as_shape((size,))
        name = self._value.spec.dtype if dtype is None else check_dtype(dtype)
        return create(self._value.client, "full", requires_grad, shape=shape, value=value, dtype=name)

    def new_zeros(
        self,
        *sizes: Size,
        size: Size | None = None,
        dtype: Any = None,
        device: Any = None,
        pin_memory: bool | None = False,
        requires_grad: bool = False,
    ) -> "Tensor":
        """A tensor of zeros."""
        return self.new_full(as_shape(sizes, size), 0, dtype=dtype, requires_grad=requires_grad)

    def new_ones(
        self,
        *sizes: Size,
        size: Size | None = None,
        dtype: Any = None,
        device: Any = None,
        pin_memory: bool | None = False,
        requires_grad: bool = False,
    ) -> "Tensor":
        """A tensor of ones."""
        return self.new_full(as_shape(sizes, size), 1, dtype=dtype, requires_grad=requires_grad)

    new_empty = new_zeros

    @api()
    def clone(self) -> "Tensor":
        """A tensor of the same value, through which gradients flow back to this one."""
        # A tensor's value never changes, so it need not be copied; the reshape only makes a
        # new node for autograd.
        return apply("reshape", (self,), {"shape": self._value.spec.shape})
