"""A small builder for testing control flow: that of Triton's interpreter, with a leading lane axis."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from triton_viz.core.attributes import set_attributes
from triton_viz.dsls.triton.control_flow.lane_flow import Flow
from triton_viz.executor.lanes import Diverged, Lanes, RunOneByOne


class LaneBuilder(interpreter.InterpreterBuilder):
    """Ops on lanes, and a memory of a few arrays. Only active lanes execute stores and atomics."""

    def __init__(self, lanes: Lanes, programs: np.ndarray, arrays: list[np.ndarray]):
        super().__init__()
        self.options = interpreter.InterpreterOptions(debug=True, sanitize_overflow=False)
        self.lanes, self.programs, self.arrays = lanes, programs, arrays
        self.printed: list[tuple[str, list[int]]] = []
        self.flow: Flow | None = None

    def create_get_program_id(self, axis: int) -> TensorHandle:
        return TensorHandle(self.programs.astype(np.int32), tl.int32)

    def create_make_range(self, ret_ty: Any, start: int, stop: int) -> TensorHandle:
        return TensorHandle(np.arange(start, stop, dtype=np.int32)[None], tl.int32)

    def create_expand_dims(self, arg: TensorHandle, axis: int) -> TensorHandle:
        return TensorHandle(np.expand_dims(arg.data, axis + 1), arg.dtype.scalar)

    def create_broadcast(self, arg: TensorHandle, shape: Any) -> TensorHandle:
        return TensorHandle(np.broadcast_to(arg.data, (len(arg.data), *shape)), arg.dtype.scalar)

    def create_splat(self, ret_ty: Any, arg: TensorHandle) -> TensorHandle:
        data = arg.data.reshape(len(arg.data), *[1] * len(ret_ty.shape))
        return TensorHandle(np.broadcast_to(data, (len(data), *ret_ty.shape)), arg.dtype.scalar)

    def create_addptr(self, ptr: TensorHandle, offset: TensorHandle) -> TensorHandle:
        width = max(1, ptr.dtype.scalar.element_ty.primitive_bitwidth // 8)  # type: ignore[attr-defined]
        return TensorHandle(ptr.data + (width * offset.data.astype(np.int64)).astype(np.uint64), ptr.dtype)

    # A policy is about the cache, in one word or two, depending on the release; then whether it is volatile.
    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *policy: Any, **_: Any) -> TensorHandle:
        if policy[-1] and self.flow is not None:
            self.flow.note_waiting_op()
        dtype = ptrs.get_element_ty()
        keep, ptr = self._wanted(ptrs.data, mask.data)
        out = np.zeros(ptr.shape, interpreter._get_np_dtype(dtype))
        if other is not None:
            out[...] = np.broadcast_to(other.data, out.shape)
        if keep.any():
            memory, index = self._locate(ptr[keep])
            out[keep] = memory[index]
        return TensorHandle(out, dtype)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *policy: Any, **_: Any) -> None:
        if self.flow is not None:
            self.flow.note_write()
        keep, ptr, val = self._wanted(ptrs.data, mask.data, value.data)
        if keep.any():
            memory, index = self._locate(ptr[keep])
            memory[index] = val[keep]

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> TensorHandle:
        assert self.flow is not None
        self.flow.note_waiting_op()
        keep, at, old, new = self._wanted(ptr.data, np.array([True]), cmp.data, val.data)
        out = np.zeros(at.shape, cmp.data.dtype)
        for lane in np.flatnonzero(keep):
            memory, index = self._locate(at[lane])
            out[lane] = memory[index]
            if memory[index] == old[lane]:
                memory[index] = new[lane]
                self.flow.note_write()
        return TensorHandle(out, cmp.dtype)

    def create_print(self, prefix: str, hex: bool, values: list[TensorHandle], isSigned: Any) -> None:
        keep, data = self._wanted(values[0].data, np.array([True]))
        self.printed.append((prefix.strip(" :"), data[keep].tolist()))

    def create_assert(self, condition: TensorHandle, message: str) -> None:
        keep, holds = self._wanted(condition.data, np.array([True]))
        assert holds[keep].all(), message

    def _wanted(self, first: np.ndarray, mask: np.ndarray, *more: np.ndarray) -> list[np.ndarray]:
        """The mask of active lanes, and the arrays, all broadcast to one shape with every lane."""
        every = np.ones((self.lanes.count, *(1,) * (first.ndim - 1)), bool)
        active = every if self.lanes.active is None else self.lanes.active.reshape(every.shape)
        keep, first, *rest = np.broadcast_arrays(mask & active, first, *more)
        return [keep, first, *rest]

    def _locate(self, ptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        for array in self.arrays:
            start = array.ctypes.data
            if np.all((ptr >= start) & (ptr < start + array.nbytes)):
                return array, ((ptr - np.uint64(start)) // np.uint64(array.itemsize)).astype(np.int64)
        raise IndexError("an address of no array")


@contextlib.contextmanager
def language(flow: Flow) -> Iterator[None]:
    """Triton's language with this flow, patched like the executor does."""
    semantic = flow.semantic

    def with_semantic(member: Callable) -> Callable:
        return lambda *args, **kwargs: member(*args, **{**kwargs, "_semantic": semantic})

    def types_of(type_: Any, builder: Any) -> Any:
        return type_

    patches: list[tuple[Any, str, Any]] = [
        (tl.tensor, name, with_semantic(member))
        for name, member in vars(tl.tensor).items()
        if tl.core.is_builtin(member) and name.startswith("__")
    ]
    patches += [
        (tl.dtype, "to_ir", types_of),
        (tl.tensor, "__bool__", lambda self: flow.truth(self)),
        (tl.tensor, "__index__", lambda self: flow.index(self)),
    ]
    with set_attributes(patches), np.errstate(all="ignore"):
        yield


