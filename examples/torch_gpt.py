"""Train a small GPT on a text, character by character, in plain PyTorch.

    python -m examples.torch_gpt                    # on torch.device("tapestry"); prints losses
    python -m examples.torch_gpt --device cpu       # the same curve
    GT_WORKERS=1 python -m examples.torch_gpt       # with a worker in a process of its own

Written as for a GPU: `import gt.torch` and the name of the device are all that is not in a script for CUDA.
The model starts from the same weights and sees the same batches on every device, since both are made on the
CPU and moved.
"""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F

import gt.torch  # noqa: F401 - registers torch.device("tapestry")

TEXT = """\
The quick brown fox jumps over the lazy dog. Pack my box with five dozen liquor jugs.
How vexingly quick daft zebras jump! Sphinx of black quartz, judge my vow.
The five boxing wizards jump quickly. Jackdaws love my big sphinx of quartz.
"""


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A layer: attention and a small network, each added to its input."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """A decoder whose output layer has the weights of its embedding."""

    def __init__(
        self,
        vocabulary: int,
        context: int,
        width: int = 64,
        layers: int = 2,
        heads: int = 4,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.context = context
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(
        self, tokens: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The logits of the next tokens, and the loss if they are known."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        logits = self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(positions))))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def generate(self, tokens: torch.Tensor, count: int) -> torch.Tensor:
        """Append the most likely token, again and again."""
        for _ in range(count):
            logits, _ = self(tokens[:, -self.context :])
            tokens = torch.cat((tokens, logits[:, -1:].argmax(-1)), dim=1)
        return tokens


def rate(step: int, steps: int, highest: float, warmup: int = 10) -> float:
    """The learning rate of a step: it rises over a warm-up, and falls like a cosine."""
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * (0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))))


def train(options: argparse.Namespace) -> list[float]:
    """Train, and print; the result is the losses."""
    device = torch.device(options.device)
    torch.manual_seed(options.seed)

    characters = sorted(set(TEXT))
    data = torch.tensor([characters.index(one) for one in TEXT * 8])
    model = GPT(len(characters), options.context, options.width, options.layers, dropout=options.dropout)
    model.to(device)
    decayed = [one for one in model.parameters() if one.dim() > 1]
    others = [one for one in model.parameters() if one.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], betas=(0.9, 0.95)
    )
    print(f"{sum(one.numel() for one in model.parameters())} parameters on {next(model.parameters()).device}")

    losses: list[torch.Tensor] = []
    for step in range(options.steps):
        starts = torch.randint(len(data) - options.context - 1, (options.batch,))
        x = torch.stack([data[at : at + options.context] for at in starts]).pin_memory()
        y = torch.stack([data[at + 1 : at + 1 + options.context] for at in starts]).pin_memory()
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, options.steps, 3e-3)
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        if step % 20 == 0 or step == options.steps - 1:
            print(f"step {step:4d}  loss {loss.item():.4f}")

    model.eval()
    prompt = torch.tensor([[characters.index(one) for one in "The "]], device=device)
    written = model.generate(prompt, 40)[0].tolist()
    print("".join(characters[one] for one in written))
    return torch.stack(losses).tolist()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description="Train a small GPT on a text, character by character.")
    made.add_argument("--device", default="tapestry")
    made.add_argument("--steps", type=int, default=200)
    made.add_argument("--batch", type=int, default=16)
    made.add_argument("--context", type=int, default=32)
    made.add_argument("--width", type=int, default=64)
    made.add_argument("--layers", type=int, default=2)
    made.add_argument("--dropout", type=float, default=0.0, help="other numbers on every device")
    made.add_argument("--seed", type=int, default=0)
    return made


if __name__ == "__main__":
    train(parser().parse_args())
