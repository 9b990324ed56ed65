"""Long runs hold no more at the end than at the start: no tensor, no handle, no memory is left behind."""

import gc
from pathlib import Path

import numpy as np
import pytest

import gt
from gt.client import Client
from gt.nn import functional as F
from tests.gt.helpers.servers import resident_bytes

STEPS = 2000


@pytest.mark.parametrize("client", ["pytorch", "processes"], indirect=True)
def test_two_thousand_training_steps_leave_nothing_behind(client: Client):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((32, 16)).astype("float32")
    labels = rng.integers(0, 4, 32)
    model = gt.nn.Sequential(gt.nn.Linear(16, 32), gt.nn.ReLU(), gt.nn.Dropout(0.1), gt.nn.Linear(32, 4))
    optimizer = gt.optim.Adam(model.parameters(), lr=1e-3)
    schedule = gt.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)

    def step() -> gt.Tensor:
        optimizer.zero_grad()
        x, y = gt.from_numpy(data), gt.from_numpy(labels)  # data comes anew with every step
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        gt.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss

    def held() -> tuple[int, int]:
        workers, dispatcher = client.get_stats(), client.get_dispatcher_stats()
        return sum(stats["tensors"] for stats in workers.values()), dispatcher["handles"]

    def memory() -> list[int]:
        pids = [stats["pid"] for stats in client.get_stats().values()]
        return [resident_bytes(pid) for pid in {*pids, client.get_dispatcher_stats()["pid"]}]

    first = step().item()
    gc.disable()  # nothing may depend on it
    try:
        for _ in range(200):
            step()
        tensors, bytes_before = held(), memory()
        loss = None
        for number in range(STEPS):
            loss = step()
            if number % 500 == 0:
                loss.item()
        assert loss is not None
        assert loss.item() < first
        del loss
        assert held() == tensors
    finally:
        gc.enable()
    for before, after in zip(bytes_before, memory(), strict=True):
        assert after - before < 8 << 20, f"grew from {before >> 20} MB to {after >> 20} MB"


@pytest.mark.parametrize("client", ["pytorch", "processes"], indirect=True)
def test_large_uploads_and_reads_reuse_their_memory(client: Client):
    from gt.transport.shared_memory import FOLDER

    data = np.ones(1 << 20, np.float32)

    def segments() -> int:
        return len(list(Path(FOLDER).glob("gt-*"))) if FOLDER.exists() else 0

    def once() -> None:
        assert (gt.from_numpy(data) + 1).numpy()[5] == 2

    for _ in range(20):
        once()
    before = segments()
    for _ in range(100):
        once()
    assert segments() <= before + 2
