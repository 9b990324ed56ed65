"""Patching: for the duration of a launch, a DSL's ops are routed through the clients' callbacks.

A patch scope is entered at the outermost kernel only, and is always left again, also after an error.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from triton_viz.core.attributes import set_attribute
from triton_viz.core.data import Op
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
        self._original = original
        asked = [(client, client.register_op_callback(op_type)) for client in manager.clients.values()]
        callbacks = [(client, c) for client, c in asked if c.only is None or name in c.only]
        self.before = [_for(client, c.before_callback) for client, c in callbacks if c.before_callback]
        self.after = [_for(client, c.after_callback) for client, c in callbacks if c.after_callback]
        # One client may do without real data only if every client can.
        overriders = [c.op_overrider for _, c in callbacks if c.op_overrider]
        self._overrider = overriders[-1] if overriders and len(overriders) == len(asked) else None

    @property
    def wanted(self) -> bool:
        """Whether any client asked for this op."""
        return bool(self.before or self.after or self._overrider)

    def __get__(self, builder: Any, owner: type | None = None) -> Any:
        return self if builder is None else functools.partial(self, builder)

    def __call__(self, builder: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the op, with its own arguments."""
        standard = self.adapter(builder, *args, **kwargs)
        if isinstance(accessed := standard.get("accessed"), Accessed):
            # Here, for all clients at once, and before the op: an address that is nobody's is never touched.
            accessed.locate(self.manager.tensors)
        for callback in self.before:
            callback(standard)
        if self._overrider is not None:
            result = self._overrider(*args, **kwargs)
        else:
            result = self._original(builder, *args, **kwargs)
        for callback in self.after:
            callback({**standard, "result": result})
        return result


def _for(client: "Client", callback: Callable[..., None]) -> Callable[[dict[str, Any]], None]:
    """A callback, called with what its client takes: all lanes at once, or plain arrays of one program."""
    if client.vectorized:
        return lambda standard: callback(**standard)

    def one_program(standard: dict[str, Any]) -> None:
        plain = {name: value for name, value in standard.items() if name != "accessed"}
        if (accessed := standard.get("accessed")) is not None:
            plain |= accessed.of_one_program()
        callback(**plain)

    return one_program


@contextlib.contextmanager
def patch_op(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, every op in the backend's registry calls the clients that asked for it."""
    dsl = OPERATION_REGISTRY[backend]
    with contextlib.ExitStack() as stack:
        for name, (op_type, adapter) in dsl.operations.items():
            short = name.removeprefix("create_")
            patched = PatchOp(getattr(dsl.namespace, name), short, op_type, adapter, manager)
            if patched.wanted:
                stack.enter_context(set_attribute(dsl.namespace, name, patched))
        yield


@contextlib.contextmanager
def patch_for_loop(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, loops of kernels call the clients that asked for them."""
    callbacks = [client.register_for_loop_callback() for client in manager.clients.values()]
    with OPERATION_REGISTRY[backend].patch_loops(callbacks):
        yield


@contextlib.contextmanager
def patch_calls(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, kernels of this backend run on our executor, and can call each other."""
    with OPERATION_REGISTRY[backend].patch_calls(manager):
        yield
