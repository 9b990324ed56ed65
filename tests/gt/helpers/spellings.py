"""The ways to write a call that PyTorch accepts, found by asking it.

A function's parameters are those of PyTorch's own schemas. Each is given a value by its name and type, by
position or by name, and also under the names that NumPy has for it: PyTorch takes `axis` for any parameter
that is called `dim`, and so on. Whatever PyTorch accepts is a way to write it.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from tests.gt.samples.base import bools, floats, ints

NUMPY_NAMES = {"dim": ["axis"], "keepdim": ["keepdims"], "input": ["x", "a", "x1"], "other": ["x2"]}
"""The names that PyTorch takes for a parameter of this name besides its own."""

LEFT_OUT = (
    *("out", "generator", "layout", "memory_format", "out_dtype"),
    *("implicit", "cudnn_enable", "sparse_grad", "ceil_mode"),
)
"""Parameters about memory and libraries, and those of features that GT does not have."""

TENSORS = [
    *(
        floats(2, 3),
        ints(2, 3),
        bools(2, 3),
        floats(3, 3),
        floats(3),
        ints(3),
        floats(2, 3, 3),
        floats(1, 2, 3),
    ),
    *(floats(1, 1, 4, 4), np.array([0, 1]), np.array(True), np.array(1.5, "float32")),
]
BY_NAME: dict[str, list[Any]] = {
    "dim": [0, -1, (0, 1), None, 1],
    "dims": [(0, 1), (1, 0), 0, (0, 2, 1), (2, 0, 1), 1],
    "size": [(2, 3), 4, (3, 2)],
    "shape": [(3, 2), (2, 3), 6],
    "sizes": [(1, 3), (3, 1), (1, 2)],
    "dtype": ["float64", "int64", "float32"],
    "device": ["cpu", None],
    "pin_memory": [False, None],
    "requires_grad": [True],
    "correction": [0, 1],
    "p": [2, 1, 0.5],
    "start": [0, 1, 0.5],
    "end": [4, 1],
    "step": [2],
    "steps": [3],
    "n": [3],
    "m": [4],
    "low": [2],
    "high": [5],
    "num_samples": [1],
    "fill_value": [3, 1.5],
    "index": [0, np.array([0, 1]), np.array([[0, 1, 0]]), np.array([0])],
    "indices": [np.array([[0, 1, 0]])],
    "rounding_mode": ["floor", None],
    "shifts": [1, (1, 1)],
    "repeats": [(2, 1), (2, 1, 1), 2],
    "split_size": [1, (1, 1), (1, 2)],
    "pad": [(1, 1)],
    "normalized_shape": [(3,)],
    "condition": [bools(2, 3)],
    "mask": [bools(2, 3)],
    "equation": ["ij->ji"],
    "approximate": ["tanh"],
    "reduce": ["sum"],
    "output_size": [(2, 2)],
    "kernel_size": [2],
    "value": [2, 2.0],
    "weight": [floats(1, 3, 1), floats(1, 1, 2, 2), floats(2, 3), 0.5],
    "bias": [floats(1)],
    "source": [0, floats(2, 3)],
    "destination": [1],
}
BY_TYPE: dict[str, list[Any]] = {
    "bool": [True, False],
    "int": [1, 0, 2],
    "float": [0.5, 1e-3],
    "number": [2, 0.5],
    "List[int]": [(1,), 1],
    "Tensor": TENSORS,
    "List[Tensor]": [(floats(2, 3), floats(2, 3)), (floats(3), floats(3))],
}


TRIES = 400
"""How many values for all parameters of a call are tried, at the most, until PyTorch accepts some."""


class Parameter(NamedTuple):
    """One parameter of a schema."""

    name: str
    values: list[Any]
    required: bool
    by_name_only: bool


class Call(NamedTuple):
    """A call: on a tensor if it is a method's. Arrays stand for tensors."""

    method: bool
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def on(self, library: Any) -> Any:
        """The result of the call with a library."""
        args = [_given(one, library) for one in self.args]
        kwargs = {name: _given(one, library, name) for name, one in self.kwargs.items()}
        if self.method:
            return getattr(args[0], self.name)(*args[1:], **kwargs)
        return getattr(library, self.name)(*args, **kwargs)

    def __str__(self) -> str:
        def text(one: Any) -> str:
            if isinstance(one, np.ndarray):
                return f"{one.dtype}{list(one.shape)}"
            return f"[{', '.join(map(text, one))}]" if isinstance(one, tuple) else repr(one)

        words = [text(one) for one in self.args] + [
            f"{name}={text(one)}" for name, one in self.kwargs.items()
        ]
        if self.method:
            return f"{words[0]}.{self.name}({', '.join(words[1:])})"
        return f"{self.name}({', '.join(words)})"


