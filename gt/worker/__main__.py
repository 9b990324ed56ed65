"""A worker's command line: `python -m gt.worker --host localhost -p 12345`."""

import argparse
import os
import re

from gt import command_line
from gt.errors import ConnectionLost
from gt.worker.engine.base import ENGINES
from gt.worker.limits import machine
from gt.worker.process import WorkerProcess
from gt.worker.worker import Worker

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _bytes(text: str) -> int:
    """Parse a size in bytes: 1000000, 512MB, 1.5GB."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a number and a unit, such as 512MB, but got {text!r}")
    return int(float(match[1]) * UNITS[match[2].upper()])


def main() -> None:
    """Run a worker until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m gt.worker",
        description="Run a GT worker for a server: one worker for each GPU, or a few for each machine.",
    )
    add = parser.add_argument
    add("--host", default="localhost", help="the server's machine (default %(default)s)")
    add(
        "--engine",
        choices=sorted(ENGINES),
        default="pytorch",
        help="the library that computes (default %(default)s)",
    )
    add("--id", default="", metavar="NAME", help="the worker's name (default: worker_0, worker_1, ...)")
    add("--threads", type=int, metavar="N", help="the number of threads for each op (default: all cores)")
    add("--memory", type=_bytes, default=0, metavar="SIZE", help="memory limit of its tensors, such as 4GB")
    add(
        "--timeout",
        type=float,
        default=30,
        metavar="SECONDS",
        help="how many seconds to wait for the server (default %(default)s)",
    )
    options = command_line.parse(parser)
    if options.threads is not None:
        # Read by the libraries when they are loaded, which is later.
        for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[variable] = str(options.threads)
    try:
        machine.keep_memory()
        worker = Worker(options.id, options.engine, modifiers=options.modifiers, memory_limit=options.memory)
        WorkerProcess(worker, options.address, options.timeout, options.report).run(options.alive)
    except KeyboardInterrupt:
        options.report("worker stopped")
    except (ConnectionLost, ImportError, ValueError) as error:
        command_line.fail(str(error))


if __name__ == "__main__":
    main()
