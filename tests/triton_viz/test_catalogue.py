"""The catalogue of bugs: each entry has exactly the bug, lines and programs that it declares.

The oracle checks addresses one by one, independently of the tools.
"""

import json
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import triton_viz
from tests.programs import run_python
from tests.triton_viz.catalogue import ENTRIES, RACES
from tests.triton_viz.catalogue.entry import Entry, given
from triton_viz.clients.utils import kernel_call_path
from triton_viz.core.client import tensors_in
from triton_viz.core.data import Access, Op
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.executor.affine import Box

Touched = tuple[int, tuple[int, int, int], np.ndarray, int, bool]
"""A line, a program, the addresses of its access, their width, and whether it stored."""


class Addresses(triton_viz.Client):
    """Records every address before it is accessed."""

    NAME: ClassVar[str] = "addresses"
    vectorized: ClassVar[bool] = True

    def __init__(self) -> None:
        self.touched: list[Touched] = []

    def pre_run_callback(self, fn: Callable) -> None:
        self._kernel = fn

    def post_run_callback(self, fn: Callable) -> None: ...

    def arg_callback(self, name: str, arg: Any) -> None: ...

    def grid_callback(self, grid: Any) -> None: ...

    def grid_idx_callback(self, grid_idx: Any) -> None: ...

    def register_op_callback(self, op_type: type[Op]) -> triton_viz.OpCallbacks:
        if not issubclass(op_type, Access):
            return triton_viz.OpCallbacks()

        def note(accessed: Any, values: Any = None, operation: str = "") -> None:
            programs = OPERATION_REGISTRY["triton"].here().programs
            path = [site for site in kernel_call_path(self._kernel) if site.file != __file__]
            line = path[-1].line
            whole = (programs.lanes, *accessed.pointers.shape)
            mask = accessed.mask.data() if isinstance(accessed.mask, Box) else accessed.mask
            kept = np.broadcast_to(True if mask is None else mask, whole)
            addresses = np.broadcast_to(accessed.pointers.data, whole)
            for lane in range(programs.lanes):
                if programs.active is None or programs.active[lane]:
                    mine = addresses[lane][kept[lane]]
                    self.touched.append(
                        (line, programs.program(lane), mine, accessed.width, op_type.__name__ == "Store")
                    )

        return triton_viz.OpCallbacks(before_callback=note)

    def register_for_loop_callback(self) -> triton_viz.ForLoopCallbacks:
        return triton_viz.ForLoopCallbacks()

    def finalize(self) -> list[Any]:
        return []


def run(entry: Entry) -> tuple[list[Touched], dict[str, TensorInfo], bool]:
    """The accesses of a kernel, its tensors, and whether it ran to its end."""
    arguments, client = entry.arguments(), Addresses()
    infos = {
        name: TensorInfo.of(name, tensor)
        for argument, value in given(arguments).items()
        for name, tensor in tensors_in(argument, value)
    }
    try:
        triton_viz.trace(client)(entry.kernel)[entry.grid](**given(arguments))
    except triton_viz.errors.AccessError:
        return client.touched, infos, False
    return client.touched, infos, True


def outside(tensor: TensorInfo, addresses: np.ndarray, width: int) -> np.ndarray:
    """Which addresses are outside of the tensor's elements."""
    every = addresses[:, None] + np.arange(width)
    at = (every - tensor.address) // tensor.itemsize
    return np.any(tensor.elements(at) < 0, axis=1)


def shows(entry: Entry, touched: Touched, tensors: dict[str, TensorInfo]) -> bool:
    """Whether these accesses show the bug."""
    _, _, addresses, width, stores = touched
    assert entry.bug is not None
    tensor = tensors.get(entry.bug.tensor)
    if entry.bug.kind == "null pointer":
        return bool((addresses < 4096).any())
    if entry.bug.kind == "misaligned":
        return bool((addresses % width != 0).any())
    if entry.bug.kind == "broadcast store":
        return stores and len(np.unique(addresses)) < len(addresses)
    assert tensor is not None
    return bool(outside(tensor, addresses, width).any())


def by_name(entries: list[Entry]) -> Any:
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


def test_there_are_enough_of_both_kinds():
    buggy = [entry for entry in ENTRIES if entry.bug]
    assert len(buggy) >= 36
    assert len(ENTRIES) - len(buggy) >= 36
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert all(entry.lines for entry in buggy)


def test_every_kernel_is_real_triton():
    assert json.loads(run_python("-m", "tests.triton_viz.catalogue.compiling").stdout.splitlines()[-1]) == {}


@by_name([entry for entry in ENTRIES if entry.bug and entry.bug.kind not in RACES])
def test_a_planted_bug_is_where_the_catalogue_says(entry: Entry):
    assert entry.bug
    touched, tensors, finished = run(entry)
    marked = [one for one in touched if one[0] in entry.lines]
    found = {one[1] for one in marked if len(one[2]) and shows(entry, one, tensors)}
    assert found <= set(entry.bug.programs)
    assert found == set(entry.bug.programs) if finished else found


@by_name([entry for entry in ENTRIES if not entry.bug])
def test_a_look_alike_touches_elements_of_its_tensors_only(entry: Entry):
    touched, tensors, finished = run(entry)
    assert finished
    assert touched
    for line, program, addresses, width, _ in touched:
        if not entry.name.startswith("null"):  # which uses pointers that are not arguments
            missed = [outside(tensor, addresses, width) for tensor in tensors.values()]
            assert not np.all(missed, axis=0).any(), (line, program)
        assert (addresses % width == 0).all()
