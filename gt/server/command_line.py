"""What the command lines of server and worker share."""

import os
import signal
import sys
from collections.abc import Callable

DEFAULT_PORT = 12345


def say(message: str) -> None:
    """Print a line about a server or worker."""
    print(f"[gt] {message}", flush=True)


def stop_on_sigterm() -> None:
    """End as cleanly on a kill as on Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def watch(parent: int | None) -> Callable[[], bool]:
    """Whether the process that started this one, if it matters, is still there."""
    return lambda: parent is None or os.getppid() == parent


def fail(message: str) -> None:
    """End with a message."""
    print(f"[gt] {message}", file=sys.stderr, flush=True)
    sys.exit(1)
