"""The PyTorch device: the same PyTorch code on "tapestry", eager or compiled, and on the CPU, eager."""

import math
import time
from collections.abc import Callable
from typing import Any

from benchmarks.harness import Job, benchmark, cost_at_most, speed_at_least

SMALL_OPS = 10_000


@benchmark(
    f"{SMALL_OPS:,} additions of 10 elements on the device, embedded, one read at the end",
    "eager PyTorch on the CPU",
    cost_at_most(6),
)
def torch_small_ops() -> tuple[Job, Job]:
    import torch

    import gt
    import gt.torch

    gt.init()

    def job(device: str) -> Job:
        def run() -> object:
            x, y = torch.zeros(10, device=device), torch.ones(10, device=device)
            for _ in range(SMALL_OPS):
                x = x + y
            return x.cpu()

        return run

    return job("tapestry"), job("cpu")


def _steps(
    make: Callable[[], Any], batch: dict[str, Any], steps: int, compiled: bool = False, hot: bool = False
) -> tuple[Job, Job]:
    """Training steps of a Hugging Face model on both devices, with the loss read at the end.

    With `compiled`, model and optimizer on the device are those of torch.compile. With `hot`, the worker has
    compiled the hot paths before.
    """
    import torch

    import gt
    import gt.torch

    gt.init()

    def compile_on_device(one: Any, device: str) -> Any:
        return torch.compile(one, backend="tapestry") if compiled and device == "tapestry" else one

    def job(device: str) -> Job:
        torch.manual_seed(0)
        model = make().to(device).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        moved = {name: one.to(device) for name, one in batch.items()}
        call, step = compile_on_device(model, device), compile_on_device(optimizer.step, device)

        def run() -> object:
            loss = None
            for _ in range(steps):
                optimizer.zero_grad()
                loss = call(**moved).loss
                loss.backward()
                step()
            assert loss is not None
            return loss.item()

        return run

    ours = job("tapestry")
    if compiled or hot:
        _compile(ours)
    return ours, job("cpu")


def _compile(ours: Job) -> None:
    """Run a job until the embedded worker has compiled the sequences that it repeats: each, when it has run
    for half a second."""
    import gt
    from gt import config

    if math.isinf(config.compile_after()):  # GT_COMPILE_AFTER=inf
        return
    before, since = None, time.monotonic()
    while time.monotonic() < since + 3:
        ours()
        (worker,) = gt.debug.get_worker_stats().values()
        now = worker["compiled"], worker["compiling"]
        if now != before or worker["compiling"] or not worker["compiled"]:
            before, since = now, time.monotonic()


def _llama(compiled: bool) -> tuple[Job, Job]:
    import torch
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    tokens = torch.randint(0, 512, (4, 64))
    batch = {"input_ids": tokens, "labels": tokens}
    return _steps(lambda: transformers.LlamaForCausalLM(config), batch, steps=5, compiled=compiled, hot=True)


@benchmark(
    "training steps of a tiny Llama on the device, embedded", "eager PyTorch on the CPU", speed_at_least(0.6)
)
def torch_llama_step() -> tuple[Job, Job]:
    return _llama(compiled=False)


@benchmark(
    'training steps of a tiny Llama with torch.compile(backend="tapestry"), embedded',
    "eager PyTorch on the CPU",
    speed_at_least(1.0),
)
def torch_llama_step_compiled() -> tuple[Job, Job]:
    return _llama(compiled=True)


@benchmark(
    "a training step of GPT-2 small (batch 4 x 256) on the device, embedded",
    "eager PyTorch on the CPU",
    speed_at_least(1.0),
)
def torch_gpt2_step() -> tuple[Job, Job]:
    import torch
    import transformers

    config = transformers.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    tokens = torch.randint(0, config.vocab_size, (4, 256))
    return _steps(
        lambda: transformers.GPT2LMHeadModel(config), {"input_ids": tokens, "labels": tokens}, steps=1
    )
