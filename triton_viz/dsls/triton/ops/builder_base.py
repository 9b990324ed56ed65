"""The base class of both builders: types, constants and compiler options."""

from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.runtime import interpreter


class BuilderBase:
    """Types and constants. A subclass implements `constant`."""

    arch = None
    """The architecture of the target GPU: None, as there is no GPU."""

    def __init__(self) -> None:
        self.options = interpreter.InterpreterOptions(debug=True, sanitize_overflow=False)
        self.codegen_fns = {
            "convert_custom_types": _convert_custom_types,
            "min_dot_size": lambda left, right: (1, 1, 1),
        }

    def constant(self, value: Any, dtype: Any) -> Any:
        """A scalar constant."""
        raise NotImplementedError

    def get_ptr_ty(self, element: Any, address_space: Any) -> Any:
        """A pointer's type."""
        return tl.pointer_type(element, address_space)

    def get_block_ty(self, element: Any, shape: list[int]) -> Any:
        """A block's type."""
        return tl.block_type(element, shape)

    def get_null_value(self, type: Any) -> Any:
        """Zero."""
        return self.constant(0, type.scalar)

    def get_fp16(self, value: float) -> Any:
        """A constant."""
        return self.constant(value, tl.float16)

    def get_fp32(self, value: float) -> Any:
        """A constant."""
        return self.constant(value, tl.float32)

    def get_fp64(self, value: float) -> Any:
        """A constant."""
        return self.constant(value, tl.float64)

    def get_bf16(self, value: float) -> Any:
        """A constant."""
        return self.constant(value, tl.bfloat16)

    def get_cache_policy(self, *_: Any) -> None:
        """None: there is no cache to control."""

    def constant_of_type(self, name: str) -> Callable[[Any], Any]:
        """`get_int32` and the like, by name: a function that makes a constant of that integer type."""
        dtype = getattr(tl, name.removeprefix("get_"), None)
        if not isinstance(dtype, tl.dtype):
            raise AttributeError(name)
        return lambda value: self.constant(value, dtype)


def _convert_custom_types(input: Any, type: Any, rounding: Any, _semantic: Any) -> Any:
    return tl.tensor(_semantic.builder.create_fp_to_fp(input.handle, type, rounding), type)
