"""Tensors can be printed, copied, pickled, and given to other libraries."""

import copy
import pickle

import numpy as np
import pytest
import torch

import gt
from gt.client import Client


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (torch.tensor(3.0), "tensor(3.)"),
        (torch.tensor([1.5, 0.25]), "tensor([1.5000, 0.2500])"),
        (torch.zeros(0, 3), "tensor([], size=(0, 3))"),
        (torch.zeros(0), "tensor([])"),
        (torch.tensor([True, False]), "tensor([ True, False])"),
        (torch.arange(1001), "tensor([   0,    1,    2, ...,  998,  999, 1000])"),
    ],
)
def test_a_tensor_prints_as_in_pytorch(x: torch.Tensor, text: str):
    assert repr(gt.tensor(x)) == text
    assert repr(x).replace("  ...,", " ...,") == text


def test_printing_shows_dtype_and_gradient():
    x = gt.ones(1, dtype="float64", requires_grad=True)
    assert repr(x) == "tensor([1.], dtype=gt.float64, requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], dtype=gt.float64, grad_fn=<mul>)"


def test_printing_a_large_tensor_fetches_only_its_corners(client: Client):
    x = gt.arange(1_000_000).reshape(1000, 2, 500)
    sizes = []
    fetch = client.fetch

    def counted(tensor: int) -> np.ndarray:
        array = fetch(tensor)
        sizes.append(array.size)
        return array

    client.fetch = counted
    text = repr(x)
    assert max(sizes) <= 7 * 2 * 7
    assert text.replace(" ", "") == repr(torch.arange(1_000_000).reshape(1000, 2, 500)).replace(" ", "")


def test_a_notebook_shows_a_table(client: Client):
    table = gt.tensor([[1.0, 2.5]])._repr_html_()
    assert "[1, 2] gt.float32" in table
    assert "<tr><td>1</td><td>2.5</td></tr>" in table
    large = gt.zeros(100, 100)._repr_html_()
    assert large.count("<tr>") == 7
    assert "…" in large
    assert "<pre>" in gt.zeros(2, 2, 2)._repr_html_()
    assert "[0]" in gt.zeros(0)._repr_html_()


def test_copies_share_the_value_but_not_the_gradient(client: Client):
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        (twin * 3).sum().backward()
        assert twin.grad is not None
        assert twin.grad.tolist() == [3, 3]
        assert (twin.requires_grad, twin.is_leaf, twin.data.tolist()) == (True, True, [1, 2])
    assert x.grad is None
    assert copy.copy(x).data.tolist() == [1, 2]
    (x.clone() * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "bool", "int8"])
def test_a_pickle_keeps_the_dtype(client: Client, dtype: str):
    x = gt.tensor([0, 1, 3]).to(dtype)
    again = pickle.loads(pickle.dumps(x))
    assert (again.dtype, again.to("float32").tolist()) == (dtype, x.to("float32").tolist())


def test_tensors_are_exchanged_by_dlpack(client: Client):
    x = gt.arange(6).reshape(2, 3)
    assert torch.from_dlpack(x).tolist() == x.tolist()
    assert np.from_dlpack(x).tolist() == x.tolist()
    source = torch.arange(4, dtype=torch.float64).reshape(2, 2)
    ours = gt.from_dlpack(source)
    source += 1
    assert (ours.dtype, ours.tolist()) == ("float64", [[0, 1], [2, 3]])
    assert gt.from_dlpack(source.T).tolist() == source.T.tolist()
    assert gt.from_dlpack(torch.ones(2, dtype=torch.bfloat16)).dtype == "bfloat16"


def test_a_number_is_formatted_as_one():
    loss = gt.tensor(1.23456)
    assert f"{loss:.3f} {loss:8.2f} {gt.tensor(3):d} {gt.tensor(3)}" == "1.235     1.23 3 3"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{gt.ones(2):.3f}"
