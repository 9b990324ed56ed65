"""The server's command line: `python -m gt.server -p 12345`."""

import argparse

from gt import command_line
from gt.dispatcher.sharding.policy import SHARD_THRESHOLD
from gt.errors import ConnectionLost
from gt.server.local import remove_folder
from gt.server.server import Server
from gt.transport import shared_memory


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m gt.server",
        description="Run a GT server. Workers join it, clients connect to it.",
        epilog="Then, elsewhere: python -m gt.worker --host HOST -p PORT, and gt.connect('HOST:PORT')",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default %(default)s: this machine only; 0.0.0.0: all networks, and "
        "every program that can reach the port can use the workers, and read their data)",
    )
    parser.add_argument("--expect-workers", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument(
        "--no-sharding",
        action="store_true",
        help="keep all tensors of a client on one worker, even if there are several",
    )
    parser.add_argument(
        "--shard-threshold",
        type=int,
        default=SHARD_THRESHOLD,
        metavar="N",
        help="with several workers, split tensors that have at least N elements (default %(default)s)",
    )
    options = command_line.parse(parser)
    server: Server | None = None
    try:
        shared_memory.sweep_all()
        owned = options.parent is not None
        server = Server(
            options.address,
            options.expect_workers,
            options.modifiers,
            options.report,
            owned,
            enable_sharding=not options.no_sharding,
            shard_threshold=options.shard_threshold,
        )
        options.report(f"server ready on {options.address}")
        server.run(options.alive)
    except ConnectionLost as error:
        command_line.fail(str(error))
    except KeyboardInterrupt:
        options.report("server stopped")
    finally:
        if server is not None:
            server.close()
        if not options.alive():  # the program was killed
            remove_folder(options.address)
            shared_memory.sweep_all()


if __name__ == "__main__":
    main()
