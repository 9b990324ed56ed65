"""Differences between Triton's releases, detected by feature, never by version number.

`make test-triton-old` runs the tests on an older release.
"""

import dataclasses
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import driver, interpreter, jit

from triton_viz.dsls.triton.ops.access import AccessOps, Descriptor
from triton_viz.dsls.triton.ops.op_traits import not_recorded
from triton_viz.executor.value import Value
from triton_viz.numerics.rounding import multiply_add

# --- types and arguments ---


_POINTER_TYPES: dict[Any, Any] = {}
"""By dtype."""


def type_of(tensor: Any) -> Any:
    """The pointer type of a tensor argument."""
    found = _POINTER_TYPES.get(tensor.dtype)
    if found is None:
        found = _POINTER_TYPES[tensor.dtype] = _to_type(jit.mangle_type(tensor))
    return found


@functools.cache
def annotated_types(fn: Callable) -> dict[str, Any]:
    """The types of annotated parameters, by name: `n: tl.int64`."""
    names = {name: jit._normalize_ty(annotation) for name, annotation in inspect.get_annotations(fn).items()}
    scalars = set(jit.type_canonicalisation_dict.values()) - {"constexpr"}
    return {
        name: tl.int1 if type_ == "u1" else _to_type(type_)
        for name, type_ in names.items()
        if type_.removeprefix("*k").removeprefix("*") in scalars
    }


def source_of(kernel: Any) -> tuple[list[str], int]:
    """The kernel's lines at the time of decoration (its file may have changed), and the first line number."""
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
    """A tuple of other members, of the same type as the original."""
    return type(original)(*members) if hasattr(original, "_fields") else tuple(members)


def with_base(descriptor: Any, base: Any) -> Any:
    """A host descriptor of another tensor."""
    if dataclasses.is_dataclass(descriptor) and not isinstance(descriptor, type):
        return dataclasses.replace(descriptor, base=base)
    raise TypeError(f"{type(descriptor).__name__} cannot be copied")


# --- the language ---


class Constant(str):
    """A string with a `value`, for releases that expect a string as well as those that expect a constant."""

    @property
    def value(self) -> str:
        """The string."""
        return str(self)


class Semantic(TritonSemantic):
    """Triton's language layer, for every supported release."""

    def dot_scaled(self, *args: Any, **kwargs: Any) -> Any:
        """A product of scaled tiles, whose formats are strings."""
        words: list[Any] = [Constant(arg) if isinstance(arg, str) else arg for arg in args]
        return super().dot_scaled(*words, **kwargs)


def patches() -> list[tuple[Any, str, Any]]:
    """Patches of the language that only some releases need: (owner, name, value)."""
    condition = getattr(tl, "condition", None)
    return [] if condition is None else [(condition, "__bool__", lambda self: bool(self.condition))]


def _fused_by_numpy(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return multiply_add(x, y, z, "n")


FMA: dict[np.dtype, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    np.dtype(dtype): getattr(interpreter._interpreter, name, _fused_by_numpy)
    for dtype, name in ((np.float32, "fma_fp32"), (np.float64, "fma_fp64"))
}
"""x * y + z, rounded once: Triton's own, where its interpreter has one."""


# --- block pointers, of releases before descriptors replaced them ---


class BlockPointer(Descriptor):
    """A descriptor and the offsets of its block."""

    def __init__(
        self, base: Value, shape: list[Value], strides: list[Value], offsets: list[Value], block: list[int]
    ):
        super().__init__(base, shape, strides, block)
        self.offsets = offsets


class BlockPointerOps(AccessOps):
    """The builder's ops on block pointers. Later releases of Triton implement them by loads and stores."""

    create_select: Callable[[Value, Value, Value], Value]

    def get_int64_ty(self) -> Any:
        """The type of a block pointer's sizes and strides."""
        return tl.int64

    def get_int32_ty(self) -> Any:
        """The type of a block pointer's offsets."""
        return tl.int32

    def create_make_block_ptr(
        self,
        base: Value,
        shape: list[Value],
        strides: list[Value],
        offsets: list[Value],
        block: list[int],
        order: Any,
    ) -> BlockPointer:
        """A block of a tensor."""
        return BlockPointer(base, shape, strides, offsets, block)

    def create_advance(self, pointer: BlockPointer, offsets: list[Value]) -> BlockPointer:
        """A block pointer moved by offsets."""
        moved = [
            Value(a.data.astype(np.int64) + b.data.astype(np.int64), tl.int64)
            for a, b in zip(pointer.offsets, offsets, strict=True)
        ]
        return BlockPointer(pointer.base, pointer.shape, pointer.strides, moved, list(pointer.block))

    @not_recorded
    def create_tensor_pointer_load(
        self, pointer: BlockPointer, checked: Any, padding: Any, *policy: Any
    ) -> Value:
        """The values of the block that a block pointer points to."""
        return self.load_block(pointer, pointer.offsets, padding, tuple(checked))

    @not_recorded
    def create_tensor_pointer_store(
        self, pointer: BlockPointer, value: Value, checked: Any, *policy: Any
    ) -> None:
        """Write the block that a block pointer points to."""
        pointers, mask = pointer.pointers(pointer.offsets, tuple(checked))
        self.create_masked_store(pointers, value, mask)

    def select_block_pointer(self, condition: Value, a: BlockPointer, b: BlockPointer) -> BlockPointer:
        """One block pointer for the lanes where a condition holds, another for the others."""

        def select(ours: list[Value], theirs: list[Value]) -> list[Value]:
            return [self.create_select(condition, x, y) for x, y in zip(ours, theirs, strict=True)]

        return BlockPointer(
            self.create_select(condition, a.base, b.base),
            select(a.shape, b.shape),
            select(a.strides, b.strides),
            select(a.offsets, b.offsets),
            list(a.block),
        )


# --- devices ---


def driver_names() -> tuple[str, str]:
    """The names of the attributes of Triton's driver that hold the active device and the default one."""
    return ("_active", "_default") if "_active" in vars(driver) else ("active", "default")


def target_info() -> Any:
    """The function by which a kernel queries its target; None in a release without one."""
    return getattr(tl, "target_info", None)


# --- compiling ---


def specialize(
    kernel: Any, backend: Any, arguments: dict[str, Any], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[Any, Any], dict[Any, Any]]:
    """The specialization for these arguments: options, types, constants, and attributes such as alignment.

    An option of another backend's compiler is left out.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the launch itself already warns about defaults
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
