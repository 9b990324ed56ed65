"""Patching: for the duration of a launch, a DSL's ops are routed through the clients' callbacks.

A patch scope is entered at the outermost kernel only, and is always left again, also after an error.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from triton_viz.core.attributes import set_attributes
from triton_viz.core.data import Op
from triton_viz.core.grid.value import Value
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.dsls.base import Accessed, Adapter

if TYPE_CHECKING:
    from triton_viz.core.client import Client, ClientManager


class PatchOp:
    """Stands in for one op: adapter, callbacks before, the op or its overrider, callbacks after.

    It is an attribute of the builder's class, so it is called with the builder first, as the op would be.
    """

    def __init__(
        self, original: Callable, name: str, op_type: type[Op], adapter: Adapter, manager: "ClientManager"
    ):
        self.adapter = adapter
        self.manager = manager
        self.original = original
        asked = [(client, client.register_op_callback(op_type)) for client in manager.clients.values()]
        callbacks = [(client, c) for client, c in asked if c.only is None or name in c.only]
        self.before = [_for(client, c.before_callback) for client, c in callbacks if c.before_callback]
        self.after = [_for(client, c.after_callback) for client, c in callbacks if c.after_callback]
        self.masks = [_blaming(client, c.mask_overrider) for client, c in callbacks if c.mask_overrider]
        # One client may do without real data only if every client can.
        overriders = [c.op_overrider for _, c in callbacks if c.op_overrider]
        self._overrider = overriders[-1] if overriders and len(overriders) == len(asked) else None

    @property
    def wanted(self) -> bool:
        """Whether any client asked for this op."""
        return bool(self.before or self.after or self.masks or self._overrider)

    def __get__(self, builder: Any, owner: type | None = None) -> Any:
        return self if builder is None else functools.partial(self, builder)

    def __call__(self, builder: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the op, with its own arguments."""
        standard = self.adapter(builder, *args, **kwargs)
        if isinstance(accessed := standard.get("accessed"), Accessed):
            # Here, for all clients at once, and before the op: an address that is nobody's is never touched.
            accessed.locate(self.manager.tensors)
            for override in self.masks:
                accessed.mask = override(**standard)
        for callback in self.before:
            callback(standard)
        if self._overrider is not None:
            result = self._overrider(*args, **kwargs)
        elif self.masks and accessed is not None:
            with builder.masked_by(accessed.mask):
                result = self.original(builder, *args, **kwargs)
        else:
            result = self.original(builder, *args, **kwargs)
        for callback in self.after:
            callback({**standard, "result": result})
        return result


def _for(client: "Client", callback: Callable[..., None]) -> Callable[[dict[str, Any]], None]:
    """A callback, called with what its client takes: all lanes at once, or plain arrays of one program."""
    callback = _blaming(client, callback)
    if client.vectorized:
        return lambda standard: callback(**standard)

    def one_program(standard: dict[str, Any]) -> None:
        plain = {name: _plain(value) for name, value in standard.items() if name != "accessed"}
        if (accessed := standard.get("accessed")) is not None:
            plain |= accessed.of_one_program()
        callback(**plain)

    return one_program


def _blaming(client: "Client", callback: Callable[..., Any]) -> Callable[..., Any]:
    """A callback whose errors say that they are the client's, and not the kernel's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return callback(*args, **kwargs)
        except Exception as error:
            error.client = client.NAME  # type: ignore[attr-defined] - for the message
            raise

    return call


def _plain(value: Any) -> Any:
    """A value of the only program, as an array; what is no value as it is."""
    if isinstance(value, tuple | list):
        return tuple(_plain(member) for member in value)
    return value.at(0) if isinstance(value, Value) else value


@contextlib.contextmanager
def patch_op(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, every op in the backend's registry calls the clients that asked for it."""
    dsl = OPERATION_REGISTRY[backend]
    patches = []
    for name, (op_type, adapter) in dsl.operations.items():
        present = getattr(dsl.namespace, name)
        # A client's callback may launch a kernel. Its ops are not the outer launch's.
        original = present.original if isinstance(present, PatchOp) else present
        patched = PatchOp(original, name.removeprefix("create_"), op_type, adapter, manager)
        if patched.wanted or original is not present:
            patches.append((dsl.namespace, name, patched if patched.wanted else original))
    with set_attributes(patches):
        yield


@contextlib.contextmanager
def patch_for_loop(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, loops of kernels call the clients that asked for them."""
    callbacks = []
    for client in manager.clients.values():
        asked = client.register_for_loop_callback()
        blaming = {name: call and _blaming(client, call) for name, call in vars(asked).items()}
        callbacks.append(dataclasses.replace(asked, **blaming))
    with OPERATION_REGISTRY[backend].patch_loops(callbacks):
        yield


_running = ["triton"]
"""The backends of the launches that run, the innermost last: a client may launch a kernel from a callback."""


def running_backend() -> str:
    """The backend of the launch that runs."""
    return _running[-1]


@contextlib.contextmanager
def patch_calls(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, kernels of this backend run on our executor, and can call each other."""
    _running.append(backend)
    try:
        with OPERATION_REGISTRY[backend].patch_calls(manager):
            yield
    finally:
        _running.pop()
