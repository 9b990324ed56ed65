"""Signals: names for layouts, which a YAML file defines and a program uses.

    # parallel.yaml, given by GT_CONFIG=parallel.yaml or gt.load_config("parallel.yaml")
    batch:
      shard: {axis: 0, workers: [0, 1, 2, 3]}
    parameters:
      replicate: true

    with gt.signal.context("batch"):
        x = gt.from_numpy(images)            # tensors made inside get the layout of "batch"
    weight = gt.signal.tensor(weight, "parameters")      # the same values, in that layout

A signal has `shard` (an axis and the numbers of workers; all workers by default) or `replicate` (true, or the
numbers of workers). `backward` is the layout of the gradients of tensors that are created inside: another
signal's name, or `shard` or `replicate`. With `compile: true`, the ops inside are a sequence of their own,
which is compiled. With one worker, layouts have no effect.
"""

import contextlib
import difflib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gt.autograd.graph import is_in_backward
from gt.client.client import Client
from gt.client.session import current
from gt.errors import ConfigError
from gt.stream.instruction_table import made_by
from gt.stream.instructions import Boundary, LocalInstruction, Signal
from gt.stream.layouts import Replicated, Sharded
from gt.tensors.base import TensorBase, apply
from gt.tensors.tensor import Tensor

__all__ = ["Scope", "context", "enter", "exit", "load_config", "tensor"]

KEYS = ("shard", "replicate", "backward", "compile")


class Scope(NamedTuple):
    """The definition of a signal."""

    name: str
    layout: Replicated | Sharded | None = None
    workers: tuple[int, ...] = ()
    backward: "Scope | str | None" = None
    compile: bool = False


class _State(threading.local):
    def __init__(self) -> None:
        self.stack: list[Scope] = []


_state = _State()
_scopes: dict[str, Scope] = {}
_loaded: str | None = None
"""The file that GT_CONFIG named when it was last read."""

_MAX_BACKWARD_SIGNALS = 100_000
"""The number of tensors whose backward signal is remembered."""


# --- the public functions ---


def load_config(path: str | os.PathLike[str]) -> dict[str, Scope]:
    """Read signals from a YAML file. They replace those of earlier files."""
    global _scopes, _loaded
    _scopes = _Reader(Path(path)).read()
    _loaded = os.environ.get("GT_CONFIG")
    return dict(_scopes)


@contextlib.contextmanager
def context(name: str) -> Iterator[Scope]:
    """Give tensors that are created inside the signal's layout."""
    scope = enter(name)
    try:
        yield scope
    finally:
        exit(name)


def enter(name: str) -> Scope:
    """Give tensors that this thread creates the signal's layout, until `exit`."""
    scope = _find(name)
    _add_listener(current())
    _state.stack.append(scope)
    if scope.compile:
        current().emit(Boundary(name, True))
    return scope


def exit(name: str | None = None) -> None:
    """Leave the signal that was entered last. Raises ConfigError if that has another name."""
    stack = _state.stack
    inside = stack[-1].name if stack else None
    if inside is None or (name is not None and name != inside):
        raise ConfigError(
            f"exit({name!r}) without enter({name!r})"
            if inside is None
            else f"exit({name!r}) inside {inside!r}"
        )
    if stack.pop().compile:
        current().emit(Boundary(inside, False))


def tensor(x: Tensor, name: str) -> Tensor:
    """A copy of a tensor with the signal's layout. Gradients flow through it."""
    if not isinstance(x, TensorBase):
        raise TypeError(f"gt.signal.tensor() takes a tensor and a signal's name, not {type(x).__name__}")
    with context(name):
        return apply("reshape", (x,), {"shape": x.shape})


# --- signals in the stream ---


def _find(name: str) -> Scope:
    global _loaded
    path = os.environ.get("GT_CONFIG")
    if path and path != _loaded:
        load_config(path)
    if name not in _scopes:
        if not _scopes:
            raise ConfigError(
                f"no signal is called {name!r}: there are none. Name them in a YAML file, and set "
                "GT_CONFIG=file.yaml or call gt.load_config('file.yaml')"
            )
        raise ConfigError(f"no signal is called {name!r}; {_suggest(name, _scopes)}")
    return _scopes[name]


def _suggest(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(map(repr, known))}"


def _add_listener(client: Client) -> None:
    """Issue signals in a client's stream from now on. A client that uses no signals has no listener."""
    if not client.uses_signals:
        client.uses_signals = True
        client.add_listener(_SignalListener(client))


class _SignalListener(NamedTuple):
    """A client's listener: issues a Signal before each instruction whose result has one."""

    client: Client

    def __call__(self, instruction: LocalInstruction) -> None:
        scope = _scope_of(self.client)
        if scope is not None:
            for result in made_by(instruction):
                _issue_signal(self.client, scope, result)


def _scope_of(client: Client) -> Scope | None:
    if is_in_backward():
        return client.backward_signals.get(client.backward_position.tensor)
    return _state.stack[-1] if _state.stack else None


def _issue_signal(client: Client, scope: Scope, result: int) -> None:
    if scope.layout is not None:
        client.emit(Signal(result, scope.name, scope.layout, scope.workers))
    if scope.backward is not None and not is_in_backward():
        backward = _scopes[scope.backward] if isinstance(scope.backward, str) else scope.backward
        known = client.backward_signals
        known[result] = backward
        if len(known) > _MAX_BACKWARD_SIGNALS:
            del known[next(iter(known))]


