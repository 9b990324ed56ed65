"""Casts."""

# Inside the class, the names of Python's types, such as `float`, are these methods.
import builtins
from typing import TYPE_CHECKING, Any

from gt.tensors.base import TensorBase, check_dtype
from gt.tensors.generated.methods import GeneratedMethods

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor


class CastMethods(GeneratedMethods):
    """Casts. Devices are accepted and have no effect: the server decides where a tensor is."""

    __slots__ = ()

    def to(self, *args: Any, dtype: Any = None, device: Any = None, **ignored: Any) -> "Tensor":
        """This tensor in another dtype, or in that of another tensor; itself if it has that dtype already.

        A device, as in `x.to("cuda")`, has no effect: the server decides where a tensor is.
        """
        if unknown := set(ignored) - {"copy", "non_blocking", "memory_format"}:
            raise TypeError(f"to() got an unexpected keyword argument '{min(unknown)}'")
        for arg in args:
            if isinstance(arg, TensorBase):
                dtype = arg._value.spec.dtype
            elif not (is_device(arg) or isinstance(arg, builtins.bool)):
                dtype = arg
        return self._cast(self._value.spec.dtype if dtype is None else dtype)

    def type(self, dtype: Any = None, non_blocking: Any = False) -> Any:
        """This tensor in another dtype; without one, the name of its dtype."""
        return f"gt.{self._value.spec.dtype}" if dtype is None else self._cast(dtype)

    def type_as(self, other: "Tensor") -> "Tensor":
        """This tensor in another's dtype."""
        return self._cast(other._value.spec.dtype)

    def cpu(self) -> "Tensor":
        """The tensor itself: the server decides where it is."""
        return self._cast(self._value.spec.dtype)

    def cuda(self, device: Any = None, non_blocking: Any = False) -> "Tensor":
        """The tensor itself: the server decides where it is."""
        return self._cast(self._value.spec.dtype)

    def bool(self) -> "Tensor":
        """Whether each element is not 0."""
        return self._cast("bool")

    def byte(self) -> "Tensor":
        """This tensor as uint8."""
        return self._cast("uint8")

    def char(self) -> "Tensor":
        """This tensor as int8."""
        return self._cast("int8")

    def short(self) -> "Tensor":
        """This tensor as int16."""
        return self._cast("int16")

    def int(self) -> "Tensor":
        """This tensor as int32."""
        return self._cast("int32")

    def long(self) -> "Tensor":
        """This tensor as int64."""
        return self._cast("int64")

    def half(self) -> "Tensor":
        """This tensor as float16."""
        return self._cast("float16")

    def bfloat16(self) -> "Tensor":
        """This tensor as bfloat16."""
        return self._cast("bfloat16")

    def float(self) -> "Tensor":
        """This tensor as float32."""
        return self._cast("float32")

    def double(self) -> "Tensor":
        """This tensor as float64."""
        return self._cast("float64")

    def _cast(self, dtype: Any) -> "Tensor":
        name = check_dtype(dtype)
        if name == self._value.spec.dtype:
            return self  # type: ignore[return-value] - every TensorBase is a Tensor
        return self._apply("cast", dtype=name)


_DEVICES = ("cpu", "cuda", "mps", "xpu", "meta")


def is_device(value: Any) -> bool:
    """Whether this is a device of PyTorch: "cuda:1", a number, or a torch.device."""
    if isinstance(value, str):
        return value.partition(":")[0] in _DEVICES
    return value is None or type(value) is int or type(value).__name__ == "device"
