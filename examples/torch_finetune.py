"""Fine-tune a model of Hugging Face with its `Trainer`.

    python -m examples.torch_finetune               # on torch.device("tapestry"); prints losses, accuracy
    python -m examples.torch_finetune --device cpu  # the same numbers

`Trainer` takes its device from accelerate, whose setting for it is the environment variable
ACCELERATE_TORCH_DEVICE: that and `import gt.torch` are all that is not in a script for CUDA. The model is a
small BERT with random weights, and the data are made here, so nothing is downloaded. The task: which of two
words occurs more often in a sentence?
"""

import argparse
import os
import tempfile
from typing import Any

import torch

import gt.torch  # noqa: F401 - registers torch.device("tapestry")

WORDS, LENGTH = 32, 16


def sentences(count: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Random words, many of them 3 or 4; and whether there are more of the one or of the other."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    while len(made) < count:
        tokens = torch.randint(5, WORDS, (LENGTH,), generator=generator)
        chosen = torch.rand(LENGTH, generator=generator) < 0.6
        tokens[chosen] = torch.randint(3, 5, (int(chosen.sum()),), generator=generator)
        more = int((tokens == 3).sum() - (tokens == 4).sum())
        if more:
            made.append({"input_ids": tokens, "labels": torch.tensor(int(more > 0))})
    return made


def accuracy(predictions: Any) -> dict[str, float]:
    """The share of sentences that the model gets right."""
    return {"accuracy": float((predictions.predictions.argmax(-1) == predictions.label_ids).mean())}


def train(options: argparse.Namespace) -> tuple[list[float], float]:
    """Train and evaluate; the result is the losses and the accuracy."""
    os.environ["ACCELERATE_TORCH_DEVICE"] = options.device
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=32,
        num_hidden_layers=options.layers,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,  # other random numbers on every device
        attention_probs_dropout_prob=0.0,
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=BertForSequenceClassification(config),
            args=TrainingArguments(
                output_dir=folder,
                max_steps=options.steps,
                per_device_train_batch_size=32,
                learning_rate=2e-3,
                warmup_steps=5,
                logging_steps=options.every,
                save_strategy="steps",
                save_steps=options.steps,  # a checkpoint at the end
                report_to=[],
                disable_tqdm=True,
            ),
            train_dataset=sentences(1024, seed=1),
            eval_dataset=sentences(256, seed=2),
            compute_metrics=accuracy,
        )
        trainer.train()
        found = trainer.evaluate()
    print(f"accuracy {found['eval_accuracy']:.3f} on {trainer.args.device}")
    return [one["loss"] for one in trainer.state.log_history if "loss" in one], found["eval_accuracy"]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description="Fine-tune a model of Hugging Face with its Trainer.")
    made.add_argument("--device", default="tapestry")
    made.add_argument("--steps", type=int, default=100)
    made.add_argument("--layers", type=int, default=2)
    made.add_argument("--every", type=int, default=10, help="print the loss after so many steps")
    return made


if __name__ == "__main__":
    train(parser().parse_args())
