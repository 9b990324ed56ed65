"""The server that a program uses: one it connects to, one it starts, or one inside its own process."""

import atexit
import os
import threading
from collections.abc import Sequence

from gt import config
from gt.client.client import Client
from gt.errors import ConnectionLost
from gt.ops.engines import ENGINES
from gt.stream import modifiers as streams
from gt.stream.modifiers import ModifierLike, Modifiers

_lock = threading.RLock()
_current: Client | None = None

START_SECONDS = 600.0
"""How long local processes may take to start, beside busy ones. If one ends, it is noticed at once."""


def current() -> Client:
    """The program's client. The first call starts a server: in this process or, with GT_WORKERS, in
    others."""
    client = _current
    if client is None:
        with _lock:
            client = _current or init(config.workers())
    return client


def connect(address: str, timeout: float = 5.0, modifiers: Sequence[ModifierLike] = ()) -> Client:
    """Use the server at this address ('host:port') from now on.

    Tensors created before belong to the previous server and cannot be used any more. `modifiers` change the
    stream as it leaves this program: see docs/writing-a-stream-modifier.md.
    """
    from gt.client.connection import RemoteConnection

    installed = streams.Installed(modifiers)  # before connecting: if it raises, no connection is left open
    return _use(Client(RemoteConnection(address, timeout), installed))


def init(
    workers: int | None = None,
    engine: str = "pytorch",
    modifiers: Modifiers | None = None,
    enable_sharding: bool = True,
    shard_threshold: int | None = None,
) -> Client:
    """Start a server of this program's own, and use it from now on.

    Without `workers`, it runs in this process; with `workers=N`, N worker processes are started, which end
    with the program. Over several workers, tensors of at least `shard_threshold` elements (2048) are
    split, unless `enable_sharding=False`. `modifiers` change the stream at a layer: `{"client": [Class],
    "worker": ["package.module:Class"]}`.
    """
    chosen = streams.check(modifiers)
    at_client = streams.Installed(chosen.get("client", ()))
    at_dispatcher, at_worker = chosen.get("dispatcher", ()), chosen.get("worker", ())
    if engine not in ENGINES:
        raise ValueError(f"no engine is called {engine!r}; there are {', '.join(sorted(ENGINES))}")
    if workers is None:
        from gt.server.embedded import LocalConnection, LocalServer

        server = LocalServer(engine, at_dispatcher, at_worker)
        return _use(Client(LocalConnection(server), at_client))
    if workers < 1:
        raise ValueError(f"workers must be the number of processes to start, at least 1, but got {workers}")
    from gt.client.connection import RemoteConnection
    from gt.server.local import LocalProcesses

    with _lock:
        close()
        processes = LocalProcesses(
            workers,
            engine,
            streams.names(at_dispatcher),
            streams.names(at_worker),
            enable_sharding,
            shard_threshold,
        )
        try:
            return _use(Client(RemoteConnection(processes.address, START_SECONDS, processes), at_client))
        except ConnectionLost as error:
            why = processes.failed() or str(error)
            processes.stop()
            raise ConnectionLost(f"the local server did not start: {why}") from None
        except BaseException:
            processes.stop()
            raise


def _use(client: Client) -> Client:
    """Make this the program's client, and close the previous one, with its server if this program started
    it."""
    global _current
    with _lock:
        before, _current = _current, client
        if before is not None:
            before.close()
    return client


@atexit.register
def close() -> None:
    """Disconnect from the server, and end it if this program started it. The next op starts another."""
    global _current
    with _lock:
        client, _current = _current, None
        if client is not None:
            client.close()


def _after_fork() -> None:
    """In a forked child: the parent's connection and processes cannot be used, and must not be ended."""
    global _current, _lock
    _lock = threading.RLock()
    if _current is not None and _current.after_fork():
        _current = None


def _before_fork() -> None:
    """Wait for the end of the current batch, so that none is half sent in the child."""
    if _current is not None:
        _current.hold()
        _current.connection.before_fork()


def _after_fork_in_parent() -> None:
    if _current is not None:
        _current.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
