"""Methods that multiply and add up."""

from typing import TYPE_CHECKING, Any

from gt.client.base import Number, TensorBase

if TYPE_CHECKING:
    from gt.client.tensor import Tensor


class ProductMethods(TensorBase):
    """Matrix products."""

    __slots__ = ()

    def __matmul__(self, other: Any) -> "Tensor":
        return NotImplemented if isinstance(other, Number) else self._binary_op("matmul", other)

    def __rmatmul__(self, other: Any) -> "Tensor":
        return (
            NotImplemented if isinstance(other, Number) else self._binary_op("matmul", other, reflected=True)
        )

    def matmul(self, other: "Tensor") -> "Tensor":
        """The matrix product, also written `a @ b`."""
        return self @ other
