"""Patching: for the duration of a launch, a DSL's ops are routed through the clients' callbacks.

A patch scope is entered at the outermost kernel only, and is always left again, also after an error.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from triton_viz.core.data import Op
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.dsls.base import Adapter

if TYPE_CHECKING:
    from triton_viz.core.client import ClientManager


class PatchOp:
    """Stands in for one op: adapter, callbacks before, the op or its overrider, callbacks after."""

    def __init__(self, original: Callable, op_type: type[Op], adapter: Adapter, manager: "ClientManager"):
        self.adapter = adapter
        self.manager = manager
        callbacks = [client.register_op_callback(op_type) for client in manager.clients.values()]
        self.before = [c.before_callback for c in callbacks if c.before_callback]
        self.after = [c.after_callback for c in callbacks if c.after_callback]
        # One client may do without real data only if every client can.
        overriders = [c.op_overrider for c in callbacks if c.op_overrider]
        self._run = overriders[-1] if overriders and len(overriders) == len(callbacks) else original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the op, with its own arguments."""
        standard = self.adapter(*args, **kwargs)
        if "addresses" in standard:
            # Here, for all clients at once, and before the op: an address that is nobody's is never touched.
            addresses, width = standard.pop("addresses"), standard.pop("width")
            found = self.manager.memory.locate(addresses, standard["mask"], width)
            standard["tensor"], standard["offsets"] = found
        for callback in self.before:
            callback(**standard)
        result = self._run(*args, **kwargs)
        for callback in self.after:
            callback(result=result, **standard)
        return result


@contextlib.contextmanager
def patch_op(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, every op in the backend's registry calls the clients that asked for it."""
    dsl = OPERATION_REGISTRY[backend]
    with contextlib.ExitStack() as stack:
        for name, (op_type, adapter) in dsl.operations.items():
            patched = PatchOp(getattr(dsl.namespace, name), op_type, adapter, manager)
            stack.enter_context(set_attribute(dsl.namespace, name, patched))
        yield


@contextlib.contextmanager
def patch_calls(backend: str, manager: "ClientManager") -> Iterator[None]:
    """While inside, launches report arguments, grid and programs, and kernels can call each other."""
    with OPERATION_REGISTRY[backend].patch_calls(manager):
        yield


@contextlib.contextmanager
def set_attribute(owner: object, name: str, value: Any) -> Iterator[None]:
    """Set an attribute for a while. One that came from the class is removed again, not copied down."""
    own = name in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
