"""A server and workers in one terminal, and a test of them: `python simple_launch.py`.

python simple_launch.py                  one worker, then test_simple.py, then the end
python simple_launch.py --workers 2      two workers
python simple_launch.py --no-test        keeps running; connect with gt.connect('localhost:12345')
"""

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).parent


def main() -> int:
    """Start, test, stop."""
    parser = argparse.ArgumentParser(description="Start a GT server and workers, and test them.")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="how many workers (default %(default)s)"
    )
    parser.add_argument("--no-test", action="store_true", help="run no test; keep running until Ctrl-C")
    parser.add_argument("-p", "--port", type=int, default=12345, help="port (default %(default)s)")
    parser.add_argument("--engine", default="pytorch", help="pytorch, numpy or jax (default %(default)s)")
    options = parser.parse_args()
    if options.workers < 1:
        parser.error(f"--workers is at least 1, not {options.workers}")

    port = str(options.port)
    python = [sys.executable, "-u", "-m"]
    processes: list[subprocess.Popen[bytes]] = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        processes.append(_start(*python, "gt.server", "-p", port, "--expect-workers", str(options.workers)))
        for _ in range(options.workers):
            processes.append(_start(*python, "gt.worker", "-p", port, "--engine", options.engine))
        if not options.no_test:
            processes.append(_start(sys.executable, "test_simple.py", f"localhost:{port}"))
            return processes[-1].wait()
        while all(process.poll() is None for process in processes):
            time.sleep(0.2)
        return 1  # one of them has said why it ended
    except KeyboardInterrupt:
        return 0 if options.no_test else 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # pressed again, it would leave processes behind
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(*command: str) -> subprocess.Popen[bytes]:
    """Start a process that Ctrl-C does not reach: it is ended from here."""
    return subprocess.Popen(command, cwd=HERE, process_group=0)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
