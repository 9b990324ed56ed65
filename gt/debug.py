"""Looking inside: the autograd tape, the instruction tape, the workers."""

from typing import Any

from gt.client.autograd import GRAPH, TapeNode
from gt.client.session import current


def get_tape() -> list[TapeNode]:
    """The autograd tape: every recorded op whose graph is still alive, oldest first."""
    return GRAPH.tape()


def print_tape() -> None:
    """Print the autograd tape, one op a line."""
    for node in get_tape():
        print(node)


def get_worker_stats() -> dict[str, dict[str, Any]]:
    """What every worker has done, by worker name."""
    return current().get_stats()


def get_dispatcher_stats() -> dict[str, Any]:
    """What the dispatcher holds: clients, workers, tensor handles."""
    return current().get_dispatcher_stats()


def print_worker_stats() -> None:
    """Print what every worker has done."""
    for name, stats in get_worker_stats().items():
        print(name)
        for key, value in stats.items():
            print(f"  {key:<20} {value}")
