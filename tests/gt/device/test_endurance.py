"""Programs on the device do not leak, and do not disturb each other."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
import torch
from torch import nn

import gt
import gt.torch
from gt.torch.buffers import Handle
from tests.gt.helpers.servers import ROOT, Cluster
from tests.programs import TIMEOUT

DEVICE = "tapestry"


def test_a_thousand_steps_leave_nothing_behind() -> None:
    """No tensors on the worker, no handles here, and no memory."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(256, 64, device=DEVICE)

    def step(n: int) -> None:
        optimizer.zero_grad()
        loss = (model(x) - x[:, :1]).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if n % 50 == 0:
            loss.item()

    def now() -> tuple[int, int, int]:
        gc.collect()
        tensors = sum(stats["tensors"] for stats in gt.debug.get_worker_stats().values())
        handles = sum(type(one) is Handle for one in gc.get_objects())
        return tensors, handles, psutil.Process().memory_info().rss

    for n in range(100):
        step(n)
    before = now()
    for n in range(1000):
        step(n)
    after = now()
    assert before[0] > 0
    assert before[1] > 0
    assert after[0] <= before[0], "tensors on the worker"
    assert after[1] <= before[1], "handles of the program"
    # A step makes a megabyte of results: a thousand kept ones would be a gigabyte.
    assert after[2] - before[2] < 300e6, "memory"


def trained(seed: int, device: str) -> Iterator[float]:
    """The losses of a small network."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
    x = torch.randn(32, 8, generator=generator).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(30):
        optimizer.zero_grad()
        loss = (model(x) - seed).square().mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


PROGRAM = """
import sys
import gt
from tests.gt.device.test_endurance import DEVICE, TIMEOUT, trained

gt.connect(sys.argv[1], timeout=TIMEOUT)
print("ready", flush=True)
sys.stdin.readline()
for loss in trained(int(sys.argv[2]), DEVICE):
    print(f"{loss:.5f}")
"""


def test_two_programs_at_once_on_one_server_train_as_if_alone(pytorch_cluster: Cluster) -> None:
    def start(seed: int) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", PROGRAM, pytorch_cluster.address, str(seed)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    started = [start(1), start(2)]
    try:
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in started:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        first, second = (
            [float(line) for line in one.communicate(timeout=TIMEOUT)[0].split()] for one in started
        )
    finally:
        for one in started:
            one.kill()
            one.wait()
    assert first == pytest.approx(list(trained(1, "cpu")), rel=1e-3)
    assert second == pytest.approx(list(trained(2, "cpu")), rel=1e-3)
    assert len(first) == 30
    assert first != pytest.approx(second, rel=1e-1)
