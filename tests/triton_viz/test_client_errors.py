"""Errors in callbacks: they name the client, and everything is restored."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import triton_viz
from tests.triton_viz.helpers import client_kernels
from tests.triton_viz.helpers.watching import Watch, line_of, traced
from triton_viz.core.client import Client, ForLoopCallbacks, OpCallbacks
from triton_viz.core.data import Op, Store
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.errors import KernelError

pytestmark = pytest.mark.usefixtures("no_launches")


def patched_attributes() -> list[object]:
    dsl = OPERATION_REGISTRY["triton"]
    return [getattr(dsl.namespace, name) for name in dsl.operations]


def raising(where: str) -> Client:
    def fail(*args: Any, **told: Any) -> None:
        raise LookupError(f"in {where}")

    class Raising(Watch):
        NAME = "raising"

        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            if op_type is not Store:
                return OpCallbacks()
            return OpCallbacks(
                before_callback=fail if where == "before_callback" else None,
                after_callback=fail if where == "after_callback" else None,
            )

        def register_for_loop_callback(self) -> ForLoopCallbacks:
            return ForLoopCallbacks(**({where: fail} if "loop" in where else {}))

    client = Raising()
    if where in vars(Client):
        setattr(client, where, fail)
    return client


@pytest.mark.parametrize("where", ["before_callback", "after_callback", "loop_iter_callback"])
def test_an_error_in_a_callback_names_the_client_and_the_kernels_line_and_restores_everything(where: str):
    before = patched_attributes()
    line = line_of(client_kernels.counted, "for k" if "loop" in where else "tl.store")
    with pytest.raises(
        KernelError,
        match=rf"client_kernels\.py:{line}: kernel counted, program \(0, 0, 0\): its client 'raising' raised "
        rf"LookupError: in {where}",
    ) as caught:
        traced(raising(where), client_kernels.counted)[(2,)](torch.ones(3), torch.zeros(2), 3)
    assert isinstance(caught.value.__cause__, LookupError)
    assert patched_attributes() == before
    assert triton_viz.launches == []
    out = torch.zeros(2)
    traced("tracer", client_kernels.counted)[(2,)](torch.ones(3), out, 3)
    assert out.tolist() == [3, 3]


@pytest.mark.parametrize(
    "where", ["pre_run_callback", "arg_callback", "grid_callback", "grid_idx_callback", "finalize"]
)
def test_an_error_around_the_kernel_is_the_clients_own_and_restores_everything(where: str):
    before = patched_attributes()
    ended = []

    class Began(Watch):
        NAME = "began"

        def post_run_callback(self, fn: Callable) -> None:
            ended.append(fn)

    with pytest.raises(LookupError, match=f"in {where}"):
        traced([Began(), raising(where)], client_kernels.counted)[(2,)](torch.ones(3), torch.zeros(2), 3)
    assert patched_attributes() == before
    assert triton_viz.launches == []
    assert len(ended) == 1, "every client that began hears of the end"
