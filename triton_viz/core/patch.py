"""Patching: for the duration of a launch, a DSL's ops are routed through the clients' callbacks.

A patch scope is entered at the outermost kernel only, and is always left again, also after an error.
"""

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from triton_viz.core.attributes import set_attributes
from triton_viz.dsls import default_backend, find_dsl
from triton_viz.dsls.base import Accessed, Adapter
from triton_viz.errors import UnsupportedError
from triton_viz.executor.value import Value

if TYPE_CHECKING:
    from triton_viz.core.client import Client, ClientManager, OpCallbacks

Registered = list[tuple["Client", "OpCallbacks"]]
"""Each client of a launch, with its callbacks for ops of one type."""


class Callbacks:
    """What the clients of a launch registered for ops of one type, in the form that `PatchOp` calls."""

    def __init__(self, registered: Registered):
        self.registered = registered
        self.before = [_taking(client, c.before_callback) for client, c in registered if c.before_callback]
        self.after = [_taking(client, c.after_callback) for client, c in registered if c.after_callback]
        self.masks = [_naming(client, c.mask_overrider) for client, c in registered if c.mask_overrider]
        self._are_of_all_ops = all(c.only is None for _, c in registered)

    def of(self, name: str) -> "Callbacks":
        """Those that are called for an op, by its attribute's name."""
        if self._are_of_all_ops:
            return self
        op = _short(name)
        return Callbacks([(client, c) for client, c in self.registered if c.only is None or op in c.only])


