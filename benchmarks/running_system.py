"""The GT system that a script measures: one that runs already, or one of its own."""

import socket

import gt
from gt.command_line import DEFAULT_PORT


def use_system(address: str | None = None, *, port: int = DEFAULT_PORT) -> str:
    """Connect to the system at an address, or at the default port if one runs there, or start one.

    The result says which one it is.
    """
    if address is not None:
        gt.connect(address)
        return f"the system at {address}"
    place = f"localhost:{port}"
    if not _listens(port):
        why = f"none runs at {place}"
    else:
        try:
            gt.connect(place, timeout=30)
            if gt.debug.get_dispatcher_stats()["workers"]:
                return f"the system at {place}"
            why = f"the one at {place} has no workers"
        except gt.errors.GTError as error:
            why = f"what listens at {place} cannot be used: {error}"
    gt.init(workers=1)
    return f"a system of its own, a server and a worker, as {why}"


def _listens(port: int) -> bool:
    """Whether something listens at a port. Tried by binding to it, which does not disturb the listener."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return True
    return False
