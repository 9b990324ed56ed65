"""Train a small GPT, letter by letter, on a generated text.

    python -m examples.train_transformer             # prints the loss every 25 steps, and then a sample
    python -m examples.train_transformer --torch     # the same program on PyTorch: the same numbers
    python -m examples.train_transformer --steps 20

The text is a few hundred sentences such as "the cat sees a small bird." After a hundred and fifty steps the
model writes sentences of that kind. Everything random comes from NumPy with a fixed seed, so both
libraries see the same batches and start from the same weights.
"""

import argparse
from types import ModuleType
from typing import Any

import numpy as np

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 32, 64, 4, 2, 16


def make_text() -> str:
    rng = np.random.default_rng(0)
    articles, sizes = ("the", "a"), ("small ", "big ", "")
    animals, verbs = ("cat", "dog", "bird", "fish"), ("sees", "hears", "likes")
    sentences = []
    for _ in range(400):
        subject, thing = (
            f"{rng.choice(articles)} {rng.choice(sizes)}{rng.choice(animals)}" for _ in range(2)
        )
        sentences.append(f"{subject} {rng.choice(verbs)} {thing}.\n")
    return "".join(sentences)


TEXT = make_text()
LETTERS = sorted(set(TEXT))
DATA = np.array([LETTERS.index(letter) for letter in TEXT])


def batches(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """For each step, pieces of the text, and the same pieces one letter later."""
    starts = np.random.default_rng(1).integers(0, len(DATA) - CONTEXT, (steps, BATCH, 1))
    at = starts + np.arange(CONTEXT)
    return DATA[at], DATA[at + 1]


def make_model(lib: ModuleType) -> Any:
    """The network, with initial weights that do not depend on the library."""
    nn, F = lib.nn, lib.nn.functional

    class Attention(nn.Module):
        """Every letter looks back at those before it."""

        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.transpose(1, 2).flatten(2))

        def split(self, x: Any) -> Any:
            """(batch, letters, width) -> (batch, heads, letters, width of a head)"""
            return x.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)

    class Block(nn.Module):
        """Look around, then think."""

        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attention = Attention()
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        """For each letter, a score for every letter that may come next."""

        def __init__(self) -> None:
            super().__init__()
            self.letters = nn.Embedding(len(LETTERS), WIDTH)
            self.positions = nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, len(LETTERS), bias=False)

        def forward(self, letters: Any) -> Any:
            x = self.letters(letters) + self.positions(lib.arange(letters.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    model = GPT()
    rng = np.random.default_rng(2)
    weights = {}
    for name, parameter in model.named_parameters():
        shape = tuple(parameter.shape)
        # Weights start small and random, biases at 0, the scales of the norms at 1.
        start = (
            rng.normal(0, 0.05, shape)
            if len(shape) == 2
            else np.full(shape, "norm" in name and name.endswith("weight"))
        )
        weights[name] = lib.from_numpy(start.astype(np.float32))
    model.load_state_dict(weights)
    return model


def train(lib: ModuleType, steps: int = 150, report: bool = False) -> tuple[Any, list[float]]:
    """The trained model, and the loss of every step. `lib` is gt or torch: the program is the same."""
    model = make_model(lib)
    optimizer = lib.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    losses = []
    for step, (x, y) in enumerate(zip(*batches(steps), strict=True)):
        scores = model(lib.from_numpy(x))
        loss = lib.nn.functional.cross_entropy(scores.flatten(0, 1), lib.from_numpy(y).flatten())
        optimizer.zero_grad()
        loss.backward()
        lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())  # not .item(): that would wait for the step to finish
        if report and step % 25 == 0:
            print(f"step {step:4}  loss {loss.item():.4f}")
    return model, [loss.item() for loss in losses]


def write(lib: ModuleType, model: Any, count: int = 120) -> str:
    """What the model writes by itself."""
    rng = np.random.default_rng(3)
    text = [LETTERS.index("\n")]
    with lib.no_grad():
        for _ in range(count):
            scores = model(lib.from_numpy(np.array([text[-CONTEXT:]]))).numpy()[0, -1]
            chances = np.exp(scores - scores.max())
            text.append(int(rng.choice(len(LETTERS), p=chances / chances.sum())))
    return "".join(LETTERS[letter] for letter in text[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small GPT, letter by letter.")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--torch", action="store_true", help="train on PyTorch instead, to compare")
    options = parser.parse_args()
    if options.torch:
        import torch as lib
    else:
        import gt as lib
    model, losses = train(lib, options.steps, report=True)
    print(f"last loss {losses[-1]:.4f}; the model writes:\n{write(lib, model)}")


if __name__ == "__main__":
    main()
