"""A worker's command line: `python -m gt.worker --host localhost -p 12345`."""

import argparse
import os

from gt import config
from gt.errors import ConnectionLost
from gt.server.command_line import DEFAULT_PORT, fail, say, stop_on_sigterm, watch
from gt.transport import modifiers
from gt.worker.engine.base import ENGINES
from gt.worker.process import WorkerProcess
from gt.worker.worker import Worker


def main() -> None:
    """Work until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m gt.worker",
        description="Run a GT worker for a server. One for each GPU, or a few for each machine.",
    )
    parser.add_argument("--host", default="localhost", help="the server's machine (default %(default)s)")
    parser.add_argument(
        "-p", "--port", type=int, default=DEFAULT_PORT, help="the server's port (default %(default)s)"
    )
    parser.add_argument(
        "--engine", choices=sorted(ENGINES), default="pytorch", help="what computes (default %(default)s)"
    )
    parser.add_argument(
        "--id", default="", metavar="NAME", help="its name (default: worker_0, worker_1, ...)"
    )
    parser.add_argument(
        "--threads", type=int, metavar="N", help="how many threads an op may use (default: all cores)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=30,
        metavar="SECONDS",
        help="how long to look for the server (default %(default)s)",
    )
    parser.add_argument(
        "--modifier",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="a stream modifier; repeatable",
    )
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 0 < options.port < 65536:
        parser.error(f"a port is between 1 and 65535, not {options.port}")
    stop_on_sigterm()
    if options.threads is not None:
        # Read by the libraries when they are loaded, which is later.
        for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[variable] = str(options.threads)
    report = say if options.parent is None else config.verbose
    try:
        chosen = [modifiers.load(name) for name in options.modifier]
        worker = Worker(options.id, options.engine, modifiers=chosen)
        address = options.address or f"{options.host}:{options.port}"
        WorkerProcess(worker, address, options.timeout, report).run(watch(options.parent))
    except KeyboardInterrupt:
        report("worker stopped")
    except (ConnectionLost, ImportError, AttributeError, ValueError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
