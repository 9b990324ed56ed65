"""Models that are trained on the CPU, on one worker and over several, in all ways to distribute them.

python -m tests.gt.device.parallel_models 2      # over two processes: prints the losses as JSON
"""

import copy
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import gt
import gt.torch

WAYS = ("", "data", "fsdp", "tensor")
"""How models are distributed; the first leaves it to the policy."""


class Block(nn.Module):
    """A layer of a GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))
        self.out_proj = nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.before(x)
        q, k, v = (
            layer(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out_proj(y.transpose(1, 2).flatten(2))
        return x + self.fc2(nn.functional.gelu(self.fc1(self.between(x))))


class GPT(nn.Module):
    """A small GPT whose head and embedding are one tensor."""

    def __init__(self, letters: int = 64, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(16, width)
        self.blocks = nn.Sequential(Block(width, heads), Block(width, heads))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)
        self.head.weight = self.letters.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.letters(x) + self.places(places))))


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 96), nn.GELU(), nn.Linear(96, 8))


def _cnn() -> nn.Module:
    first = (nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(*first, nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 8))


def _llama() -> nn.Module:
    import transformers

    sizes: dict[str, Any] = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
    }
    heads: dict[str, Any] = {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 32,
    }
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads)).train()


def _classes(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(x), y)


def _following(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def _own_loss(model: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return model(input_ids=x, labels=y).loss


def _twice(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return tokens, tokens


Case = tuple[
    Callable[[], nn.Module], Callable[..., torch.Tensor], Callable[[], tuple[torch.Tensor, torch.Tensor]]
]
CASES: dict[str, Case] = {
    "mlp": (_mlp, _classes, lambda: (torch.randn(16, 32), torch.randint(0, 8, (16,)))),
    "cnn": (_cnn, _classes, lambda: (torch.randn(8, 3, 10, 10), torch.randint(0, 8, (8,)))),
    "gpt": (GPT, _following, lambda: (torch.randint(0, 64, (4, 12)), torch.randint(0, 64, (4, 12)))),
    "llama": (_llama, _own_loss, lambda: _twice(torch.randint(0, 64, (4, 12)))),
}


def make(name: str) -> nn.Module:
    """A model, always with the same parameters."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name][0]()


def train(
    name: str, device: str = "tapestry", how: Any = "", steps: int = 3, report: Any = None
) -> list[float]:
    """The loss of each step; `report` is called after each."""
    model = copy.deepcopy(make(name)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    if how:
        assert gt.torch.shard(model, how) is model
    torch.manual_seed(1)
    batches = [CASES[name][2]() for _ in range(steps)]
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = CASES[name][1](model, x.to(device), y.to(device))
        loss.backward()
        if not report:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if report:
            report(model)
    return losses


if __name__ == "__main__":
    gt.init(workers=int(sys.argv[1]))
    wanted = sys.argv[2:] or [*CASES]
    print(json.dumps({name: {how: train(name, how=how) for how in WAYS} for name in wanted}))
