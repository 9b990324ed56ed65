"""Op overriders: one replaces the op for all clients of a launch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import triton_viz
from tests.triton_viz.helpers import kernels
from tests.triton_viz.helpers.watching import Vectorized, traced
from tests.triton_viz.test_client_errors import patched_attributes
from triton_viz.clients import Profiler, Sanitizer, Tracer
from triton_viz.core.client import Client, OpCallbacks
from triton_viz.core.data import Load, Op, Store
from triton_viz.errors import UnsupportedError
from triton_viz.executor.value import Value

pytestmark = pytest.mark.usefixtures("no_launches")


def test_an_overrider_stands_in_for_the_op_and_gets_its_own_arguments():
    class Zeros(Vectorized):
        """Overrides loads: every load returns zeros."""

        def __init__(self) -> None:
            self.heard: list[str] = []

        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            if op_type is not Load:
                return OpCallbacks()
            return OpCallbacks(
                before_callback=lambda **told: self.heard.append("before"),
                op_overrider=self.load,
                after_callback=lambda result, **told: self.heard.append(f"after {result.shape}"),
            )

        def load(self, pointers: Value, mask: Any, *rest: Any) -> Value:
            kind = pointers.get_element_ty()
            return Value(np.zeros((1, *pointers.shape), np.float32), kind)

    client = Zeros()
    x, out = torch.ones(4), torch.full((4,), 9.0)
    traced(client, kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert out.tolist() == [0, 0, 0, 0]
    assert client.heard == ["before", "after (4,)"] * 2


def overriding(name: str, kind: type[Op], overrider: Callable[..., Any] | None) -> Client:
    """A client that overrides ops of one type, or none."""

    class Overriding(Vectorized):
        NAME = name

        def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
            return OpCallbacks(op_overrider=overrider if op_type is kind else None)

    return Overriding()


def nothing(*args: Any, **kwargs: Any) -> None:
    """An overrider that stores nothing."""


@pytest.mark.parametrize("others", [["tracer"], ["sanitizer", "tracer"], [overriding("plain", Store, None)]])
@pytest.mark.parametrize("first", [True, False])
def test_an_overrider_replaces_the_op_for_all_clients(others: list[Any], first: bool):
    client = overriding("blind", Store, nothing)
    x, out = torch.ones(4), torch.zeros(4)
    traced([client, *others] if first else [*others, client], kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert out.tolist() == [0, 0, 0, 0]


def test_the_others_hear_of_an_op_that_is_overridden_and_get_the_overriders_result():
    tracer, profiler = Tracer(values=True), Profiler(skip_loads=True)
    x, out = torch.ones(4), torch.full((4,), 9.0)
    traced([tracer, profiler], kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert out.tolist() == [0, 0, 0, 0]
    first = triton_viz.launches[-1].records[0]
    assert isinstance(first, Load)
    assert first.values is not None
    assert first.values.tolist() == [[0, 0, 0, 0]]


def test_clients_that_override_an_op_with_one_function_agree():
    x, out = torch.ones(4), torch.zeros(4)
    both = [overriding("one", Store, nothing), overriding("two", Store, nothing)]
    traced(both, kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert out.tolist() == [0, 0, 0, 0]
    skipping = Profiler(skip_loads=True, skip_stores=True)
    traced([Sanitizer(fake_memory=True), skipping], kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert out.tolist() == [0, 0, 0, 0]


def test_clients_that_override_an_op_with_different_functions_are_an_error_that_names_them():
    before = patched_attributes()
    clients = [overriding("one", Store, nothing), overriding("two", Store, lambda *args: None)]
    x, out = torch.ones(4), torch.zeros(4)
    with pytest.raises(
        UnsupportedError, match=r"clients 'one' and 'two' both override the op 'masked_store'"
    ):
        traced(clients, kernels.add)[(1,)](x, x, out, 4, BLOCK=4)
    assert patched_attributes() == before
    assert out.tolist() == [0, 0, 0, 0]
