"""Train a small network to tell ten patterns apart.

    python -m examples.train_mlp             # prints the loss every 50 steps, and the accuracy
    python -m examples.train_mlp --torch     # the same program on PyTorch: the same numbers
    python -m examples.train_mlp --steps 20

The data are made here: ten random 28 x 28 pictures, each seen through a lot of noise. Everything that is
random comes from NumPy with a fixed seed, so both libraries see the same pictures and start from the same
weights.
"""

import argparse
from types import ModuleType
from typing import Any

import numpy as np

PIXELS, HIDDEN, CLASSES, BATCH = 784, 256, 10, 64


def pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy pictures, and which of the ten each one shows."""
    clean = np.random.default_rng(0).standard_normal((CLASSES, PIXELS), np.float32)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    return 0.2 * clean[labels] + rng.standard_normal((count, PIXELS), np.float32), labels


def make_model(lib: ModuleType) -> Any:
    """The network, with initial weights that do not depend on the library."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    rng = np.random.default_rng(1)
    weights = {}
    for name, parameter in model.named_parameters():
        scale = 1 / np.sqrt(parameter.shape[-1])
        weights[name] = lib.from_numpy(scale * rng.standard_normal(tuple(parameter.shape), np.float32))
    model.load_state_dict(weights)
    return model


def train(lib: ModuleType, steps: int = 200, report: bool = False) -> tuple[Any, list[float]]:
    """The trained model, and the loss of every step. `lib` is gt or torch: the program is the same."""
    model = make_model(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = pictures(steps * BATCH, seed=2)
    losses = []
    for step in range(steps):
        batch = slice(step * BATCH, (step + 1) * BATCH)
        scores = model(lib.from_numpy(x[batch]))
        loss = lib.nn.functional.cross_entropy(scores, lib.from_numpy(y[batch]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())  # not .item(): that would wait for the step to finish
        if report and step % 50 == 0:
            print(f"step {step:4}  loss {loss.item():.4f}")
    return model, [loss.item() for loss in losses]


def accuracy(lib: ModuleType, model: Any) -> float:
    """How many of a thousand new pictures it gets right."""
    x, y = pictures(1000, seed=3)
    with lib.no_grad():
        scores = model(lib.from_numpy(x)).numpy()
    return float((scores.argmax(1) == y).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network to tell ten patterns apart.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--torch", action="store_true", help="train on PyTorch instead, to compare")
    options = parser.parse_args()
    if options.torch:
        import torch as lib
    else:
        import gt as lib
    model, losses = train(lib, options.steps, report=True)
    print(f"last loss {losses[-1]:.4f}; {accuracy(lib, model):.1%} of new pictures are right")


if __name__ == "__main__":
    main()
