"""Running a Python program of its own, for what only a fresh one can show."""

import atexit
import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.preloaded import Preloaded
from tests.thorough import THOROUGH

ROOT = Path(__file__).parents[1]

TIMEOUT = 1200.0
"""Seconds after which something is taken to hang: far more than it takes beside many busy processes."""


PRELOADED = not THOROUGH and sys.platform == "linux"
"""Whether programs run in forks of a process that has imported torch, if their test allows it."""


def run_python(
    *arguments: str,
    cwd: Path = ROOT,
    fails: bool = False,
    environment: dict[str, str] | None = None,
    timeout: float = TIMEOUT,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """What `python ARGUMENTS` printed. It runs in this environment without our own flags, plus those given.

    It compiles no repeated sequences unless the flags given say so: a compiler would take the others' time.
    It must succeed, or fail if that is what is expected. One that does not end says where it is. Modules of
    torch are imported already, unless it has to be `fresh`.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GT_", "TRITON_"))}
    given = clean | {"GT_COMPILE_AFTER": "inf"} | (environment or {})
    options = arguments[0].startswith("-") and arguments[0] not in ("-c", "-m")  # of the interpreter
    run = _run_fresh if fresh or options or not PRELOADED else _preloaded().run
    code, out, err = run(*arguments, cwd=cwd, environment=given, timeout=timeout)
    if code is None:
        raise AssertionError(f"{arguments} did not end within {timeout} s:\n{out}\n{err}")
    assert (code != 0) == fails, err or out
    return subprocess.CompletedProcess(arguments, code, out, err)


@functools.cache
def _preloaded() -> Preloaded:
    started = Preloaded()
    atexit.register(started.close)
    return started


def _run_fresh(
    *arguments: str, cwd: Path, environment: dict[str, str], timeout: float
) -> tuple[int | None, str, str]:
    """Run a program in a new process: its return code, or None if it hangs, and what it printed."""
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=environment,
    )
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
            return process.returncode, out, err
        except BaseException as error:
            late = isinstance(error, subprocess.TimeoutExpired)
            process.send_signal(signal.SIGABRT if late else signal.SIGKILL)
            if not late:
                raise
            return None, *process.communicate()
