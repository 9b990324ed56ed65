"""Triton: its interpreter's builder is where ops are intercepted.

The interpreter runs the programs of a grid one after the other; the language layer above it is Triton's own.
"""

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import GridExecutor, InterpretedFunction, TensorHandle, interpreter_builder
from triton.runtime.jit import JITFunction

from triton_viz.core.data import Atomic, Dot, Load, Store
from triton_viz.dsls.base import DSL

if TYPE_CHECKING:
    from triton_viz.core.client import ClientManager


def _access(ptrs: TensorHandle, mask: np.ndarray) -> dict[str, Any]:
    width = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)  # a bool takes a byte, too
    return {"addresses": ptrs.data, "mask": mask, "width": width}


def _load(ptrs: TensorHandle, mask: TensorHandle, *_: Any, **__: Any) -> dict[str, Any]:
    return _access(ptrs, np.broadcast_to(mask.data.astype(bool), ptrs.data.shape))


def _store(ptrs: TensorHandle, value: TensorHandle, mask: TensorHandle, *_: Any, **__: Any) -> dict[str, Any]:
    return _load(ptrs, mask)


def _atomic(op: Any, ptr: TensorHandle, value: TensorHandle, mask: TensorHandle, *_: Any) -> dict[str, Any]:
    return _load(ptr, mask)


def _compare_and_swap(ptr: TensorHandle, *_: Any) -> dict[str, Any]:
    return _access(ptr, np.ones(ptr.data.shape, bool))


def _dot(a: TensorHandle, b: TensorHandle, d: TensorHandle, *_: Any) -> dict[str, Any]:
    return {"left": a.data.shape, "right": b.data.shape, "output": d.data.shape}


@contextlib.contextmanager
def _patch_calls(manager: "ClientManager") -> Iterator[None]:
    from triton_viz.core.patch import set_attribute

    run_grid = GridExecutor.__call__
    set_grid, set_program = interpreter_builder.set_grid_dim, interpreter_builder.set_grid_idx

    def call_grid(self: GridExecutor, *args: Any, **kwargs: Any) -> None:
        known = {name: value for name, value in kwargs.items() if name in self.arg_names}
        for name, value in inspect.getcallargs(self.fn, *args, **known).items():
            manager.arg_callback(name, value)
        run_grid(self, *args, **kwargs)

    def set_grid_dim(*grid: int) -> None:
        set_grid(*grid)
        manager.grid_callback(grid)  # type: ignore[arg-type] - the interpreter always gives three

    def set_grid_idx(*program: int) -> None:
        set_program(*program)
        manager.grid_idx_callback(program)  # type: ignore[arg-type] - the interpreter always gives three

    # A jit function that a kernel calls is interpreted too, also one (such as tl.sum) that was made before
    # anybody asked for interpretation. Triton's own way patches the language anew at every such call and
    # leaves it patched; here it is patched once, for every module a nested function may see it through.
    def call_function(self: JITFunction | InterpretedFunction, *args: Any, **kwargs: Any) -> Any:
        return rewritten(self.fn)(*args, **kwargs)

    everywhere = types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    with contextlib.ExitStack() as stack:
        stack.enter_context(set_attribute(GridExecutor, "__call__", call_grid))
        stack.enter_context(set_attribute(interpreter_builder, "set_grid_dim", set_grid_dim))
        stack.enter_context(set_attribute(interpreter_builder, "set_grid_idx", set_grid_idx))
        stack.enter_context(set_attribute(JITFunction, "__call__", call_function))
        stack.enter_context(set_attribute(InterpretedFunction, "__call__", call_function))
        stack.callback(interpreter._patch_lang(everywhere).restore)
        yield


@functools.cache
def rewritten(fn: Callable) -> Callable:
    """A kernel's function in the form that the interpreter calls."""
    return InterpretedFunction(fn).rewrite()


TRITON = DSL(
    name="triton",
    namespace=interpreter_builder,
    # The other forms (unmasked, descriptors, atomic loads) call these, so these see every access.
    operations={
        "create_masked_load": (Load, _load),
        "create_masked_store": (Store, _store),
        "create_atomic_rmw": (Atomic, _atomic),
        "create_atomic_cas": (Atomic, _compare_and_swap),
        "create_dot": (Dot, _dot),
    },
    patch_calls=_patch_calls,
)
