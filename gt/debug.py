"""Looking inside: the autograd tape, the instruction tape, the workers."""

import builtins
from typing import Any

from gt.client.autograd import GRAPH, TapeNode
from gt.client.layout_view import LayoutView
from gt.client.session import current
from gt.client.tensor import Tensor


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


def show(x: Tensor) -> LayoutView:
    """Print where a tensor lies: which worker has which part of it. A notebook shows it as a table."""
    value = x._value
    view = LayoutView(tuple(value.spec.shape), value.spec.dtype, value.client.get_layouts(value.id))
    if not hasattr(builtins, "__IPYTHON__"):  # a notebook shows what is returned
        print(view)
    return view
