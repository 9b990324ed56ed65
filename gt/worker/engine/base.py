"""What every engine does: keep values, and compute rows of the op table."""

import functools
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gt.ops import Row

ENGINES = {"pytorch": "PyTorchEngine", "numpy": "NumpyEngine"}


class Engine(ABC):
    """A library that computes."""

    name: str

    @abstractmethod
    def put(self, array: np.ndarray) -> Any:
        """Take an array in."""

    @abstractmethod
    def get(self, value: Any) -> np.ndarray:
        """Give a value out."""

    def run(self, row: Row, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Compute one op."""
        function = resolve(row.engines[self.name])
        if "scalar" not in attrs:
            return function(*inputs, **attrs)
        (x,), number = inputs, attrs["scalar"]
        return function(number, x) if attrs["reflected"] else function(x, number)


def load_engine(name: str) -> Engine:
    """Import an engine by name."""
    if name not in ENGINES:
        raise ValueError(f"no engine is called {name!r}; there are {', '.join(sorted(ENGINES))}")
    return getattr(importlib.import_module(f"gt.worker.engine.{name}"), ENGINES[name])()


@functools.cache
def resolve(target: str) -> Callable:
    """The function an op table row names, such as "torch.relu"."""
    module, _, function = target.rpartition(".")
    return getattr(importlib.import_module(module), function)
