"""What differs between Triton's releases: found by feature, never by version number."""

import dataclasses
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.runtime import jit


def type_of(tensor: Any) -> Any:
    """The type of pointer that a tensor is to a kernel."""
    return _to_type(jit.mangle_type(tensor))


@functools.cache
def annotated_types(fn: Callable) -> dict[str, Any]:
    """The types that a kernel's annotations give to parameters, whatever is passed: `n: tl.int64`."""
    names = {name: jit._normalize_ty(annotation) for name, annotation in inspect.get_annotations(fn).items()}
    scalars = set(jit.type_canonicalisation_dict.values()) - {"constexpr"}
    return {
        name: tl.int1 if kind == "u1" else _to_type(kind)
        for name, kind in names.items()
        if kind.removeprefix("*k").removeprefix("*") in scalars
    }


def source_of(kernel: Any) -> tuple[list[str], int]:
    """A kernel's lines when it was decorated (its file may have changed), and the first one's number."""
    if hasattr(kernel, "raw_src"):
        return kernel.raw_src, kernel.starting_line_number
    return inspect.getsourcelines(kernel.fn)


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


def specialize(
    kernel: Any, backend: Any, arguments: dict[str, Any], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[Any, Any], dict[Any, Any]]:
    """What Triton compiles for these arguments: options, types, constants and attributes such as alignment.

    An option of another backend's compiler is left out.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a release says of its defaults is for who compiles to run
        return _specialize(kernel, backend, arguments, options)


def _specialize(
    kernel: Any, backend: Any, arguments: dict[str, Any], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[Any, Any], dict[Any, Any]]:
    known = vars(backend.parse_options({}))
    given = {name: value for name, value in options.items() if name in known}
    given["debug"] = bool(options.get("debug", kernel.debug))
    binder = jit.create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, specialization, rest = binder(**arguments, **given)
    parsed, signature, constants, attributes = kernel._pack_args(backend, given, bound, specialization, rest)
    return dict(vars(parsed)), signature, constants, attributes
