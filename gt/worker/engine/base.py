"""The interface of engines, which store values and compute rows of the op table."""

import functools
import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gt.ops import TABLE, Spec
from gt.ops.aten import DEVICE_OPS, PREFIX
from gt.ops.dtypes import HALF
from gt.ops.engines import ENGINES, LIBRARIES
from gt.ops.rules import broadcast

__all__ = ["ENGINES", "ArrayEngine", "Engine", "attributes", "load_engine"]

MIN_DONATED_BYTES = 1 << 20
"""The smallest results that are computed in the memory of an input: see `Engine.in_place`."""


class Engine(ABC):
    """A library that computes."""

    name: str
    on_host = True
    """Whether values are in the host's memory. A device raises its own error when its memory is full."""

    def __init__(self) -> None:
        self._functions = _Lookup(self._named)
        self.functions: Mapping[str, Callable[..., Any]] = self._functions
        """By op, the function of its inputs, for ops without attributes: faster than `run`."""

    @abstractmethod
    def put(self, array: np.ndarray) -> Any:
        """An array as a value. The engine owns the array from now on."""

    @abstractmethod
    def get(self, value: Any) -> np.ndarray:
        """A value as an array, which may share memory with it: the caller reads it at once."""

    def spec(self, value: Any) -> Spec:
        """The shape and dtype of a value."""
        return Spec(tuple(value.shape), str(value.dtype))

    def kind(self, value: Any) -> Any:
        """A key that differs for values of different specs; it takes less time than `spec`."""
        return self.spec(value)

    def dense(self, value: Any) -> Any:
        """The value with its elements contiguous in memory: itself, if they are."""
        return value

    @property
    def threads(self) -> int:
        """The number of threads that compute an op."""
        return 1

    @abstractmethod
    def nbytes(self, value: Any) -> int:
        """The size of a value in bytes."""

    def run(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None) -> Any:
        """Compute one op."""
        function = self._functions[op]
        if not attrs:
            return function(*inputs)
        if "scalar" not in attrs:
            return function(*inputs, **attrs)
        (x,), number = inputs, attrs["scalar"]
        return function(number, x) if attrs["reflected"] else function(x, number)

    def bound(self, op: str, attrs: dict[str, Any] | None) -> Callable[..., Any]:
        """An op's function of its inputs, with these attributes, for an op that is computed repeatedly."""
        if attrs is None:
            return self.functions[op]
        return lambda *inputs: self.run(op, inputs, attrs)

    def in_place(self, op: str, attrs: dict[str, Any] | None) -> Callable[..., Any] | None:
        """The form of an op that computes its result in the memory of the first input, if there is one: a
        function of the inputs, and of the number of references to the first that the caller has besides. It
        returns None if it cannot use that memory."""
        return None

    def infer(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> "Spec | tuple[Spec, ...]":
        """The spec of an op's result, or of each of its results."""
        return TABLE[op].infer(tuple(inputs), attrs)

    def _named(self, op: str) -> Callable[..., Any]:
        """The function that computes an op."""
        return resolve(TABLE[op].engines[self.name])


def resolve(target: str) -> Any:
    """Import a function or class by its full name: "torch.relu", or "package.module:name"."""
    module, _, name = target.rpartition(":" if ":" in target else ".")
    return getattr(importlib.import_module(module), name)


class _Lookup(dict[str, Callable[..., Any]]):
    """A function for each op, found when it is first used."""

    def __init__(self, find: Callable[[str], Callable[..., Any]]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, op: str) -> Callable[..., Any]:
        function = self[op] = self._find(op)
        return function


class ArrayEngine(Engine):
    """A library with NumPy's functions; results are cast to the dtypes of the op table."""

    xp: ModuleType
    """The library."""

    def __init__(self) -> None:
        super().__init__()
        self.functions = _Lookup(lambda op: lambda *inputs: self.run(op, inputs, None))

    @abstractmethod
    def dtype(self, name: str) -> Any:
        """The library's dtype of this name."""

    def run(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None) -> Any:
        """Compute one op: half precision is computed in float32, and the result is rounded."""
        row, attrs = TABLE[op], attrs or {}
        specs = tuple(Spec(tuple(x.shape), x.dtype.name) for x in inputs)
        result = row.infer(specs, attrs).dtype
        if row.kind in ("UnaryOp", "BinaryOp"):
            # These compute in their result's dtype or, if that is bool, in the promoted dtype of their
            # inputs. The libraries promote in another way, and refuse uint8 + -1.
            work = result
            if result == "bool":
                two = len(specs) == 2 or "scalar" in attrs
                work = broadcast(specs, attrs).dtype if two else specs[0].dtype
            work = "float32" if work in HALF else work
            inputs = [x if x.dtype.name == work else x.astype(work) for x in inputs]
            if "scalar" in attrs:
                number = np.asarray(attrs["scalar"]).astype(work)
                attrs = {**attrs, "scalar": self.xp.asarray(number)}
        else:
            inputs = [x.astype("float32") if x.dtype.name in HALF else x for x in inputs]
        value = self.xp.asarray(super().run(op, inputs, attrs))
        dtype = self.dtype(result)
        return value if value.dtype == dtype else value.astype(dtype)

    def _named(self, op: str) -> Callable[..., Any]:
        """The function that computes an op; gt's own functions get the library as their first argument."""
        function = super()._named(op)
        own = TABLE[op].functions.array.startswith(LIBRARIES)
        return function if own else functools.partial(function, self.xp)


@functools.cache
def attributes(op: str) -> frozenset[str]:
    """The attributes an op may have: the parameters of gt's function for it; none for a library's function.

    Clients are not trusted. Passed on unchecked, an attribute such as `where` or `out` would let a client
    read uninitialized memory of a worker.
    """
    if op in DEVICE_OPS or op.startswith(PREFIX):
        from gt.worker.engine.torch import aten

        return aten.attributes(op)
    row = TABLE[op]
    names = {"scalar", "reflected"} if row.kind == "BinaryOp" else set()
    if not row.functions.array.startswith(LIBRARIES):
        names |= set(inspect.signature(resolve(row.engines["numpy"])).parameters)
    return frozenset(names)


def load_engine(name: str) -> Engine:
    """Import an engine by name and make one.

    Raises ValueError for an unknown name, and ImportError if its library is not installed.
    """
    if name not in ENGINES:
        raise ValueError(f"no engine is called {name!r}; there are {', '.join(sorted(ENGINES))}")
    try:
        engine = resolve(ENGINES[name].engine)
    except ImportError as error:
        raise ImportError(f"the {name} engine needs {error.name}: pip install 'tapestry[{name}]'") from error
    return engine()
