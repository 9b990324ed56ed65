"""A model's state: its names and values, errors for states that do not fit, and files."""

import copy
import io
from pathlib import Path

import pytest
import safetensors.torch
import torch

import gt
from gt import nn
from gt.client import Client
from gt.errors import StateError
from tests.gt.helpers.oracles import close

ON_PYTORCH = pytest.mark.parametrize("client", ["pytorch"], indirect=True)


def test_a_state_follows_the_model_and_a_copy_of_it_does_not(client: Client):
    layer = nn.Linear(2, 2)
    follows, state = layer.state_dict(), copy.deepcopy(layer.state_dict())
    before = state["weight"].tolist()
    nn.init.zeros_(layer.weight)
    assert follows["weight"].tolist() == [[0, 0], [0, 0]]
    assert state["weight"].tolist() == before
    assert not any(value.requires_grad for value in state.values())
    layer.load_state_dict(state)
    assert layer.weight.tolist() == before
    assert layer.weight.requires_grad


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    model = nn.Sequential(nn.Linear(2, 3))
    before = model[0].weight.tolist()
    wrong = {"0.weight": gt.zeros(2, 2), "1.weight": gt.zeros(1)}
    with pytest.raises(StateError) as caught:
        model.load_state_dict(wrong)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tUnexpected key(s) in state_dict: "1.weight". \n'
        '\tMissing key(s) in state_dict: "0.bias". \n'
        "\tsize mismatch for 0.weight: copying a param with shape [2, 2] from checkpoint, the shape in "
        "current model is [3, 2]."
    )
    assert isinstance(caught.value, RuntimeError)
    assert model[0].weight.tolist() == before
    keys = model.load_state_dict({"0.bias": gt.ones(3), "x": gt.ones(1)}, strict=False)
    assert keys == (["0.weight"], ["x"])
    assert model[0].bias.tolist() == [1, 1, 1]
    model.load_state_dict({"0.bias": [1, 2, 3]}, strict=False)
    assert model[0].bias.tolist() == [1, 2, 3]


@ON_PYTORCH
def test_pytorchs_weights_load_in_any_dtype(client: Client):
    theirs = torch.nn.Linear(3, 2)
    ours = nn.Linear(3, 2)
    ours.load_state_dict(theirs.state_dict())
    close(ours.weight, theirs.weight, 0)
    ours.load_state_dict({name: value.detach().numpy() for name, value in theirs.named_parameters()})
    close(ours.bias, theirs.bias, 0)  # type: ignore[arg-type]
    theirs = theirs.bfloat16()
    ours.bfloat16().load_state_dict(theirs.state_dict())
    assert ours.weight.dtype == "bfloat16"
    assert ours.weight.tolist() == theirs.weight.tolist()


DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]


@ON_PYTORCH
def test_files_of_every_dtype_go_both_ways(client: Client, tmp_path: Path):
    theirs = {d: torch.tensor([[0.0, 1.0, 2.5]]).to(getattr(torch, d)) for d in DTYPES}
    theirs |= {"empty": torch.zeros(0, 3), "number": torch.tensor(2.5)}
    safetensors.torch.save_file(theirs, tmp_path / "theirs.safetensors")
    ours = gt.load(tmp_path / "theirs.safetensors")
    assert set(ours) == set(theirs)
    for name, value in ours.items():
        assert f"torch.{value.dtype}" == str(theirs[name].dtype)
        assert (value.shape, value.tolist()) == (tuple(theirs[name].shape), theirs[name].tolist())

    gt.save(ours, tmp_path / "ours.safetensors")
    back = safetensors.torch.load_file(tmp_path / "ours.safetensors")
    assert set(back) == set(theirs)
    assert all(back[name].dtype == value.dtype and back[name].equal(value) for name, value in theirs.items())


def test_a_model_is_saved_and_loaded(client: Client, tmp_path: Path):
    model, other = (nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3)) for _ in range(2))
    gt.save(model, tmp_path / "model.safetensors")
    other.load_state_dict(gt.load(tmp_path / "model.safetensors"))
    for mine, loaded in zip(model.parameters(), other.parameters(), strict=True):
        assert mine.tolist() == loaded.tolist()


def test_a_value_that_cannot_be_saved_is_refused(tmp_path: Path):
    with pytest.raises(StateError, match="'hook' is a function: files can"):
        gt.save({"hook": lambda: None}, tmp_path / "x.safetensors")


def test_nested_values_can_be_saved_and_other_files_are_refused(tmp_path: Path):
    for number, what in enumerate((gt.ones(2), [gt.ones(2), 3, "word"], {"a": {"b": gt.zeros(1)}})):
        gt.save(what, tmp_path / f"{number}.safetensors")
    assert gt.load(tmp_path / "0.safetensors").tolist() == [1, 1]
    assert gt.load(tmp_path / "1.safetensors")[1:] == [3, "word"]
    assert gt.load(tmp_path / "2.safetensors")["a"]["b"].tolist() == [0]
    torch.save({"w": torch.ones(2)}, tmp_path / "pickle.pt")
    with pytest.raises(gt.errors.StateError, match=r"is not a safetensors file .* torch\.load"):
        gt.load(tmp_path / "pickle.pt")
    with pytest.raises(TypeError):
        gt.save({"w": gt.ones(2)}, io.BytesIO())  # type: ignore[arg-type]
