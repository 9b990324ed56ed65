"""Modules: the base class of layers and models."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from gt.autograd.graph import no_grad
from gt.errors import DTypeError, StateError
from gt.ops import dtypes
from gt.tensors.base import check_dtype
from gt.tensors.functions.creation import as_tensor, zeros
from gt.tensors.methods.casts import is_device
from gt.tensors.tensor import Tensor


class Parameter(Tensor):
    """A tensor that is learned: it requires a gradient, and modules find it among their attributes."""

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__(as_tensor(data)._value, None)
        if requires_grad:
            self.requires_grad_()

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Keys(NamedTuple):
    """The names that a model and a state dict do not share."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Parameters(list[Any]):
    """A module's parameters: a list of which `next(model.parameters())` gives the first, as in PyTorch."""

    def __next__(self) -> Any:
        if not self:
            raise StopIteration
        return self[0]


class Module:
    """Base class of models and layers: subclass it, make layers in `__init__`, use them in `forward`.

    Its parameters and submodules are looked up in its attributes, and in lists, tuples and dicts there,
    whenever they are listed. So nothing needs to be registered, layers may be kept in
    a plain list, and `super().__init__()` may be forgotten. Names are PyTorch's: `blocks.0.fc.weight`.
    """

    training: bool = True

    def __init__(self) -> None:
        """Does nothing: `super().__init__()` may be called, as in PyTorch, or left out."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's computation. Subclasses define it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`."""
        return self.forward(*args, **kwargs)

    # --- submodules and parameters ---

    def _own(self) -> Iterator[tuple[str, "Module | Tensor"]]:
        """Named modules and tensors among the attributes, also those in lists, tuples and dicts."""
        seen: set[int] = set()
        for name, value in vars(self).items():
            if name != "_parameters":
                yield from _unpack(name, value, seen)

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """The modules directly inside, with their names."""
        seen: set[int] = set()
        for name, value in self._own():
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def children(self) -> Iterator["Module"]:
        """The modules directly inside."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """This module and all inside it, each once, with their names."""
        seen: set[int] = set()
        for name, module in self._tree(prefix, ()):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self) -> Iterator["Module"]:
        """This module and all inside it, each once."""
        return (module for _, module in self.named_modules())

    def _tree(self, prefix: str, above: tuple["Module", ...]) -> Iterator[tuple[str, "Module"]]:
        """Every path to a module; one that is shared has several."""
        if any(module is self for module in above):
            return  # a module that refers to its parent
        yield prefix, self
        for name, value in self._own():
            if isinstance(value, Module):
                yield from value._tree(f"{prefix}.{name}" if prefix else name, (*above, self))

    def _state(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Every path to a parameter or buffer that is saved."""
        for path, module in self._tree(prefix, ()):
            for name, value in module._tensors():
                if name not in module._unsaved_buffers():
                    yield f"{path}.{name}" if path else name, value

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """This module's own parameters, then its own buffers."""
        buffers = self._buffer_names()
        own = [(name, value) for name, value in self._own() if isinstance(value, Tensor)]
        yield from ((name, value) for name, value in own if isinstance(value, Parameter))
        yield from ((name, value) for name, value in own if name in buffers)

    def _buffer_names(self) -> dict[str, bool]:
        """Names of the buffers, and whether each is saved."""
        return vars(self).get("_buffers", {})

    def _unsaved_buffers(self) -> set[str]:
        return {name for name, saved in self._buffer_names().items() if not saved}

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """All parameters, each once, with their names."""
        seen: set[int] = set()
        modules = [*self._tree(prefix, ())] if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in module._tensors():
                if isinstance(value, Parameter) and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value
        # Lists made by users mostly have parameters that were found above under other names.
        for path, module in modules:
            for index, value in enumerate(vars(module).get("_parameters", ())):
                if id(value) not in seen:
                    seen.add(id(value))
                    name = f"_parameters.{index}"
                    yield f"{path}.{name}" if path else name, value

    def parameters(self, recurse: bool = True) -> "Parameters":
        """All parameters, each once. A list, so that `a.parameters() + b.parameters()` is one too."""
        return Parameters(value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Tensors that are part of the model's state but are not learned, with their names."""
        seen: set[int] = set()
        for path, module in self._tree(prefix, ()):
            names = module._buffer_names()
            for name, value in module._tensors():
                if name in names and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def buffers(self) -> list[Tensor]:
        """Tensors that are part of the model's state but are not learned."""
        return [value for _, value in self.named_buffers()]

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make a tensor part of the model's state without learning it; saved if it is persistent."""
        if "." in name or not name:
            raise KeyError(f"buffer name can't be empty or contain a dot, but got {name!r}")
        if hasattr(self, name) and name not in self._buffer_names():
            raise KeyError(f"attribute '{name}' already exists")
        vars(self).setdefault("_buffers", {})[name] = persistent
        setattr(self, name, tensor)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Assign a parameter to the attribute of this name."""
        setattr(self, name, param)

    def get_submodule(self, target: str) -> "Module":
        """The module of this name."""
        for name, module in self._tree("", ()):
            if name == target:
                return module
        raise AttributeError(f"{type(self).__name__} has no module called {target!r}")

    # --- changing all parameters and submodules ---

    def apply(self, fn: Callable[["Module"], None]) -> Self:
        """Call a function with every module inside, and then with this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Switch to training mode, in which dropout is active."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Switch to evaluation mode, in which dropout has no effect."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients are computed for the parameters. False freezes them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients to None, or to zeros."""
        clear_gradients(self.parameters(), set_to_none)

    def __setattr__(self, name: str, value: Any) -> None:
        # Parameters are found by type: a plain tensor assigned in place of one would not be trained.
        before = vars(self).get(name)
        for kind, words in ((Parameter, "parameter"), (Module, "child module")):
            if isinstance(before, kind) and not isinstance(value, kind | None):
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as {words} '{name}' ({kind.__name__} or None "
                    f"expected). To change its values: `with no_grad(): module.{name}.copy_(...)`"
                )
        super().__setattr__(name, value)

    def cpu(self) -> Self:
        """The module itself: the server decides where tensors are."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """The module itself: a worker that has a GPU uses it."""
        return self

    def to(self, dtype: Any = None, *, device: Any = None) -> Self:
        """Convert all floating point parameters and buffers to a dtype. A device has no effect."""
        if dtype is None or is_device(dtype):
            return self
        name = check_dtype(dtype)
        if not dtypes.is_float(name):
            raise DTypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={name}")
        with no_grad():
            for value in [*self.parameters(), *self.buffers()]:
                if value.is_floating_point():
                    value.data = value.data.to(name)
                    value.grad = None if value.grad is None else value.grad.to(name)
        return self

    def float(self) -> Self:
        """Make every parameter float32."""
        return self.to("float32")

    def double(self) -> Self:
        """Make every parameter float64."""
        return self.to("float64")

    def half(self) -> Self:
        """Make every parameter float16."""
        return self.to("float16")

    def bfloat16(self) -> Self:
        """Make every parameter bfloat16."""
        return self.to("bfloat16")

    # --- saving and loading ---

    def state_dict(self) -> dict[str, Tensor]:
        """A copy of every parameter and saved buffer, by name: later training does not change it."""
        state = {name: value.detach() for name, value in self._state()}
        known = {id(value) for _, value in self._state()}
        # Tensors that are only in a list the user made.
        extra = {name: value for name, value in self.named_parameters() if id(value) not in known}
        return state | {name: value.detach() for name, value in extra.items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Keys:
        """Load parameters and buffers from a `state_dict()` of GT or PyTorch, or from arrays by name.

        If one name or shape does not fit, nothing is changed. With strict=False names may be missing or
        unknown.
        """
        own: dict[str, Tensor] = dict(self._state()) | dict(self.named_parameters())
        keys = Keys([name for name in own if name not in state_dict], [n for n in state_dict if n not in own])
        problems = []
        if strict and keys.unexpected_keys:
            problems.append(f"Unexpected key(s) in state_dict: {_quoted(keys.unexpected_keys)}. ")
        if strict and keys.missing_keys:
            problems.append(f"Missing key(s) in state_dict: {_quoted(keys.missing_keys)}. ")
        for name, value in own.items():
            given = value.shape if name not in state_dict else _shape(state_dict[name])
            if given != value.shape:
                problems.append(
                    f"size mismatch for {name}: copying a param with shape {list(given)} from checkpoint, "
                    f"the shape in current model is {list(value.shape)}."
                )
        if problems:
            lines = "".join(f"\n\t{problem}" for problem in problems)
            raise StateError(f"Error(s) in loading state_dict for {type(self).__name__}:{lines}")
        with no_grad():
            for name, value in own.items():
                if name in state_dict:
                    value.data = as_tensor(state_dict[name]).detach().to(value.dtype)
        return keys

    # --- showing ---

    def extra_repr(self) -> str:
        """The text between a layer's parentheses when it is printed."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {child!r}" for name, child in self.named_children()]
        name, extra = type(self).__name__, self.extra_repr()
        if not lines:
            return f"{name}({extra})"
        indented = "".join("\n  " + line.replace("\n", "\n  ") for line in ([extra] if extra else []) + lines)
        return f"{name}({indented}\n)"


def clear_gradients(parameters: Iterable[Any], set_to_none: bool) -> None:
    """Set gradients to None, or to zeros."""
    for parameter in parameters:
        if set_to_none:
            parameter.grad = None
        elif parameter.grad is not None:
            parameter.grad = zeros(parameter.shape, dtype=parameter.dtype)


def _unpack(name: str, value: Any, seen: set[int]) -> Iterator[tuple[str, "Module | Tensor"]]:
    if isinstance(value, Module | Tensor):
        yield name, value
    elif isinstance(value, list | tuple | dict) and id(value) not in seen:
        seen.add(id(value))
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            if isinstance(item, Module | Tensor | list | tuple | dict):
                yield from _unpack(f"{name}.{key}", item, seen)


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)