def _sum(input: tl.tensor, axis: int | None, combine_fn: Any, keep_dims: bool = False) -> tl.tensor:
    """Enough of tl.reduce for tl.sum over the only axis."""
    assert len(input.shape) == 1
    assert combine_fn is tl.standard._sum_combine
    return tl.tensor(TensorHandle(input.handle.data.sum(axis=1, dtype=np.int32), input.dtype), input.dtype)


class Run:
    """Runs a kernel. Its results are in the arrays."""

    def __init__(self) -> None:
        self.diverged: list[str] = []
        """Why lanes had to run separately."""
        self.printed: list[tuple[str, list[int]]] = []
        self.returned: Any = None
        self.flow: Flow | None = None


def run(fn: Any, programs: Any, *args: Any, watch: Callable[[Flow], Any] | None = None, **kwargs: Any) -> Run:
    """Run all programs at once like the executor: undo diverged chunks, and run their groups."""
    result = Run()
    _run(fn, np.asarray(programs), args, kwargs, result, watch)
    return result


def one_by_one(fn: Any, programs: Any, *args: Any, **kwargs: Any) -> Run:
    """Run programs one after the other, without divergence: the reference for `run`."""
    result = Run()
    for program in programs:
        _run(fn, np.array([program]), args, kwargs, result, None)
    assert not result.diverged
    return result


def _run(fn: Any, programs: np.ndarray, args: tuple, kwargs: dict, result: Run, watch: Any) -> None:
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    before = [array.copy() for array in arrays]
    lanes = Lanes(len(programs))
    builder = LaneBuilder(lanes, programs, arrays)
    flow = builder.flow = result.flow = Flow(lanes, TritonSemantic(builder), TensorHandle, {tl.reduce: _sum})
    if watch is not None:
        watch(flow)
    apart: list[np.ndarray] = []
    try:
        with language(flow):
            result.returned = flow.run(fn, *(as_tensor(arg) for arg in args), **kwargs)
    except (Diverged, RunOneByOne) as error:
        result.diverged.append(f"{type(error).__name__}: {error.reason}")
        apart = error.groups if isinstance(error, Diverged) else [np.array([n]) for n in range(len(programs))]
        assert sorted(np.concatenate(apart)) == list(range(len(programs)))
        assert len(apart) > 1
    finally:
        assert lanes.active is None
        assert not flow.regions
        assert not flow.loops
    if apart:
        for array, old in zip(arrays, before, strict=True):
            array[...] = old
        for group in apart:
            _run(fn, programs[group], args, kwargs, result, watch)
    else:
        result.printed += builder.printed


def as_tensor(arg: Any) -> Any:
    """An argument, converted for a kernel."""
    if isinstance(arg, np.ndarray):
        dtype = tl.pointer_type(
            tl.dtype({"int32": "int32", "float32": "fp32", "int64": "int64"}[arg.dtype.name])
        )
        return tl.tensor(TensorHandle(np.array([arg.ctypes.data], np.uint64), dtype), dtype)
    return interpreter._implicit_cvt(arg) if isinstance(arg, int) else arg
