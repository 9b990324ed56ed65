"""Views share memory as PyTorch's do: a change of one is a change of the other."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gt
from gt.client import Client


def rows(lib: Any) -> Any:
    x = lib.zeros(3, 3)
    x[0].fill_(1)
    x[1][2] = 7
    x[2, 1:].add_(4)
    return x


def other_shapes(lib: Any) -> Any:
    x = lib.zeros(3, 3)
    x.view(-1)[0] = 5
    x.T[0].add_(1)
    x.permute(1, 0)[2:].fill_(2)
    x.reshape(9)[4:].unsqueeze(0).mul_(3)
    return x


def a_view_follows_its_tensor(lib: Any) -> Any:
    x = lib.arange(4.0)
    y, z = x.view(2, 2), x[1:]
    x.add_(1)
    z.mul_(2)
    return y


def data_and_detach(lib: Any) -> Any:
    w = lib.ones(4, requires_grad=True)
    w.data[1:3].zero_()
    w.detach()[0] = 9
    d = w.detach()
    with lib.no_grad():
        w.add_(1)
    return d


def gradients_in_place(lib: Any) -> Any:
    w = lib.ones(3, requires_grad=True)
    (w * 2).sum().backward()
    g = w.grad
    g[:1].zero_()
    (w * 3).sum().backward()
    return g


def a_leaf_without_recording(lib: Any) -> Any:
    w = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        w[0].add_(5)
    (w * w).sum().backward()
    return w.grad


def gradients_through_a_changed_view(lib: Any) -> Any:
    a = lib.ones(2, 2, requires_grad=True)
    b = a * 1
    c = b[0]
    c.mul_(3)
    ((b * b).sum() + c.sum()).backward()
    return a.grad


def a_state_dict(lib: Any) -> Any:
    model = lib.nn.Linear(2, 2)
    for value in model.state_dict().values():
        value.copy_(lib.zeros_like(value) + 4)
    return model.weight.detach()


def a_long_chain(lib: Any) -> Any:
    x = lib.arange(3.0)
    for _ in range(30):
        x = x.reshape(3, 1).T.reshape(3)
    x.add_(1)
    return x


def a_view_that_is_kept_while_its_parameter_is_trained(lib: Any) -> Any:
    w: Any = lib.ones(2, 3, requires_grad=True)
    tied = w.T
    for _ in range(3):
        w.grad = lib.zeros(2, 3)
        (tied * tied).sum().backward()
        with lib.no_grad():
            w.sub_(w.grad, alpha=0.1)
            tied.sum()  # looked at where nothing is recorded
    return lib.cat([tied.detach(), w.grad.T])


def a_copy_is_not_a_view(lib: Any) -> Any:
    x = lib.zeros(3)
    x[[0, 1]].add_(1)
    x.clone().add_(1)
    (x + 0).add_(1)
    return x


def initialising_part_of_a_weight(lib: Any) -> Any:
    layer = lib.nn.Linear(3, 4)
    lib.nn.init.zeros_(layer.weight)
    lib.nn.init.ones_(layer.weight[:2])
    layer.bias.data[2:].fill_(7)
    layer.bias.data[:2].fill_(1)
    return layer.weight.detach().sum(1) + layer.bias.detach()


def views_of_a_detached_view(lib: Any) -> Any:
    w = lib.zeros(3, 3)
    w[0].data.fill_(1)
    w[1].detach().add_(2)
    w.T[2].data[1:] = 5
    part = w[2]
    values = part.data
    values += 1
    return lib.stack([*w, part, values])


def part_of_a_parameters_data(lib: Any) -> Any:
    w = lib.zeros(2, 2, requires_grad=True)
    w[1].data.fill_(2)
    w.data[0] = 3
    w.data[0].data.add_(1)
    return w


def other_data_of_a_view(lib: Any) -> Any:
    x = lib.zeros(4)
    y = x.view(2, 2)
    z = y[0]
    y.data = lib.ones(2, 2)
    y[1] += 1
    z += 5
    return lib.cat([x, y.reshape(4), z])


SNIPPETS: list[Callable[[Any], Any]] = [
    rows,
    other_shapes,
    a_view_follows_its_tensor,
    data_and_detach,
    gradients_in_place,
    a_leaf_without_recording,
    gradients_through_a_changed_view,
    a_state_dict,
    a_long_chain,
    a_view_that_is_kept_while_its_parameter_is_trained,
    a_copy_is_not_a_view,
    initialising_part_of_a_weight,
    views_of_a_detached_view,
    part_of_a_parameters_data,
    other_data_of_a_view,
]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.__name__)
def test_a_view_behaves_as_in_pytorch(client: Client, snippet: Callable[[Any], Any]):
    assert snippet(gt).tolist() == snippet(torch).tolist()


def test_a_view_of_a_leaf_is_not_changed_while_recording():
    w = gt.ones(3, requires_grad=True)
    part = w[0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        part.add_(1)
    assert w.tolist() == [1, 1, 1]
    assert part.item() == 1


def test_a_loop_of_views_does_not_grow(client: Client):
    def held() -> int:
        return sum(stats["tensors"] for stats in client.get_stats().values())

    x = gt.arange(6.0)
    before = held()
    for _ in range(50):
        x = x.reshape(2, 3).T.reshape(6)
    assert held() <= before + 3
    assert sorted(x.tolist()) == [0, 1, 2, 3, 4, 5]