# --- reading the file ---


class _Reader:
    """Reads a file of signals. Raises ConfigError with the line of a mistake."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Scope]:
        import yaml  # slow to import, and only those who use signals need it

        try:
            text = self._path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{self._path}: cannot read signals: {error.strerror}") from None
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise ConfigError(f"{self._path}:{line}: not valid YAML: the file is not in UTF-8") from None
        try:
            root = yaml.compose(text)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise ConfigError(f"{self._path}:{line}: not valid YAML: {error.problem}") from None
        except yaml.reader.ReaderError as error:
            line = text[: error.position].count("\n") + 1
            raise ConfigError(f"{self._path}:{line}: not valid YAML: {error.reason}") from None
        if root is None:
            return {}
        scopes: dict[str, Scope] = {}
        uses: list[tuple[Any, str]] = []
        for key, node in self._mapping(root, "a file of signals").values():
            scopes[str(key.value)] = self._scope(str(key.value), node, uses)
        for node, name in uses:
            if name not in scopes:
                self._fail(node, f"no signal is called {name!r}; {_suggest(name, scopes)}")
        return scopes

    def _scope(self, name: str, node: Any, uses: list[tuple[Any, str]]) -> Scope:
        entries = self._mapping(node, f"the signal {name!r}")
        for key, _ in entries.values():
            if key.value not in KEYS:
                self._fail(key, f"unknown key {key.value!r} in a signal; {_suggest(key.value, KEYS)}")
        if "shard" in entries and "replicate" in entries:
            self._fail(entries["replicate"][0], f"{name!r} has both shard and replicate: use one of them")
        layout: Replicated | Sharded | None = None
        workers: tuple[int, ...] = ()
        if "shard" in entries:
            layout, workers = self._shard(entries["shard"][1])
        elif "replicate" in entries:
            layout, workers = self._replicate(entries["replicate"][1])
        backward: Scope | str | None = None
        if "backward" in entries:
            given = entries["backward"][1]
            value = self._value(given)
            if isinstance(value, str):
                uses.append((given, value))
                backward = value
            else:
                inner = self._mapping(given, "backward")
                if "backward" in inner:
                    self._fail(inner["backward"][0], "backward cannot have a 'backward' itself")
                backward = self._scope(f"{name}.backward", given, uses)
        return Scope(name, layout, workers, backward, self._truth(entries, "compile"))

    def _shard(self, node: Any) -> tuple[Sharded, tuple[int, ...]]:
        entries = self._mapping(node, "shard")
        for key, _ in entries.values():
            if key.value not in ("axis", "workers"):
                names = _suggest(key.value, ("axis", "workers"))
                self._fail(key, f"unknown key {key.value!r} in shard; {names}")
        axis = 0
        if "axis" in entries:
            axis = self._value(entries["axis"][1])
            if not isinstance(axis, int) or isinstance(axis, bool):
                self._fail(entries["axis"][1], f"axis must be an integer, but got {axis!r}")
        workers = self._workers(entries["workers"][1]) if "workers" in entries else ()
        return Sharded(axis), workers

    def _replicate(self, node: Any) -> tuple[Replicated | None, tuple[int, ...]]:
        value = self._value(node)
        if isinstance(value, bool):
            return (Replicated() if value else None), ()
        if isinstance(value, dict):
            entries = self._mapping(node, "replicate")
            for key, _ in entries.values():
                if key.value != "workers":
                    names = _suggest(key.value, ("workers",))
                    self._fail(key, f"unknown key {key.value!r} in replicate; {names}")
            return Replicated(), self._workers(entries["workers"][1]) if entries else ()
        return Replicated(), self._workers(node)

    def _workers(self, node: Any) -> tuple[int, ...]:
        value: Any = self._value(node)
        if type(value) is int and value > 0:
            return tuple(range(value))  # a number of workers
        numbers: list[Any] = value if isinstance(value, list) else []
        if not numbers or len(set(map(str, numbers))) < len(numbers):
            numbers = [None]
        if not all(type(number) is int and number >= 0 for number in numbers):
            self._fail(node, f"workers must be distinct numbers, such as [0, 1], but got {value!r}")
        return tuple(numbers)

    def _truth(self, entries: dict[str, tuple[Any, Any]], name: str) -> bool:
        if name not in entries:
            return False
        value = self._value(entries[name][1])
        if not isinstance(value, bool):
            self._fail(entries[name][1], f"{name} must be true or false, but got {value!r}")
        return value

    def _mapping(self, node: Any, what: str) -> dict[str, tuple[Any, Any]]:
        if node.id != "mapping":
            self._fail(node, f"{what} must be a mapping of names, but got {self._value(node)!r}")
        entries: dict[str, tuple[Any, Any]] = {}
        for key, value in node.value:
            if key.id != "scalar":
                self._fail(key, f"the keys of {what} must be names")
            if key.value in entries:
                self._fail(key, f"{what} has {key.value!r} twice")
            entries[key.value] = key, value
        return entries

    def _value(self, node: Any) -> Any:
        import yaml

        loader = yaml.SafeLoader("")
        try:
            return loader.construct_document(node)
        except yaml.YAMLError as error:
            self._fail(node, f"not a valid value: {error}")
        finally:
            loader.dispose()

    def _fail(self, node: Any, why: str) -> Any:
        raise ConfigError(f"{self._path}:{node.start_mark.line + 1}: {why}")
