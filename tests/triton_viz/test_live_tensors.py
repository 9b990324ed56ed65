# pyright: reportArgumentType=false
"""The tensors of this process by their addresses, and the memory of a launch that adopts some."""

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch

from tests.triton_viz.helpers.reach import fills, stores_at_address, traced
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.errors import AccessError
from triton_viz.executor import raw_memory, storages
from triton_viz.executor.address_origin import Origin
from triton_viz.executor.affine import Affine
from triton_viz.executor.memory import Memory


@pytest.mark.parametrize("address", [2**47, 2**48 - 4096, 2**52 - 4096, 2**55])
def test_an_address_above_that_of_most_machines_is_like_any_other(address: int, monkeypatch: Any):
    """No memory is there on most machines: the check is real, and what is touched is watched."""
    info = TensorInfo("x", (16,), (1,), "float32", address, 4, (address, address + 64))
    memory = Memory([info])
    assert memory.holds(address, address + 64)
    assert not memory.holds(address, address + 65)
    assert not memory.outside(np.array([address]), np.array([address + 64])).any()
    window = raw_memory.window(
        Affine(np.array([address + 60]), (-4,), (16,), 0, 0), 1, 0, np.dtype(np.float32)
    )
    assert window.__array_interface__["data"][0] == address + 60
    assert window.strides == (0, -4)
    flat, index = raw_memory._flat(np.array([address + 8, address + 60]), np.dtype(np.float32))
    assert flat is not None
    assert flat.__array_interface__["data"][0] + 4 * index.max() == address + 60


def test_loaded_tensors_are_published_as_one_object():
    """A thread that reads while another one adopts sees both, or neither."""
    argument, target = torch.zeros(4), torch.zeros(4)
    memory = Memory([TensorInfo.of("x", argument)])
    before = memory._storages
    memory.resolve(Origin((np.array([[target.data_ptr()]]),)))
    assert before.adopted == []
    assert before.limits(np.array([target.data_ptr()])) is None
    assert [info.storage for info in memory.adopted] == [TensorInfo.of("", target).storage]
    assert memory._storages is not before


def test_a_tensor_that_two_threads_find_keeps_the_name_that_it_got_first():
    target = torch.zeros(4)
    memory, address = Memory([TensorInfo.of("x", torch.zeros(4))]), target.data_ptr()

    class Meanwhile:
        """A lock that another thread, which looks for the same address, gets first."""

        def __enter__(self) -> None:
            memory._lock = threading.RLock()
            memory._adopt([address])

        def __exit__(self, *error: object) -> None: ...

    memory._lock = Meanwhile()  # type: ignore[assignment]
    memory._adopt([address])
    assert [info.name for info in memory.adopted] == ["unnamed0"]


def test_looking_for_tensors_disturbs_no_other_thread():
    """A tuple that is being built must not be held by anyone else."""
    stop, errors = threading.Event(), []

    def build() -> None:
        while not stop.is_set():
            try:
                tuple(n for n in range(40))
            except SystemError as error:
                errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns often
    thread = threading.Thread(target=build)
    thread.start()
    target, kept = torch.zeros(4), [torch.nn.Parameter(torch.zeros(2)) for _ in range(20)]
    many: list[Any] = [[] for _ in range(100_000)]  # so that it takes a while
    try:
        for _ in range(4):
            found = {id(tensor) for tensor in storages._live_tensors()}
            assert {id(tensor) for tensor in (target, *kept)} <= found
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert (errors, len(many)) == ([], 100_000)


def test_looking_for_tensors_changes_none():
    """A lazy clone has no memory of its own before it is written; asking for a pointer to it is a write."""
    target = torch.zeros(16)
    lazy = torch._lazy_clone(torch.zeros(4))  # type: ignore[attr-defined]
    table = torch.tensor([target.data_ptr()])
    traced(fills)[(1,)](table, 0, BLOCK=16)
    assert target.tolist() == [7.0] * 16
    assert torch._C._is_cow_tensor(lazy)  # type: ignore[attr-defined]


def test_an_address_leads_to_a_tensor_as_long_as_any_lives():
    """The one that was looked at first may be gone."""
    target = torch.zeros(16)
    address = target.data_ptr()
    live = storages.LiveTensors()
    first, second = (torch.empty(0).set_(target) for _ in range(2))
    assert [tensor.data_ptr() for _, _, tensor in live.at([address])] == [address]
    del target, first
    ((_, info, tensor),) = live.at([address])
    assert tensor is second
    assert info.shape == (16,)
    del tensor, second
    assert list(live.at([address])) == []


def test_tensors_that_were_frozen_are_hidden_and_the_error_says_so():
    """The process of the tests has frozen what it imported."""
    assert gc.get_freeze_count()
    target = torch.zeros(16)
    with pytest.raises(AccessError, match=r"nor in any other live tensor \(those that gc\.freeze\(\) has"):
        traced(stores_at_address)[(1,)](2**44, target, BLOCK=16)
