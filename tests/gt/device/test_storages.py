"""Storages of the device: tensors that share memory still share it after they are saved, loaded or copied."""

import copy
import io
import pickle
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import torch
from torch import nn

import gt.torch  # noqa: F401 - registers the device
from tests.programs import TIMEOUT

DEVICE = "tapestry"


def _saved(value: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("new_format", [True, False])
@pytest.mark.parametrize("where", [None, "cpu", DEVICE])
def test_tensors_that_share_memory_do_so_after_loading(new_format: bool, where: str | None) -> None:
    whole = torch.arange(6.0, device=DEVICE)
    file = _saved([whole, whole[1:3]], _use_new_zipfile_serialization=new_format)
    first, second = torch.load(file, map_location=where)
    assert first.device.type == (where or DEVICE)
    second.add_(10)
    assert first.tolist() == [0.0, 11.0, 12.0, 3.0, 4.0, 5.0]
    assert whole[1].item() == 1.0


@pytest.mark.parametrize("new_format", [True, False])
def test_a_file_of_the_cpu_is_loaded_to_the_device(new_format: bool) -> None:
    saved = {
        "x": torch.arange(6.0).reshape(2, 3),
        "y": torch.ones(3, dtype=torch.bfloat16),
        "n": torch.ones(2) > 0,
    }
    loaded = torch.load(_saved(saved, _use_new_zipfile_serialization=new_format), map_location=DEVICE)
    for name, one in saved.items():
        assert loaded[name].device.type == DEVICE
        assert torch.equal(loaded[name].cpu(), one)
    loaded["x"][0].mul_(2)
    assert (loaded["x"] + 1).tolist() == [[1.0, 3.0, 5.0], [4.0, 5.0, 6.0]]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False)
        self.head.weight = self.embedding.weight


def test_tied_weights_are_saved_once_and_stay_tied() -> None:
    model = Tied().to(DEVICE)
    state = torch.load(_saved(model.state_dict()))
    assert state["head.weight"].data_ptr() == state["embedding.weight"].data_ptr()
    model.load_state_dict(state)
    whole = torch.load(_saved(model), weights_only=False)
    for one in (model, whole, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert one.head.weight is one.embedding.weight
        assert torch.equal(one.head.weight.cpu(), model.head.weight.cpu())


def test_leaves_that_require_gradients_are_saved_and_loaded() -> None:
    x = torch.ones(2, device=DEVICE, requires_grad=True)
    for loaded in (torch.load(_saved(x)), pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert loaded.requires_grad
        assert loaded.is_leaf
        assert loaded.tolist() == [1.0, 1.0]


def test_copies_are_independent_and_copy_nothing_until_they_are_written_to() -> None:
    x = torch.arange(4.0, device=DEVICE)
    whole, part = copy.deepcopy([x, x[1:]])
    part.zero_()
    assert whole.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    storage = x.untyped_storage().clone()
    x.add_(1)
    assert bytes(storage.tolist()) == torch.arange(4.0).numpy().tobytes()
    assert x.untyped_storage().cpu().nbytes() == 16
    assert x.untyped_storage()[0] == 0


def test_a_loaded_tensor_is_as_fast_as_one_that_was_made() -> None:
    from gt.torch.buffers import buffer_of

    x = torch.arange(6.0).reshape(2, 3).to(DEVICE)
    for one in (torch.load(_saved(x)), copy.deepcopy(x), torch.load(_saved(x.cpu()), map_location=DEVICE)):
        assert buffer_of(one).layout is buffer_of(x).layout
        assert buffer_of(one).dtype is torch.float32


def test_a_storage_is_made_and_written() -> None:
    storage = torch.UntypedStorage(8, device=DEVICE)
    storage.copy_(torch.tensor([1.0, 2.0]).untyped_storage())
    assert torch.empty(0, device=DEVICE).set_(storage).tolist() == [1.0, 2.0]
    assert torch.UntypedStorage([1, 2], device=DEVICE).tolist() == [1, 2]


@pytest.mark.parametrize(
    "use", [lambda one: one.resize_(3), lambda one: one.fill_(1), lambda one: one.byteswap(torch.float32)]
)
def test_unsupported_functions_of_storages_are_errors(use: Any) -> None:
    with pytest.raises(RuntimeError, match="storages of the device tapestry have no memory in this process"):
        use(torch.ones(4, device=DEVICE).untyped_storage())


@pytest.mark.parametrize("export", [torch.to_dlpack, torch.Tensor.__dlpack__])
def test_no_library_gets_the_address_of_a_tensor_without_memory(export: Any) -> None:
    with pytest.raises(BufferError, match=r"no memory in this process .* Export a copy: tensor.cpu\(\)"):
        export(torch.ones(4, device=DEVICE))
    assert torch.from_dlpack(export(torch.ones(2))).tolist() == [1.0, 1.0]


def test_workers_of_a_data_loader_may_give_tensors_of_the_device() -> None:
    program = """
        import torch, gt.torch
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, n):
                return torch.full((2,), float(n)).to("tapestry") + 1

        x = torch.ones(2, device="tapestry")
        print([(x + batch).tolist() for batch in DataLoader(Numbers(), 2, num_workers=1)])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert ran.stdout == "[[[2.0, 2.0], [3.0, 3.0]], [[4.0, 4.0], [5.0, 5.0]]]\n", ran.stderr


def test_parameters_are_not_shared_with_other_processes() -> None:
    from multiprocessing.reduction import ForkingPickler

    with pytest.raises(RuntimeError, match=r"cannot be shared with another process.*pass its state_dict\(\)"):
        ForkingPickler.dumps(nn.Linear(2, 2).to(DEVICE))
