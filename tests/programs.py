"""Running a Python program of its own, for what only a fresh one can show."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

TIMEOUT = 1200.0
"""Seconds after which something is taken to hang: far more than it takes beside many busy processes."""


def run_python(
    *arguments: str,
    cwd: Path = ROOT,
    fails: bool = False,
    environment: dict[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> subprocess.CompletedProcess[str]:
    """What `python ARGUMENTS` printed. It runs in this environment without our own flags, plus those given.

    It compiles no repeated sequences unless the flags given say so: a compiler would take the others' time.
    It must succeed, or fail if that is what is expected. One that does not end says where it is.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GT_", "TRITON_"))}
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=clean | {"GT_COMPILE_AFTER": "inf"} | (environment or {}),
    )
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException as error:
            late = isinstance(error, subprocess.TimeoutExpired)
            process.send_signal(signal.SIGABRT if late else signal.SIGKILL)
            if not late:
                raise
            out, err = process.communicate()
            raise AssertionError(f"{arguments} did not end within {timeout} s:\n{out}\n{err}") from None
    assert (process.returncode != 0) == fails, err or out
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
