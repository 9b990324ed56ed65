"""Running a Python program of its own, for what only a fresh one can show."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_python(
    *arguments: str,
    cwd: Path = ROOT,
    fails: bool = False,
    environment: dict[str, str] | None = None,
    timeout: float = 100,
) -> subprocess.CompletedProcess[str]:
    """What `python ARGUMENTS` printed. It runs in this environment without our own flags, plus those given.

    It must succeed, or fail if that is what is expected.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GT_", "TRITON_"))}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=clean | (environment or {}),
        timeout=timeout,
    )
    assert (done.returncode != 0) == fails, done.stderr or done.stdout
    return done
