"""Listeners of a client's stream: they hear every instruction, in order, for as long as they are there."""

from typing import Any

import pytest

import gt
from gt.client import Client
from gt.errors import ConnectionLost
from gt.stream.instructions import Op


def test_listeners_hear_every_instruction_until_they_are_removed(client: Client):
    heard: list[tuple[str, Any]] = []
    listeners = {name: (lambda one, name=name: heard.append((name, one))) for name in "abc"}
    for listener in listeners.values():
        client.add_listener(listener)
        client.add_listener(listener)
    x = gt.ones(3)
    ids = [(name, one.result) for name, one in heard if type(one) is Op]
    assert ids == [("a", x.id), ("b", x.id), ("c", x.id)]
    heard.clear()
    number = x.id
    client.remove_listener(listeners["a"])  # in another order than they came
    del x
    assert heard == [("b", number), ("c", number)]
    heard.clear()
    client.remove_listener(listeners["c"])
    client.remove_listener(listeners["c"])
    y = gt.ones(3)
    assert {name for name, _ in heard} == {"b"}
    client.remove_listener(listeners["b"])
    count = len(heard)
    assert y.tolist() == [1, 1, 1]
    assert len(heard) == count
    assert not client.listeners


def test_what_a_listener_emits_comes_before_what_it_heard(client: Client):
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


def test_a_closed_client_refuses_instructions_whatever_listens(client: Client):
    heard: list[Any] = []
    x = gt.zeros(2)
    client.add_listener(heard.append)
    client.close()
    heard.clear()
    with pytest.raises(ConnectionLost, match="was closed"):
        _ = -x
    client.remove_listener(heard.append)
    with pytest.raises(ConnectionLost, match="was closed"):
        _ = -x
    del x
    assert not heard
