"""Matrix products."""

from typing import TYPE_CHECKING, Any, cast

from gt.errors import ShapeError
from gt.tensors.api import api
from gt.tensors.base import Number
from gt.tensors.generated.methods import GeneratedMethods

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor


class ProductMethods(GeneratedMethods):
    """Matrix products."""

    __slots__ = ()

    def __matmul__(self, other: Any) -> "Tensor":
        return NotImplemented if isinstance(other, Number) else self._binary_op("matmul", other)

    def __rmatmul__(self, other: Any) -> "Tensor":
        return (
            NotImplemented if isinstance(other, Number) else self._binary_op("matmul", other, reflected=True)
        )

    @api()
    def matmul(self, other: "Tensor") -> "Tensor":
        """The matrix product, also written `a @ b`."""
        return self @ other

    @api()
    def mm(self, mat2: "Tensor") -> "Tensor":
        """The product of two matrices."""
        for name, x in (("self", self), ("mat2", mat2)):
            if len(x._value.spec.shape) != 2:
                raise ShapeError(f"{name} must be a matrix")
        return self @ mat2

    @api()
    def bmm(self, mat2: "Tensor") -> "Tensor":
        """The products of two batches of matrices."""
        a, b = self._value.spec.shape, mat2.shape
        for number, shape in enumerate((a, b), 1):
            if len(shape) != 3:
                raise ShapeError(f"batch{number} must be a 3D tensor")
        if b[:2] != (a[0], a[2]):
            raise ShapeError(
                f"Expected size for first two dimensions of batch2 tensor to be: {[a[0], a[2]]} but got: "
                f"{list(b[:2])}."
            )
        return self @ mat2

    @api()
    def mv(self, vec: "Tensor") -> "Tensor":
        """The product of a matrix and a vector."""
        ranks = len(self._value.spec.shape), vec.ndim
        if ranks != (2, 1):
            raise ShapeError(f"vector + matrix @ vector expected, got {ranks[1]}, {ranks[0]}, {ranks[1]}")
        return self @ vec

    @api()
    def dot(self, tensor: "Tensor") -> "Tensor":
        """The inner product of two vectors."""
        ranks = len(self._value.spec.shape), tensor.ndim
        if ranks != (1, 1):
            raise ShapeError(f"1D tensors expected, but got {ranks[0]}D and {ranks[1]}D tensors")
        return self @ tensor

    @api()
    def outer(self, vec2: "Tensor") -> "Tensor":
        """The matrix of all products of two vectors' elements."""
        for name, x in (("self", self), ("vec2", vec2)):
            rank = len(x._value.spec.shape)
            if rank != 1:
                raise ShapeError(f"outer: Expected 1-D argument {name}, but got {rank}-D")
        return cast("Tensor", self).unsqueeze(1) * vec2

    @api(in_place=True)
    def addmm(self, mat1: "Tensor", mat2: "Tensor", *, beta: Number = 1, alpha: Number = 1) -> "Tensor":
        """`beta * self + alpha * (mat1 @ mat2)`."""
        return self._plus(mat1.mm(mat2), beta, alpha)

    @api(in_place=True)
    def addmv(self, mat: "Tensor", vec: "Tensor", *, beta: Number = 1, alpha: Number = 1) -> "Tensor":
        """`beta * self + alpha * (mat @ vec)`."""
        return self._plus(mat.mv(vec), beta, alpha)

    @api(in_place=True)
    def baddbmm(self, batch1: "Tensor", batch2: "Tensor", *, beta: Number = 1, alpha: Number = 1) -> "Tensor":
        """`beta * self + alpha * (batch1 @ batch2)`, for batches of matrices."""
        return self._plus(batch1.bmm(batch2), beta, alpha)

    def _plus(self, product: "Tensor", beta: Number, alpha: Number) -> "Tensor":
        this = cast("Tensor", self).expand(product.shape)
        return (this if beta == 1 else this * beta) + (product if alpha == 1 else product * alpha)
