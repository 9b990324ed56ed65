"""Training with DistributedDataParallel, on the CPU or on the device: prints losses and exchanges as JSON.

torchrun --standalone --nproc_per_node=2 -m tests.gt.device.ddp_training tapestry
"""

import json
import sys
import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gt.torch  # noqa: F401 - registers the device


def train(device: str, rank: int, ranks: int) -> list[float]:
    """The losses of a few steps, of all processes together."""
    torch.manual_seed(rank)  # DDP gives all the parameters of the first
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    losses = []
    for step in range(4):
        batch = torch.randn(8, 4, generator=torch.Generator().manual_seed(step)).chunk(ranks)[rank]
        loss = model(batch.to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach()
        dist.all_reduce(total)
        losses.append(total.item() / ranks)
    return losses


def exchanged(device: str, rank: int, ranks: int) -> list[object]:
    """What other collectives give."""
    x = torch.full((2,), rank + 1.0, device=device)
    parts = [torch.zeros(2, device=device) for _ in range(ranks)]
    dist.all_gather(parts, x)
    whole = torch.zeros(2 * ranks, device=device)
    dist.all_gather_single(whole, x)
    most = x.clone()
    pending: Any = dist.all_reduce(most, op=dist.ReduceOp.MAX, async_op=True)
    pending.wait()
    first = x.clone()
    dist.broadcast(first, 0)
    names: list[object] = [None] * ranks
    dist.all_gather_object(names, f"rank {rank}")
    sent = torch.zeros(2, device=device)
    if rank == 0:
        dist.send(x, 1)
    elif rank == 1:
        dist.recv(sent, 0)
    total = torch.tensor([1.0 + rank])
    dist.all_reduce(total)  # of the CPU
    dist.barrier()
    return [
        *(one.tolist() for one in parts),
        *(whole.tolist(), most.tolist(), first.tolist(), names, sent.tolist(), total.tolist()),
    ]


def main() -> None:
    """Train and exchange; the last process prints."""
    warnings.simplefilter("ignore")
    device = sys.argv[1]
    dist.init_process_group("gloo" if device == "cpu" else None)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    found = {"losses": train(device, rank, ranks), "exchanged": exchanged(device, rank, ranks)}
    if rank == ranks - 1:
        print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
