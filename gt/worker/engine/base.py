"""What every engine does: keep values, and compute rows of the op table."""

import functools
import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gt.ops import TABLE, Spec
from gt.ops.rules import broadcast

HALF = ("float16", "bfloat16")
ENGINES = {"pytorch": "PyTorchEngine", "numpy": "NumpyEngine", "jax": "JaxEngine"}


class Engine(ABC):
    """A library that computes."""

    name: str
    on_host = True
    """Whether values are in the machine's own memory; a device refuses by itself what does not fit."""

    def __init__(self) -> None:
        self._functions = _Lookup(self._named)
        self.functions: Mapping[str, Callable[..., Any]] = self._functions
        """By op, what computes it from its inputs where it has no attributes: `run` with fewer questions."""

    @abstractmethod
    def put(self, array: np.ndarray) -> Any:
        """Take an array in. The array is the engine's from now on."""

    @abstractmethod
    def get(self, value: Any) -> np.ndarray:
        """Give a value out. What comes out may share memory with the value: it is read at once."""

    def spec(self, value: Any) -> Spec:
        """What is known of a value without its data."""
        return Spec(tuple(value.shape), str(value.dtype))

    def kind(self, value: Any) -> Any:
        """What tells values of different specs apart, without the effort of making a spec."""
        return self.spec(value)

    def dense(self, value: Any) -> Any:
        """A value without gaps between its elements, in their order: itself, if it has none."""
        return value

    @property
    def threads(self) -> int:
        """How many threads compute an op."""
        return 1

    @abstractmethod
    def nbytes(self, value: Any) -> int:
        """How much memory a value takes."""

    def run(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None) -> Any:
        """Compute one op."""
        function = self._functions[op]
        if not attrs:
            return function(*inputs)
        if "scalar" not in attrs:
            return function(*inputs, **attrs)
        (x,), number = inputs, attrs["scalar"]
        return function(number, x) if attrs["reflected"] else function(x, number)

    def _named(self, op: str) -> Callable[..., Any]:
        return self.resolve(TABLE[op].engines[self.name])

    def resolve(self, target: str) -> Callable[..., Any]:
        """The function that the op table names, such as "torch.relu"."""
        module, _, name = target.rpartition(".")
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
    """A library with NumPy's spelling, held to the op table's dtypes where it has other habits."""

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
            # These compute in their result's dtype, or, if that is only true or false, in what their
            # inputs have in common. The libraries would choose otherwise, and refuse uint8 + -1.
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

    def resolve(self, target: str) -> Callable[..., Any]:
        """The function that the op table names; one that NumPy and JAX share is told which it is for."""
        function = super().resolve(target)
        shared = target.startswith("gt.worker.engine.array.")
        return functools.partial(function, self.xp) if shared else function


@functools.cache
def attributes(op: str) -> frozenset[str]:
    """The attributes an op may have: the parameters of our own function for it; a library's takes none.

    A stream comes from anybody. Passed on unseen, an attribute such as `where` or `out` would let a client
    read what lies in a worker's memory.
    """
    row = TABLE[op]
    names = {"scalar", "reflected"} if row.kind == "BinaryOp" else set()
    module, _, name = row.engines["numpy"].rpartition(".")
    if module.startswith("gt."):
        names |= set(inspect.signature(getattr(importlib.import_module(module), name)).parameters)
    return frozenset(names)


def load_engine(name: str) -> Engine:
    """Import an engine by name."""
    if name not in ENGINES:
        raise ValueError(f"no engine is called {name!r}; there are {', '.join(sorted(ENGINES))}")
    try:
        module = importlib.import_module(f"gt.worker.engine.{name}")
    except ImportError as error:
        raise ImportError(f"the {name} engine needs {error.name}: pip install 'tapestry[{name}]'") from error
    return getattr(module, ENGINES[name])()
