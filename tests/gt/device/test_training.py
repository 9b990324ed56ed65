"""Training on the device gives the CPU's losses: layers, optimizers, and models of Hugging Face."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import gt.torch  # noqa: F401 - registers the device

DEVICE = "tapestry"


def _losses(
    model: nn.Module, step: Callable[[nn.Module], torch.Tensor], optimizer: Any, steps: int = 4
) -> list[float]:
    chosen = optimizer(model.parameters())
    losses = []
    for _ in range(steps):
        chosen.zero_grad()
        loss = step(model)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        chosen.step()
        losses.append(loss.item())
    return losses


def _adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-3)


class _Last(nn.Module):
    """The first of what a module gives."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x)[0]


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), (32, 8)),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 4)
        ),
        (4, 3, 8, 8),
    ),
    "lstm": (lambda: _Last(nn.LSTM(8, 16, num_layers=2, batch_first=True)), (2, 5, 8)),
    "gru": (lambda: _Last(nn.GRU(8, 16, batch_first=True)), (2, 5, 8)),
    "rnn": (lambda: _Last(nn.RNN(8, 16, batch_first=True)), (2, 5, 8)),
    "transformer": (lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True), (2, 7, 32)),
    "norms": (lambda: nn.Sequential(nn.LayerNorm(8), nn.Unflatten(1, (2, 4)), nn.GroupNorm(2, 2)), (16, 8)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_layers(name: str, dtype: torch.dtype) -> None:
    make, size = MODELS[name]
    torch.manual_seed(0)
    model, x = make().to(dtype), torch.randn(size, dtype=dtype)
    there = copy.deepcopy(model).to(DEVICE)
    y = x.to(DEVICE)
    expected = _losses(model, lambda m: m(x).square().mean(), _adamw)
    found = _losses(there, lambda m: m(y).square().mean(), _adamw)
    assert found == pytest.approx(expected, rel=1e-5)
    # AdamW divides a gradient by its size: where that is nearly zero, a rounding in float32 is a whole step.
    atol = 1e-6 if dtype == torch.float64 else 1e-3
    for (key, a), b in zip(there.state_dict().items(), model.state_dict().values(), strict=True):
        torch.testing.assert_close(
            a.cpu(), b, rtol=1e-3, atol=atol, msg=lambda text, key=key: f"{key}: {text}"
        )


@pytest.mark.parametrize("options", [{}, {"foreach": False}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize(
    "optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad]
)
def test_optimizers(optimizer: Any, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(8, 4)
    there, y = copy.deepcopy(model).to(DEVICE), x.to(DEVICE)
    expected = _losses(model, lambda m: m(x).square().mean(), lambda p: optimizer(p, lr=0.01), 5)
    found = _losses(there, lambda m: m(y).square().mean(), lambda p: optimizer(p, lr=0.01, **options), 5)
    assert found == pytest.approx(expected, rel=1e-5)


def _common(**more: Any) -> dict[str, Any]:
    return {
        "vocab_size": 128,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
        **more,
    }


def _of_transformers(name: str) -> Any:
    t: Any = pytest.importorskip("transformers")

    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    heads = {"num_key_value_heads": 2}
    match name:
        case "llama":
            return t.LlamaForCausalLM(t.LlamaConfig(**_common(**heads)))
        case "qwen":
            return t.Qwen2ForCausalLM(t.Qwen2Config(**_common(**heads)))
        case "mistral":
            return t.MistralForCausalLM(t.MistralConfig(**_common(**heads)))
        case "mixtral":
            return t.MixtralForCausalLM(t.MixtralConfig(**_common(**heads, num_local_experts=4)))
        case "gpt2":
            sizes = {"vocab_size": 128, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
            tokens = {"bos_token_id": 1, "eos_token_id": 2}
            return t.GPT2LMHeadModel(
                t.GPT2Config(**sizes, **tokens, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
            )
        case "bert":
            return t.BertForMaskedLM(t.BertConfig(**_common(**no_dropout)))
        case "t5":
            sizes = {"vocab_size": 128, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
            return t.T5ForConditionalGeneration(
                t.T5Config(**sizes, dropout_rate=0.0, decoder_start_token_id=0)
            )
        case "vit":
            sizes = _common(**no_dropout, image_size=32, patch_size=8, num_labels=5)
            return t.ViTForImageClassification(
                t.ViTConfig(**{k: v for k, v in sizes.items() if "position" not in k})
            )
        case "whisper":
            both = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}
            sizes = {f"{side}_{key}": n for side in ("encoder", "decoder") for key, n in both.items()}
            tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
            lengths = {"max_source_positions": 50, "max_target_positions": 32, "num_mel_bins": 16}
            return t.WhisperForConditionalGeneration(
                t.WhisperConfig(vocab_size=128, d_model=32, **sizes, **tokens, **lengths, dropout=0.0)
            )
        case "mamba":
            sizes = {"vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}
            return t.MambaForCausalLM(t.MambaConfig(**sizes))
    raise ValueError(name)


@pytest.mark.parametrize(
    "name", ["llama", "qwen", "mistral", "mixtral", "gpt2", "bert", "t5", "vit", "whisper", "mamba"]
)
def test_models_of_hugging_face(name: str) -> None:
    pytest.importorskip("transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _train_and_generate(name)


def _train_and_generate(name: str) -> None:
    torch.manual_seed(0)
    tokens = torch.randint(3, 128, (2, 16))
    batch = {"input_ids": tokens, "labels": tokens}
    if name == "vit":
        batch = {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([1, 3])}
    if name == "whisper":
        batch = {"input_features": torch.randn(2, 16, 100), "labels": tokens[:, :8]}
    model = _of_transformers(name).train()
    there = copy.deepcopy(model).to(DEVICE)
    moved = {key: one.to(DEVICE) for key, one in batch.items()}
    expected = _losses(model, lambda m: m(**batch).loss, _adamw, 3)
    found = _losses(there, lambda m: m(**moved).loss, _adamw, 3)
    assert found == pytest.approx(expected, rel=1e-4)
    if name in ("bert", "vit"):
        return
    prompt = "input_features" if name == "whisper" else "input_ids"
    start = batch[prompt] if name == "whisper" else tokens[:, :6]
    options = {"max_new_tokens": 6, "do_sample": False}
    written = model.eval().generate(start, **options)
    assert there.eval().generate(start.to(DEVICE), **options).tolist() == written.tolist()