class PatchOp:
    """Stands in for one op: adapter, callbacks before, the op or its overrider, callbacks after.

    It replaces the attribute of the builder's class, so its first argument is the builder.
    """

    def __init__(
        self,
        original: Callable,
        name: str,
        adapter: Adapter,
        manager: "ClientManager",
        callbacks: Callbacks,
    ):
        self.adapter = adapter
        self.manager = manager
        self.original = original
        self.name = name
        self.before, self.after, self.masks = callbacks.before, callbacks.after, callbacks.masks
        self._overrider = _only_overrider(name, callbacks.registered)

    def __get__(self, builder: Any, owner: type | None = None) -> Any:
        return self if builder is None else functools.partial(self, builder)

    def __call__(self, builder: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the op, with its own arguments."""
        standard = self.adapter(builder, *args, **kwargs)
        changed = False
        if isinstance(accessed := standard.get("accessed"), Accessed):
            # Once for all clients, and before the op: an address outside of all tensors is never accessed.
            accessed.locate(self.manager.tensors)
            mask = accessed.mask
            for override in self.masks:
                accessed.mask = override(**standard)
            changed = accessed.mask is not mask
        for callback in self.before:
            callback(standard)
        if self._overrider is not None:
            result = self._overrider(*args, **kwargs)
        elif self.masks and accessed is not None and hasattr(builder, "masked_by"):
            with builder.masked_by(accessed.mask):
                result = self.original(builder, *args, **kwargs)
        else:
            if changed:
                raise UnsupportedError(
                    f"a client masks elements of {self.name!r} off, which this backend cannot do: "
                    f"its builder, {type(builder).__name__}, has no masked_by (docs/adding-a-dsl.md)"
                )
            result = self.original(builder, *args, **kwargs)
        for callback in self.after:
            callback({**standard, "result": result})
        return result


def _only_overrider(name: str, callbacks: "Registered") -> Callable[..., Any] | None:
    """The clients' op overrider, if any. Two different overriders are an error."""
    overriding = [(client, c.op_overrider) for client, c in callbacks if c.op_overrider is not None]
    if not overriding:
        return None
    first, overrider = overriding[0]
    for client, other in overriding[1:]:
        if other != overrider:
            raise UnsupportedError(
                f"clients {first.NAME!r} and {client.NAME!r} both override the op {name!r}, with different "
                "functions: trace the kernel with one of them, or let both give the same op_overrider"
            )
    return _naming(first, overrider)


def _taking(client: "Client", callback: Callable[..., None]) -> Callable[[dict[str, Any]], None]:
    """Wraps a callback: takes the standardized arguments, and converts them to the form its client expects.

    A vectorized client receives all lanes at once, any other client plain arrays of one program.
    """
    callback = _naming(client, callback)
    if client.vectorized:
        return lambda standard: callback(**standard)

    def one_program(standard: dict[str, Any]) -> None:
        plain = {name: _plain(value) for name, value in standard.items() if name != "accessed"}
        if (accessed := standard.get("accessed")) is not None:
            plain |= accessed.of_one_program()
        callback(**plain)

    return one_program


def _naming(client: "Client", callback: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a callback so that its errors are attributed to its client, not to the kernel."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return callback(*args, **kwargs)
        except Exception as error:
            error.client = client.NAME  # type: ignore[attr-defined] - for the message
            raise

    return call


def _plain(value: Any) -> Any:
    """Converts a value of a launch with one lane to an array; returns any other object unchanged."""
    if isinstance(value, tuple | list):
        return tuple(_plain(member) for member in value)
    return value.at(0) if isinstance(value, Value) else value


@contextlib.contextmanager
def patch_op(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, every op in the backend's registry calls the clients that registered for its type."""
    dsl = find_dsl(backend)
    patches = []
    # Once per type, not per op: `Compute` is the type of a hundred ops.
    by_type: dict[Any, Callbacks] = {}
    for op_type in {op_type: None for op_type, _ in dsl.operations.values()}:
        asked = [(client, client.register_op_callback(op_type)) for client in manager.clients.values()]
        by_type[op_type] = Callbacks([(client, given) for client, given in asked if _are_any(given)])
    # A client's callback may launch a kernel, whose ops do not belong to the outer launch.
    nested = len(_scopes) > 1
    for name, (op_type, adapter) in dsl.operations.items():
        if not (by_type[op_type].registered or nested):
            continue
        callbacks, present = by_type[op_type].of(name), getattr(dsl.namespace, name)
        original = present.original if isinstance(present, PatchOp) else present
        if callbacks.registered:
            patches.append(
                (dsl.namespace, name, PatchOp(original, _short(name), adapter, manager, callbacks))
            )
        elif original is not present:
            patches.append((dsl.namespace, name, original))
    with set_attributes(patches, of_launch=True):
        yield


def _short(name: str) -> str:
    """An op's name for people, from its attribute's name."""
    return name.removeprefix("create_")


def _are_any(callbacks: "OpCallbacks") -> bool:
    given = (callbacks.before_callback, callbacks.after_callback, callbacks.op_overrider)
    return callbacks.mask_overrider is not None or any(function is not None for function in given)


@contextlib.contextmanager
def patch_for_loop(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, loops of kernels call the clients that registered loop callbacks."""
    callbacks = []
    for client in manager.clients.values():
        asked = client.register_for_loop_callback()
        naming = {name: call and _naming(client, call) for name, call in vars(asked).items()}
        callbacks.append(dataclasses.replace(asked, **naming))
    with find_dsl(backend).patch_loops(callbacks):
        yield


_scopes: list[tuple[str, "ClientManager", int]] = []
"""For each running launch: its backend, its manager and the thread that began it. The innermost launch is
last: a client may launch a kernel from a callback."""


def forget_launches() -> None:
    """There is no launch: in a forked process, whose other threads are not there."""
    _scopes.clear()


def running_backend() -> str:
    """The backend of the innermost running launch; the default one outside of any launch."""
    return _scopes[-1][0] if _scopes else default_backend()


def running_manager() -> "ClientManager | None":
    """The manager of the running launch; None if another thread began it."""
    _, manager, thread = _scopes[-1]
    return manager if thread == threading.get_ident() else None


@contextlib.contextmanager
def patch_calls(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, kernels of this backend run on our executor, and can call each other.

    Only the outermost scope of a backend patches.
    """
    dsl = find_dsl(backend)
    outermost = all(running != backend for running, _, _ in _scopes)
    _scopes.append((backend, manager, threading.get_ident()))
    try:
        with dsl.patch_calls() if outermost else contextlib.nullcontext():
            yield
    finally:
        _scopes.pop()
