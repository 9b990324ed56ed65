"""Runs Python programs in forks of a process that has imported torch.

Tests start about 150 programs that import torch, and the import takes longer than what most of them do. Each
program has an interpreter's state of its own, apart from the modules that torch has imported. What is about
that state is tested in a new process (see `run_python`), and `make test-all` starts one for every program.

This file is also the program that forks: `python tests/preloaded.py FD`, with a socket for requests.
"""

import contextlib
import gc
import importlib.machinery
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# --- in the tests ---


class Preloaded:
    """A process that has imported torch, for one program after another."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", __file__, str(theirs.fileno())],
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self, *arguments: str, cwd: Path, environment: dict[str, str], timeout: float
    ) -> tuple[int | None, str, str]:
        """What `python ARGUMENTS` returned (None if it hangs), and printed on its two streams."""
        (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
        request = json.dumps([arguments, str(cwd), environment]).encode()
        socket.send_fds(self._socket, [len(request).to_bytes(4, "little")], [theirs_out, theirs_err])
        os.close(theirs_out)
        os.close(theirs_err)
        self._socket.sendall(request)
        pid = self._number()
        try:
            late = not self._read({out: (printed := bytearray()), err: (errors := bytearray())}, timeout)
            if late:
                os.kill(pid, signal.SIGABRT)
                self._read({out: printed, err: errors}, timeout)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            self._number()
            raise
        finally:
            os.close(out)
            os.close(err)
        code = self._number()
        return None if late else code, printed.decode(), errors.decode()

    def close(self) -> None:
        """End it, after its last program."""
        self._socket.close()
        self._process.wait()

    def _number(self) -> int:
        received = self._socket.recv(4, socket.MSG_WAITALL)
        if len(received) < 4:
            raise RuntimeError(f"the process that forks has ended: {self._process.wait()}")
        return int.from_bytes(received, "little", signed=True)

    def _read(self, into: dict[int, bytearray], timeout: float) -> bool:
        """Read both streams to their end. Returns False if they have not ended in time."""
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for stream in into:
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                if (left := deadline - time.monotonic()) <= 0:
                    return False
                for key, _ in selector.select(left):
                    data = os.read(key.fd, 1 << 16)
                    into[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)
        return True


# --- in the process that forks ---


def serve(connection: socket.socket) -> list[Any]:
    """Fork for every request. Returns it in the fork only; ends when there are no more."""
    while True:
        header, streams, *_ = socket.recv_fds(connection, 4, 2)
        if not header:
            sys.exit()
        request = connection.recv(int.from_bytes(header, "little"), socket.MSG_WAITALL)
        pid = os.fork()
        if not pid:
            connection.close()
            for number, stream in enumerate(streams, 1):
                os.dup2(stream, number)
                os.close(stream)
            return json.loads(request)
        for stream in streams:
            os.close(stream)
        connection.sendall(pid.to_bytes(4, "little", signed=True))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(code.to_bytes(4, "little", signed=True))


def folders(environment: Mapping[str, str]) -> list[str]:
    """Where modules are looked for first."""
    named = environment.get("PYTHONPATH")
    return [str(Path(folder).absolute()) for folder in named.split(os.pathsep)] if named else []


def run(arguments: list[str], cwd: str, environment: dict[str, str], path: list[str]) -> None:
    """Run `python ARGUMENTS` as the interpreter does. `path` are the folders of installed modules."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = [*folders(environment), *path]
    sys.path_importer_cache.clear()
    sys.orig_argv = [sys.executable, "-X", "faulthandler", *arguments]
    main: Any = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    first, *rest = arguments
    try:
        if first == "-m":
            sys.argv = ["-m", *rest[1:]]
            sys.path.insert(0, str(Path.cwd()))
            start: Any = runpy
            start._run_module_as_main(rest[0])
        elif first == "-c":
            sys.argv = ["-c", *rest[1:]]
            sys.path.insert(0, "")
            exec(compile(rest[0], "<string>", "exec"), vars(main))
        else:
            sys.argv = list(arguments)
            sys.path.insert(0, str(Path(first).resolve().parent))
            main.__file__ = str(Path(first).absolute())
            main.__loader__ = importlib.machinery.SourceFileLoader("__main__", main.__file__)
            exec(compile(Path(first).read_bytes(), main.__file__, "exec"), vars(main))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - as the interpreter reports it
        inside = error.__traceback__.tb_next if error.__traceback__ is not None else None
        sys.excepthook(type(error), error.with_traceback(inside), inside)
        sys.exit(1)


if __name__ == "__main__":
    known = sys.path[1 + len(folders(os.environ)) :]
    with contextlib.suppress(ImportError):
        import torch.distributed.tensor  # noqa: F401 - torch.testing imports it when it is first used
    gc.collect()
    gc.freeze()  # otherwise each program frees all of that at its end, which takes a second
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requested, directory, variables = serve(socket.socket(fileno=int(sys.argv[1])))
    run(requested, directory, variables, known)
