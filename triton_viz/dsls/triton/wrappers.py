"""Wrappers of a kernel: autotuning and heuristics; and the binding of a launch's arguments.

Triton times the configs of an autotuned kernel on the GPU. Here nothing can be timed, so the first config
that its own pruning leaves is taken, and logged once per kernel: a warning of the logger "triton_viz"
(`logging.getLogger("triton_viz").setLevel(logging.ERROR)` silences it). A config that Triton has timed
before is used as it is.
"""

import dataclasses
import difflib
import functools
import inspect
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from triton.backends import backends
from triton.runtime.autotuner import Autotuner, Config, Heuristics

from triton_viz.dsls.base import Call
from triton_viz.dsls.triton import compat
from triton_viz.errors import UnsupportedError

_log = logging.getLogger("triton_viz")

_choices: WeakKeyDictionary[Any, dict[tuple, Config]] = WeakKeyDictionary()
"""For each autotuner, the chosen config by tuning key, like Triton's own cache after timing."""


@dataclasses.dataclass(frozen=True)
class TritonCall(Call):
    """A launch with every wrapper resolved; `kernel` is the one inside the wrappers."""

    def source(self) -> tuple[Sequence[str], int]:
        """The kernel's lines when it was decorated, and the line number of the first one in its file."""
        return super().source() if self.kernel is None else compat.source_of(self.kernel)


@dataclasses.dataclass(frozen=True)
class Unwrapped:
    """A kernel, and the wrappers around it, outermost first."""

    kernel: Any
    wrappers: tuple[Autotuner | Heuristics, ...]

    @property
    def fn(self) -> Callable:
        """The plain Python function of the kernel."""
        return self.kernel.fn

    def resolve(self, args: Sequence[Any], kwargs: Mapping[str, Any], grid: Any = None) -> TritonCall:
        """Apply the wrappers to this launch: choose a config, evaluate heuristics, and run hooks as Triton
        does."""
        # Triton passes these by name like any argument, so a heuristic or a hook may read them.
        named = {"grid": grid, "warmup": False, **kwargs}
        for wrapper in self.wrappers:
            decide = _tune if isinstance(wrapper, Autotuner) else _follow_heuristics
            named = decide(wrapper, args, named)
        del named["grid"], named["warmup"]
        for hook in getattr(self.kernel, "pre_run_hooks", ()):
            hook(*args, **named)
        arguments = bind(self.fn, args, named)
        options = {name: value for name, value in named.items() if name not in arguments}
        return TritonCall(self.fn, arguments, options, self.kernel)


