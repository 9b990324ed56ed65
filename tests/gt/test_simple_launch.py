"""`python simple_launch.py`: the effect of Ctrl-C in its terminal."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.gt.helpers.servers import eventually, free_port, is_alive
from tests.programs import ROOT, TIMEOUT


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("moment", ["server ready", "worker_1 (numpy) is ready"])
def test_ctrl_c_ends_it_and_its_processes_without_a_traceback(moment: str):
    command = ["simple_launch.py", "--no-test", "--workers", "2", "--engine", "numpy", "-p", str(free_port())]
    with tempfile.TemporaryFile("w+") as output:
        launcher = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its own terminal, as it were
        )

        def read() -> str:
            return os.pread(output.fileno(), 1 << 20, 0).decode()

        try:
            eventually(lambda: moment in read(), moment)
            started = children(launcher.pid)
            assert len(started) == 3
            os.killpg(launcher.pid, signal.SIGINT)  # Ctrl-C goes to all processes in the foreground
            assert launcher.wait(TIMEOUT) == 0
        finally:
            launcher.kill()
            launcher.wait()
        assert "Traceback" not in read()
        assert "KeyboardInterrupt" not in read()
        assert not [pid for pid in started if is_alive(pid)]
