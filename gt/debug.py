"""Debugging: the autograd tape, the instruction tape, statistics and layouts."""

import builtins
from typing import Any

from gt.autograd.graph import GRAPH, TapeNode
from gt.client.session import current
from gt.inspect.layout_view import LayoutView
from gt.tensors.tensor import Tensor


def get_tape() -> list[TapeNode]:
    """The autograd tape: every recorded op whose graph is still alive, oldest first."""
    return GRAPH.tape()


def print_tape() -> None:
    """Print the autograd tape, one op a line."""
    for node in get_tape():
        print(node)


def get_worker_stats() -> dict[str, dict[str, Any]]:
    """Every worker's statistics, by worker name."""
    return current().get_stats()


def get_dispatcher_stats() -> dict[str, Any]:
    """The dispatcher's statistics: its clients, workers and tensor handles."""
    return current().get_dispatcher_stats()


def get_client_stats() -> dict[str, Any]:
    """This program's client: batches sent and, under `modifiers`, the statistics of its modifiers."""
    return current().get_client_stats()


def get_instruction_tape() -> list[str]:
    """The lines of the instruction tape that the dispatcher keeps, oldest first.

    The same lines that GT_INSTRUCTION_LOG writes to a file.
    """
    return current().get_instruction_tape()


def print_instruction_tape() -> None:
    """Print the instruction tape, one instruction a line."""
    for line in get_instruction_tape():
        print(line)


def print_worker_stats() -> None:
    """Print every worker's statistics, and those of this program's client if it has modifiers."""
    found = get_worker_stats()
    client = get_client_stats()
    if "modifiers" in client:
        found = {**found, "client": client}
    for name, stats in found.items():
        print(name)
        for key, value in stats.items():
            print(f"  {key:<20} {value}")


def show(x: Tensor) -> LayoutView:
    """Print a tensor's layout: which worker has which part of it. A notebook shows it as a table."""
    value = x._value
    view = LayoutView(tuple(value.spec.shape), value.spec.dtype, value.client.get_layouts(value.id))
    if not hasattr(builtins, "__IPYTHON__"):  # a notebook shows what is returned
        print(view)
    return view
