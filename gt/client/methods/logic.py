"""Comparisons, truths, bits, and choosing by them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gt.client.base import Number, TensorBase, apply, check_number, upload
from gt.errors import DTypeError, ShapeError
from gt.ops import dtypes

if TYPE_CHECKING:
    from gt.client.tensor import Tensor


class LogicMethods(TensorBase):
    """What is true of each element, and what follows from it."""

    __slots__ = ()

    def __gt__(self, other: Any) -> "Tensor":
        return self._binary_op("gt", other)

    def __ge__(self, other: Any) -> "Tensor":
        return self._binary_op("ge", other)

    def __lt__(self, other: Any) -> "Tensor":
        return self._binary_op("lt", other)

    def __le__(self, other: Any) -> "Tensor":
        return self._binary_op("le", other)

    def __eq__(self, other: Any) -> "Tensor":  # type: ignore[override] - elementwise, as in PyTorch
        return self._binary_op("eq", other)

    def __ne__(self, other: Any) -> "Tensor":  # type: ignore[override] - elementwise, as in PyTorch
        return self._binary_op("ne", other)

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> "Tensor":
        return self._binary_op("and", other)

    def __rand__(self, other: Any) -> "Tensor":
        return self._binary_op("and", other, reflected=True)

    def __or__(self, other: Any) -> "Tensor":
        return self._binary_op("or", other)

    def __ror__(self, other: Any) -> "Tensor":
        return self._binary_op("or", other, reflected=True)

    def __xor__(self, other: Any) -> "Tensor":
        return self._binary_op("xor", other)

    def __rxor__(self, other: Any) -> "Tensor":
        return self._binary_op("xor", other, reflected=True)

    def __lshift__(self, other: Any) -> "Tensor":
        return self._binary_op("lshift", other)

    def __rlshift__(self, other: Any) -> "Tensor":
        return self._binary_op("lshift", other, reflected=True)

    def __rshift__(self, other: Any) -> "Tensor":
        return self._binary_op("rshift", other)

    def __rrshift__(self, other: Any) -> "Tensor":
        return self._binary_op("rshift", other, reflected=True)

    def __invert__(self) -> "Tensor":
        if dtypes.is_float(self._value.spec.dtype):
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
        return self._unary_op("invert")

    def __contains__(self, element: Any) -> bool:
        return bool((self == element)._apply("any", dim=None, keepdim=False).item())

    def gt(self, other: Any) -> "Tensor":
        """`self > other`."""
        return self._with("gt", other)

    greater = gt

    def ge(self, other: Any) -> "Tensor":
        """`self >= other`."""
        return self._with("ge", other)

    greater_equal = ge

    def lt(self, other: Any) -> "Tensor":
        """`self < other`."""
        return self._with("lt", other)

    less = lt

    def le(self, other: Any) -> "Tensor":
        """`self <= other`."""
        return self._with("le", other)

    less_equal = le

    def eq(self, other: Any) -> "Tensor":
        """`self == other`."""
        return self._with("eq", other)

    def ne(self, other: Any) -> "Tensor":
        """`self != other`."""
        return self._with("ne", other)

    not_equal = ne

    def bitwise_and(self, other: Any) -> "Tensor":
        """`self & other`."""
        return self._with("and", other)

    def bitwise_or(self, other: Any) -> "Tensor":
        """`self | other`."""
        return self._with("or", other)

    def bitwise_xor(self, other: Any) -> "Tensor":
        """`self ^ other`."""
        return self._with("xor", other)

    def bitwise_left_shift(self, other: Any) -> "Tensor":
        """`self << other`."""
        return self._with("lshift", other)

    def bitwise_right_shift(self, other: Any) -> "Tensor":
        """`self >> other`."""
        return self._with("rshift", other)

    def bitwise_not(self) -> "Tensor":
        """`~self`."""
        return self._unary_op("invert")

    def logical_and(self, other: "Tensor") -> "Tensor":
        """Whether both elements are not 0."""
        return self._with_tensor("logical_and", other)

    def logical_or(self, other: "Tensor") -> "Tensor":
        """Whether an element of either is not 0."""
        return self._with_tensor("logical_or", other)

    def logical_xor(self, other: "Tensor") -> "Tensor":
        """Whether an element of exactly one is not 0."""
        return self._with_tensor("logical_xor", other)

    def logical_not(self) -> "Tensor":
        """Whether each element is 0."""
        return self._unary_op("logical_not")

    def isnan(self) -> "Tensor":
        """Whether each element is not a number."""
        return self._unary_op("isnan")

    def isinf(self) -> "Tensor":
        """Whether each element is infinite."""
        return self._unary_op("isinf")

    def isfinite(self) -> "Tensor":
        """Whether each element is neither infinite nor NaN."""
        return self._unary_op("isfinite")

    def where(self, condition: "Tensor", other: Any) -> "Tensor":
        """This tensor's elements where the condition holds, and the other's where not."""
        return where(condition, self, other)

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

    def isclose(
        self, other: "Tensor", rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> "Tensor":
        """Whether each element is the other's, give or take `atol + rtol * abs(other)`."""
        mine, theirs = self._value.spec.dtype, other._value.spec.dtype
        if mine != theirs:
            raise DTypeError(f"{dtypes.TITLE[mine]} did not match {dtypes.TITLE[theirs]}")
        same = self == other
        if not dtypes.is_float(mine):
            return same if not (rtol or atol) else same | _near(self, other, rtol, atol)
        if equal_nan:
            same = same | (self.isnan() & other.isnan())
        return same | (_near(self, other, rtol, atol) & self.isfinite() & other.isfinite())

    def allclose(
        self, other: "Tensor", rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> bool:
        """Whether all elements are close to the other's. Waits for the answer."""
        return bool(self.isclose(other, rtol, atol, equal_nan)._apply("all", dim=None, keepdim=False).item())

    def equal(self, other: "Tensor") -> bool:
        """Whether shapes and all elements are equal. Waits for the answer."""
        if self._value.spec.shape != other._value.spec.shape:
            return False
        return bool((self == other)._apply("all", dim=None, keepdim=False).item())

    # --- how methods with names take their arguments ---

    def _with(self, op: str, other: Any) -> "Tensor":
        """As the operator, but what it does not take is an error here and now."""
        result = self._binary_op(op, other)
        if result is NotImplemented:
            raise TypeError(f"{op}(): argument 'other' must be Tensor or Number, not {type(other).__name__}")
        return result

    def _with_tensor(self, op: str, other: Any) -> "Tensor":
        """An op that PyTorch allows between tensors only."""
        if isinstance(other, np.ndarray):
            other = upload(self._value.client, other)
        if not isinstance(other, TensorBase):
            raise TypeError(f"{op}(): argument 'other' must be Tensor, not {type(other).__name__}")
        return self._binary_op(op, other)


def _near(a: Any, b: Any, rtol: float, atol: float) -> Any:
    return (a - b).abs() <= atol + (b * rtol).abs()


def where(condition: Any, input: Any, other: Any) -> "Tensor":
    """The elements of one where the condition holds, and of the other where not. Either may be a number."""
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
