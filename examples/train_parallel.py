"""Train a small GPT over several workers, in three ways, without changing the model.

    python -m examples.train_parallel data                 # each worker has a part of every batch
    python -m examples.train_parallel tensor               # each worker has a part of every weight
    python -m examples.train_parallel pipeline             # each worker has some of the layers
    python -m examples.train_parallel data --workers 4 --steps 20

The signals in `examples/parallel.yaml` define the layouts of tensors; the model is that of
`examples/train_transformer.py`. All three print the losses of training on one worker, up to rounding.
"""

import argparse
import contextlib
from pathlib import Path
from typing import Any

import gt
from examples.train_transformer import batches, make_model

SIGNALS = Path(__file__).with_name("parallel.yaml")

# Of two products in a row, the first weight is split by rows and the second by columns: the tensor between
# them is split too, and only the result of the second has to be added up.
ROWS = ("qkv.weight", "mlp.0.weight", "qkv.bias", "mlp.0.bias")
COLUMNS = ("attention.out.weight", "mlp.2.weight")


def lay_out(model: Any, how: str, workers: int) -> None:
    """Give the model's parameters their layouts."""
    state = {}
    for name, value in model.state_dict().items():
        if how == "data":
            signal = "everywhere"
        elif how == "tensor":
            signal = "rows" if name.endswith(ROWS) else "columns" if name.endswith(COLUMNS) else "everywhere"
        else:
            signal = stage_of(name, workers)
        state[name] = gt.signal.tensor(value, signal)
    model.load_state_dict(state)


def stage_of(name: str, workers: int) -> str:
    """The stage of the pipeline that a parameter belongs to: blocks in order, the rest at the ends."""
    if name.startswith("blocks."):
        return f"stage{min(int(name.split('.')[1]), workers - 1)}"
    return "stage0" if name.startswith(("letters", "positions")) else f"stage{min(1, workers - 1)}"


def forward(model: Any, letters: Any, how: str, workers: int) -> Any:
    """The model's scores. In a pipeline, every block runs where its parameters are."""
    if how != "pipeline":
        return model(letters)
    with gt.signal.context("stage0"):
        x = model.letters(letters) + model.positions(gt.arange(letters.shape[1]))
    for number, block in enumerate(model.blocks):
        with gt.signal.context(f"stage{min(number, workers - 1)}"):
            x = block(x)
    with gt.signal.context(f"stage{min(1, workers - 1)}"):
        return model.head(model.norm(x))


def train(how: str, steps: int, workers: int, report: bool = False) -> list[float]:
    """The loss of every step."""
    gt.load_config(SIGNALS)
    model = make_model(gt)
    lay_out(model, how, workers)
    optimizer = gt.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step, (x, y) in enumerate(zip(*batches(steps), strict=True)):
        with gt.signal.context("batch") if how == "data" else contextlib.nullcontext():
            letters, following = gt.from_numpy(x), gt.from_numpy(y)
        scores = forward(model, letters, how, workers)
        loss = gt.nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if report and step % 5 == 0:
            print(f"step {step:4}  loss {loss.item():.4f}")
    return [loss.item() for loss in losses]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small GPT over several workers.")
    parser.add_argument("how", choices=["data", "tensor", "pipeline"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    gt.init(workers=options.workers)
    losses = train(options.how, options.steps, options.workers, report=True)
    print(f"last loss {losses[-1]:.4f}")
    for sharding in gt.debug.get_dispatcher_stats().get("sharding", {}).values():  # none on one worker
        print(f"exchanges between workers: {sharding['commands']}")


if __name__ == "__main__":
    main()
