"""The server's command line: `python -m gt.server -p 12345`."""

import argparse

from gt import config
from gt.errors import ConnectionLost
from gt.server.command_line import DEFAULT_PORT, fail, say, stop_on_sigterm, watch
from gt.server.server import Server
from gt.transport import modifiers, shared_memory


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m gt.server",
        description="Run a GT server. Workers join it, clients connect to it.",
        epilog="Then, elsewhere: python -m gt.worker --host HOST -p PORT, and gt.connect('HOST:PORT')",
    )
    parser.add_argument("-p", "--port", type=int, default=DEFAULT_PORT, help="port (default %(default)s)")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default %(default)s: this machine only; 0.0.0.0: all networks, and "
        "whoever can reach the port can use the workers)",
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
    parser.add_argument("--expect-workers", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 0 < options.port < 65536:
        parser.error(f"a port is between 1 and 65535, not {options.port}")
    stop_on_sigterm()
    report = say if options.parent is None else config.verbose
    try:
        chosen = [modifiers.load(name) for name in options.modifier]
    except (ImportError, AttributeError, ValueError) as error:
        fail(f"no modifier: {error}")
        return
    shared_memory.sweep_all()
    address = options.address or f"{options.host}:{options.port}"
    try:
        server = Server(address, options.expect_workers, chosen, report, owned=options.parent is not None)
    except ConnectionLost as error:
        fail(str(error))
        return
    try:
        report(f"server ready on {address}")
        server.run(watch(options.parent))
    except KeyboardInterrupt:
        report("server stopped")
    finally:
        server.close()


if __name__ == "__main__":
    main()
