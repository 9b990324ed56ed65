"""Listeners of a client's stream: called with every instruction, in order, until they are removed."""

from typing import Any

import pytest

import gt
from gt.client import Client
from gt.errors import ConnectionLost
from gt.stream.instructions import Op


def test_listeners_are_called_with_every_instruction_until_they_are_removed(client: Client):
    calls: list[tuple[str, Any]] = []
    listeners = {name: (lambda one, name=name: calls.append((name, one))) for name in "abc"}
    for listener in listeners.values():
        client.add_listener(listener)
        client.add_listener(listener)
    x = gt.ones(3)
    ids = [(name, one.result) for name, one in calls if type(one) is Op]
    assert ids == [("a", x.id), ("b", x.id), ("c", x.id)]
    calls.clear()
    number = x.id
    client.remove_listener(listeners["a"])  # in another order than they came
    del x
    assert calls == [("b", number), ("c", number)]
    calls.clear()
    client.remove_listener(listeners["c"])
    client.remove_listener(listeners["c"])
    y = gt.ones(3)
    assert {name for name, _ in calls} == {"b"}
    client.remove_listener(listeners["b"])
    count = len(calls)
    assert y.tolist() == [1, 1, 1]
    assert len(calls) == count
    assert not client.listeners


def test_instructions_of_a_listener_precede_the_one_that_it_was_called_with(client: Client):
    order: list[Any] = []

    def insert(instruction: Any) -> None:
        if type(instruction) is Op and instruction.op == "neg":
            client.emit(Op(client.next_id(), "exp", instruction.inputs, None, instruction.site))

    client.add_listener(insert)
    client.add_listener(lambda one: order.append(one.op) if type(one) is Op else None)
    x = gt.zeros(2)
    assert (-x).tolist() == [0, 0]
    assert order == ["full", "exp", "neg"]


def test_an_instruction_that_a_listener_refuses_is_not_issued(client: Client):
    def refuse(instruction: Any) -> None:
        if type(instruction) is Op:
            raise ValueError("not now")

    x = gt.zeros(2)
    client.add_listener(refuse)
    with pytest.raises(ValueError, match="not now"):
        _ = -x
    client.remove_listener(refuse)
    assert (-x).tolist() == [0, 0]


def test_a_closed_client_refuses_instructions_also_with_listeners(client: Client):
    calls: list[Any] = []
    x = gt.zeros(2)
    client.add_listener(calls.append)
    client.close()
    calls.clear()
    with pytest.raises(ConnectionLost, match="was closed"):
        _ = -x
    client.remove_listener(calls.append)
    with pytest.raises(ConnectionLost, match="was closed"):
        _ = -x
    del x
    assert not calls
