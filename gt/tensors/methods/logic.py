"""Comparisons with arguments of their own, and selection by a condition."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gt.errors import DTypeError, ShapeError
from gt.ops import dtypes
from gt.tensors.api import api
from gt.tensors.base import Number, TensorBase, apply, check_number, upload
from gt.tensors.generated.methods import GeneratedMethods
from gt.tensors.numpy_names import with_numpy_names

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor


class LogicMethods(GeneratedMethods):
    """Comparisons, and selection by a condition."""

    __slots__ = ()

    __hash__ = object.__hash__

    def __invert__(self) -> "Tensor":
        if dtypes.is_float(self._value.spec.dtype):
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
        return self._unary_op("invert")

    def __contains__(self, element: Any) -> bool:
        """Whether an element has this value. Waits for the result."""
        return bool((self == element)._apply("any", dim=None, keepdim=False).item())

    def where(self, condition: "Tensor", other: Any) -> "Tensor":
        """This tensor's elements where the condition is true, and the other's elsewhere."""
        return where(condition, self, other)

    @api(in_place=True)
    def masked_fill(self, mask: "Tensor", value: Any) -> "Tensor":
        """This tensor with another value where the mask is true."""
        spec = self._value.spec
        if isinstance(value, TensorBase):
            if value._value.spec.shape:
                raise ShapeError(
                    "masked_fill only supports a 0-dimensional value tensor, but got tensor with "
                    f"{len(value._value.spec.shape)} dimension(s)."
                )
            return where(mask, apply("cast", (value,), {"dtype": spec.dtype}), self)
        if not isinstance(value, Number):
            raise TypeError(f"masked_fill(): argument 'value' must be Number, not {type(value).__name__}")
        return self._apply("masked_fill", mask, value=check_number(value))

    @api()
    def isclose(
        self, other: "Tensor", rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> "Tensor":
        """Whether each element differs from the other's by at most `atol + rtol * abs(other)`."""
        mine, theirs = self._value.spec.dtype, other._value.spec.dtype
        if mine != theirs:
            raise DTypeError(f"{dtypes.TITLE[mine]} did not match {dtypes.TITLE[theirs]}")
        same = self == other
        if not dtypes.is_float(mine):
            return same if not (rtol or atol) else same | _near(self, other, rtol, atol)
        if equal_nan:
            same = same | (self.isnan() & other.isnan())
        return same | (_near(self, other, rtol, atol) & self.isfinite() & other.isfinite())

    @api()
    def allclose(
        self, other: "Tensor", rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> bool:
        """Whether all elements are close to the other's. Waits for the result."""
        return bool(self.isclose(other, rtol, atol, equal_nan)._apply("all", dim=None, keepdim=False).item())

    @api()
    def equal(self, other: "Tensor") -> bool:
        """Whether shapes and all elements are equal. Waits for the result."""
        if self._value.spec.shape != other._value.spec.shape:
            return False
        return bool((self == other)._apply("all", dim=None, keepdim=False).item())

    # --- calling conventions of named methods ---

    def _with(self, op: str, other: Any) -> "Tensor":
        """As the operator, but raises TypeError unless the operand is a tensor, a number or an array."""
        result = self._binary_op(op, other)
        if result is NotImplemented:
            raise TypeError(f"{op}(): argument 'other' must be Tensor or Number, not {type(other).__name__}")
        return result

    def _with_tensor(self, op: str, other: Any) -> "Tensor":
        """An op that PyTorch only allows between tensors."""
        if isinstance(other, np.ndarray):
            other = upload(self._value.client, other)
        if not isinstance(other, TensorBase):
            raise TypeError(f"{op}(): argument 'other' must be Tensor, not {type(other).__name__}")
        return self._binary_op(op, other)


def _near(a: Any, b: Any, rtol: float, atol: float) -> Any:
    return (a - b).abs() <= atol + (b * rtol).abs()


@with_numpy_names
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Elements of `input` where the condition is true, and of `other` elsewhere. Either may be a number.

    Without them: the indices at which the condition is true, one tensor for each dimension. Waits for these.
    """
    if input is None and other is None and isinstance(condition, TensorBase):
        return cast("Tensor", condition).nonzero(as_tuple=True)
    if not isinstance(condition, TensorBase):
        raise TypeError(f"where(): argument 'condition' must be Tensor, not {type(condition).__name__}")
    tensors: list[TensorBase] = [condition]
    numbers: dict[str, Any] = {"input": None, "other": None}
    for name, value in (("input", input), ("other", other)):
        if isinstance(value, TensorBase):
            tensors.append(value)
        elif isinstance(value, np.ndarray | np.generic) and not isinstance(value, Number):
            tensors.append(upload(condition._value.client, np.asarray(value)))
        elif isinstance(value, Number):
            numbers[name] = check_number(value)
        else:
            raise TypeError(
                f"where(): argument '{name}' must be Tensor or Number, not {type(value).__name__}"
            )
    return apply("where", tuple(tensors), numbers)