def bind_launch(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> TritonCall | None:
    """`DSL.bind`: resolve a launch of a kernel; None for a warm-up, which does not run the kernel."""
    if kwargs.pop("warmup", False):
        return None
    return (kernel if isinstance(kernel, Unwrapped) else unwrap(kernel)).resolve(args, kwargs, grid)


def unwrap(kernel: Any) -> Unwrapped:
    """The kernel inside any nesting of `triton.autotune` and `triton.heuristics`."""
    wrappers = []
    inner = kernel
    while isinstance(inner, Autotuner | Heuristics):
        wrappers.append(inner)
        inner = inner.fn
    if not inspect.isfunction(getattr(inner, "fn", None)):
        raise UnsupportedError(
            f"{type(kernel).__name__} is not a kernel: expected a @triton.jit function, on its own or under "
            f"@triton.autotune and @triton.heuristics, and found {type(inner).__name__}"
        )
    return Unwrapped(inner, tuple(wrappers))


def _follow_heuristics(wrapper: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    by_position = dict(zip(wrapper.arg_names, args, strict=False))
    for name, heuristic in wrapper.values.items():
        kwargs = {**kwargs, name: heuristic({**by_position, **kwargs})}
    return kwargs


def _tune(tuner: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    try:
        config, fresh = _choose(tuner, kwargs)
        tuner.best_config = config  # libraries read it after a launch, to launch a sibling the same way
        chosen = config.all_kwargs()
        if twice := kwargs.keys() & chosen.keys():
            raise UnsupportedError(
                f"kernel {_name(tuner)}: {', '.join(sorted(twice))} is given at the launch, but it is "
                "autotune that sets it: leave it out of the launch, or out of the configs"
            )
        everything = {**tuner.nargs, **kwargs, **chosen}
        # After timing, and before the actual run, Triton zeroes the tensors in `reset_to_zero`, and restores
        # those in `restore_value`, which have not changed here.
        if fresh:
            tuner.pre_hook(everything, reset_only=True)
        if config.pre_hook is not None:
            config.pre_hook(everything)
    finally:
        tuner.nargs = None
    return {**kwargs, **chosen}


def _choose(tuner: Any, kwargs: dict[str, Any]) -> tuple[Config, bool]:
    """The config for these arguments, and whether Triton would have timed several to find it."""
    if len(tuner.configs) == 1:
        return tuner.configs[0], False
    named = {name: v for name, v in {**tuner.nargs, **kwargs}.items() if name in tuner.arg_names}
    key = tuple(named[name] for name in tuner.keys if name in named)
    key += tuple(str(value.dtype) for value in named.values() if hasattr(value, "dtype"))
    if key in tuner.cache:
        return tuner.cache[key], False
    said = tuner in _choices
    choices = _choices.setdefault(tuner, {})
    if key in choices:
        return choices[key], False
    left = _prune(tuner, kwargs)
    choices[key] = left[0]
    if len(left) > 1 and not said:
        _log.warning(
            "kernel %s: no GPU to time its %d autotune configs, so it runs with the first: %s",
            *(_name(tuner), len(left), left[0]),
        )
    return left[0], len(left) > 1


def _prune(tuner: Any, kwargs: dict[str, Any]) -> list[Config]:
    try:
        left = tuner.prune_configs(kwargs)
    except (RuntimeError, AssertionError):
        if tuner.perf_model is None:
            raise
        # A performance model may query a clock rate or a bandwidth of the GPU.
        model, tuner.perf_model = tuner.perf_model, None
        try:
            left = tuner.prune_configs(kwargs)
        finally:
            tuner.perf_model = model
    if not left:
        raise UnsupportedError(
            f"kernel {_name(tuner)}: its early_config_prune left none of {len(tuner.configs)} configs"
        )
    return left


def _name(wrapper: Any) -> str:
    return unwrap(wrapper).fn.__name__


def bind(kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each of a kernel's parameters, in their order, for a launch with these arguments.

    Options to the compiler, such as num_warps, are left out, unless the kernel has a parameter of that name.
    """
    fn = kernel if inspect.isfunction(kernel) else unwrap(kernel).fn
    signature = signature_of(fn)
    given = {name: value for name, value in kwargs.items() if name in signature.parameters}
    for name in kwargs.keys() - given.keys() - launch_options():
        near = difflib.get_close_matches(name, signature.parameters, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(signature.parameters)}."
        raise UnsupportedError(f"kernel {fn.__name__} has no argument {name!r}: {hint}")
    try:
        bound = signature.bind(*args, **given)
    except TypeError as error:
        raise UnsupportedError(f"kernel {fn.__name__}: {_mistake(signature, args, given, error)}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def _mistake(
    signature: inspect.Signature, args: Sequence[Any], given: Mapping[str, Any], error: TypeError
) -> str:
    """The reason why arguments could not be bound."""
    names = list(signature.parameters)
    if len(args) > len(names):
        return f"it takes {len(names)} arguments, and the launch gives {len(args)} by position"
    by_position = names[: len(args)]
    if twice := [name for name in by_position if name in given]:
        return f"argument {', '.join(map(repr, twice))} is given by position and again by name"
    required = [name for name, p in signature.parameters.items() if p.default is inspect.Parameter.empty]
    missing = [repr(name) for name in required if name not in by_position and name not in given]
    return f"the launch lacks argument {', '.join(missing)}" if missing else str(error)


@functools.cache
def signature_of(fn: Callable) -> inspect.Signature:
    """The parameters of a kernel's function."""
    return inspect.signature(fn)


@functools.cache
def launch_options() -> frozenset[str]:
    """The keyword arguments of a launch that are options of a compiler, not parameters of the kernel.

    They are the options of all backends of the installed Triton. Options of backends that are not installed
    (Intel's grf_mode) are not known, and a library passes them on such a backend only.
    """
    names = {*Config({}).all_kwargs(), "maxnreg", "ir_override"}
    for backend in backends.values():
        for value in vars(sys.modules[backend.compiler.__module__]).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value) and "Options" in value.__name__:
                names.update(field.name for field in dataclasses.fields(value))
    return frozenset(names)