def _given(value: Any, library: Any, name: str = "") -> Any:
    if isinstance(value, np.ndarray):
        return library.tensor(value)
    if isinstance(value, tuple) and any(isinstance(one, np.ndarray) for one in value):
        return [_given(one, library) for one in value]
    return getattr(library, value) if name == "dtype" and isinstance(value, str) else value


torch.set_warn_always(True)  # or a deprecated way to write a call would be one only the first time


def spellings(name: str, method: bool) -> list[Call]:
    """All calls of a function, or method, that PyTorch accepts."""
    accepted: dict[str, Call] = {}
    for parameters in _schemas(name, method):
        for chosen in _choices(parameters):
            values = _values(name, method, chosen)
            if values is not None:
                for call in _ways(name, method, chosen, values):
                    if str(call) not in accepted and _accepts(call):
                        accepted[str(call)] = call
    return [*accepted.values()]


def _schemas(name: str, method: bool) -> Iterator[list[Parameter]]:
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        parameters = [_parameter(one) for one in schema.arguments if one.name not in LEFT_OUT]
        if any(one.name == "out" and not one.has_default_value() for one in schema.arguments):
            continue
        if any(not one.values and one.required for one in parameters):
            continue  # a scalar's, or one that takes names of dimensions
        if method and (not parameters or not any(isinstance(v, np.ndarray) for v in parameters[0].values)):
            continue
        factory = any(one.name == "pin_memory" for one in parameters)
        if factory:
            parameters.append(Parameter("requires_grad", [True], False, True))
        yield [one for one in parameters if one.values]


def _parameter(argument: Any) -> Parameter:
    kind = str(argument.type)
    kind = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
    name = "input" if argument.name == "self" else argument.name
    if kind not in (*BY_TYPE, "str", "Device"):
        values: list[Any] = []
    elif kind == "Tensor":
        fitting = [one for one in BY_NAME.get(name, []) if isinstance(one, np.ndarray)]
        values = fitting or TENSORS
    else:
        fitting = [one for one in BY_NAME.get(name, []) if not isinstance(one, np.ndarray)]
        values = fitting or BY_TYPE.get(kind, [])
    return Parameter(name, values, not argument.has_default_value(), bool(argument.kwarg_only))


def _choices(parameters: list[Parameter]) -> Iterator[list[Parameter]]:
    """Which parameters are given: those that must be; one more; and all that may be given by position."""
    required = [one for one in parameters if one.required]
    yield required
    for more in parameters:
        if not more.required:
            yield [one for one in parameters if one.required or one is more]
    yield [one for one in parameters if one.required or not one.by_name_only]


def _values(name: str, method: bool, chosen: list[Parameter]) -> tuple[Any, ...] | None:
    """Values that PyTorch takes for these parameters, each by its name."""
    for values in itertools.islice(itertools.product(*[one.values for one in chosen]), TRIES):
        for call in (
            _call(name, method, chosen, values, sum(not one.by_name_only for one in chosen)),
            _call(name, method, chosen, values, int(method)),
        ):
            if _accepts(call):
                return values
    return None


def _call(
    name: str, method: bool, chosen: list[Parameter], values: tuple[Any, ...], by_position: int
) -> Call:
    names = [one.name for one in chosen]
    kwargs = dict(zip(names[by_position:], values[by_position:], strict=True))
    return Call(method, name, values[:by_position], kwargs)


def _ways(name: str, method: bool, chosen: list[Parameter], values: tuple[Any, ...]) -> Iterator[Call]:
    """The same call with more or fewer arguments by position, sizes one by one, and NumPy's names."""
    positional = sum(not one.by_name_only for one in chosen)
    for by_position in range(int(method), positional + 1):
        call = _call(name, method, chosen, values, by_position)
        yield call
        alone = by_position == 1 + int(method or chosen[0].name == "input")
        if alone and isinstance(call.args[-1], tuple):
            yield call._replace(args=(*call.args[:-1], *call.args[-1]))
        for given in call.kwargs:
            for other in NUMPY_NAMES.get(given, ()):
                renamed = {other if one == given else one: value for one, value in call.kwargs.items()}
                yield call._replace(kwargs=renamed)
        both = {NUMPY_NAMES.get(one, [one])[0]: value for one, value in call.kwargs.items()}
        if both != call.kwargs:
            yield call._replace(kwargs=both)


def _accepts(call: Call) -> bool:
    """Whether PyTorch takes a call, and has no words against it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "(?s).*deprecated")
        try:
            call.on(torch)
        except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, UserWarning):
            return False
    return True


def names_in(library: Any) -> list[str]:
    """The functions of a module, or methods of a class, that PyTorch has schemas of."""
    found = [name for name in dir(library) if not name.startswith("_")]
    known: Callable[[str], Any] = torch._C._jit_get_schemas_for_operator
    return [name for name in found if callable(getattr(library, name)) and known(f"aten::{name}")]
