"""A server and workers as child processes of a program, which end with it."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gt import config


class LocalProcesses:
    """A server and N workers on this machine.

    They check several times a second whether the process that started them still runs, so they end with it,
    also if it is killed.
    """

    def __init__(
        self,
        workers: int,
        engine: str = "pytorch",
        dispatcher_modifiers: Sequence[str] = (),
        worker_modifiers: Sequence[str] = (),
        enable_sharding: bool = True,
        shard_threshold: int | None = None,
        threads: int | None = None,
    ) -> None:
        each = threads or config.threads() or max(1, (os.cpu_count() or 1) // workers)
        # The path of a socket is limited to about a hundred characters, which that of temporary files may
        # exceed.
        short = len(tempfile.gettempdir()) < 60
        folder = tempfile.mkdtemp(prefix="gt-", dir=None if short else "/tmp")
        self.address = f"ipc://{folder}/server"
        common = ["--address", self.address, "--parent", str(os.getpid())]
        server = [*common, "--expect-workers", str(workers), *_flags(dispatcher_modifiers)]
        server += [] if enable_sharding else ["--no-sharding"]
        server += [] if shard_threshold is None else ["--shard-threshold", str(shard_threshold)]
        worker = [*common, "--engine", engine, "--threads", str(each), *_flags(worker_modifiers)]
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self._start("gt.server", *server)
            for _ in range(workers):
                self._start("gt.worker", *worker)
        except BaseException:
            self.stop()
            raise

    def _start(self, module: str, *arguments: str) -> None:
        # In a session of their own: Ctrl-C is sent to the program only, which ends them.
        self._processes.append(
            subprocess.Popen(
                [sys.executable, "-m", module, *arguments], stdin=subprocess.DEVNULL, start_new_session=True
            )
        )

    def failed(self) -> str | None:
        """A message about a process that has ended too early; None if none has."""
        for process in self._processes:
            if process.poll() is not None:
                command = " ".join(map(str, process.args[1:3]))  # type: ignore[index] - a list
                return f"{command} ended with code {process.returncode} before it was ready"
        return None

    def stop(self) -> None:
        """End the processes, and wait for that. A second call has no effect."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        remove_folder(self.address)


def remove_folder(address: str) -> None:
    """Remove the folder of a local server's sockets: the program does that or, if it was killed, the
    server."""
    if address.startswith("ipc://"):
        shutil.rmtree(Path(address.removeprefix("ipc://")).parent, ignore_errors=True)


def _flags(modifiers: Sequence[str]) -> list[str]:
    return [flag for name in modifiers for flag in ("--modifier", name)]
