"""What differs between Triton's releases: found by feature, never by version number."""

import dataclasses
from typing import Any

import triton.language as tl
from triton.runtime import jit


def type_of(tensor: Any) -> Any:
    """The type of pointer that a tensor is to a kernel."""
    return _to_type(jit.mangle_type(tensor))


def _to_type(name: str) -> Any:
    convert = getattr(tl, "str_to_ty", None)
    if convert is None:
        raise AttributeError("this release of Triton has no triton.language.str_to_ty")
    try:
        return convert(name, None)
    except TypeError:  # releases before it took constants
        return convert(name)


def tuple_like(original: tuple, members: list[Any]) -> tuple:
    """A tuple of other members, of the same kind as the original."""
    return type(original)(*members) if hasattr(original, "_fields") else tuple(members)


def with_base(descriptor: Any, base: Any) -> Any:
    """A host descriptor of another tensor."""
    if dataclasses.is_dataclass(descriptor) and not isinstance(descriptor, type):
        return dataclasses.replace(descriptor, base=base)
    raise TypeError(f"{type(descriptor).__name__} cannot be copied")
