"""Which server the program talks to: one it was told of, one it starts, or one inside itself."""

import atexit
import threading

from gt.client.client import Client

_lock = threading.RLock()
_current: Client | None = None


def current() -> Client:
    """The program's client. The first call starts a server inside the program."""
    global _current
    client = _current
    if client is None:
        with _lock:
            client = _current
            if client is None:
                client = _start_embedded()
    return client


def _start_embedded() -> Client:
    from gt.server.local import LocalConnection, LocalServer

    return use(Client(LocalConnection(LocalServer())))


def use(client: Client) -> Client:
    """Make this the program's client, in place of the one before."""
    global _current
    with _lock:
        if _current is not None:
            _current.close()
        _current = client
    return client


@atexit.register
def close() -> None:
    """Leave the server; the next op starts anew."""
    global _current
    with _lock:
        client, _current = _current, None
        if client is not None:
            client.close()
