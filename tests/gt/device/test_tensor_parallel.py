"""In `gt.torch.shard(model, "tensor")` heads of attention stay on their workers, however it is written."""

import copy
import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import gt.torch
from gt.client import session
from tests.gt.device.parallel_models import Block, make
from tests.gt.helpers.spread import Servers, using
from tests.gt.helpers.threads import ThreadServer

HEADS, WIDTH, LENGTH = 4, 32, 12


def _heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def fused(q: Any, k: Any, v: Any, heads: int, p: float) -> torch.Tensor:
    q, k, v = _heads(q, HEADS), _heads(k, heads), _heads(v, heads)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p, enable_gqa=heads < HEADS)
    return y.transpose(1, 2).flatten(2)


def written_out(q: Any, k: Any, v: Any, heads: int, p: float) -> torch.Tensor:
    q, k, v = _heads(q, HEADS), _heads(k, heads), _heads(v, heads)
    if heads < HEADS:  # as in transformers
        k, v = (
            one[:, :, None].expand(-1, -1, HEADS // heads, -1, -1).reshape(len(one), HEADS, LENGTH, -1)
            for one in (k, v)
        )
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    mask = torch.ones(LENGTH, LENGTH, device=q.device).tril().view(1, 1, LENGTH, LENGTH)
    scores = scores.masked_fill(mask == 0, float("-inf")).softmax(-1)
    return (F.dropout(scores, p) @ v).transpose(1, 2).contiguous().view(len(q), LENGTH, WIDTH)


def einsum(q: Any, k: Any, v: Any, heads: int, p: float) -> torch.Tensor:
    q, k, v = (one.view(*one.shape[:2], HEADS, -1) for one in (q, k, v))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.shape[-1])
    return torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).reshape(len(q), LENGTH, WIDTH)


class Layer(Block):
    """A layer of a transformer, with one of these."""

    def __init__(self, attention: Any, heads: int = HEADS, p: float = 0.0) -> None:
        super().__init__(WIDTH, HEADS)
        self.attention, self.p, self.key_heads = attention, p, heads
        self.k_proj, self.v_proj = (nn.Linear(WIDTH, WIDTH * heads // HEADS) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.before(x)
        y = self.attention(self.q_proj(y), self.k_proj(y), self.v_proj(y), self.key_heads, self.p)
        x = x + F.dropout(self.out_proj(y), self.p)
        return x + F.dropout(self.fc2(F.gelu(self.fc1(self.between(x)))), self.p)


KINDS: dict[str, tuple[Any, ...]] = {
    "fused": (fused,),
    "grouped": (fused, 2),
    "written out": (written_out,),
    "written out, grouped": (written_out, 2),
    "einsum": (einsum,),
    "dropout": (written_out, HEADS, 0.1),
    "fused with dropout": (fused, HEADS, 0.1),
}


def _stack(kind: str) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*[Layer(*KINDS[kind]) for _ in range(2)], nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 8))


def _train(model: nn.Module, device: str, counts: list[Counter[str]] | None = None) -> list[float]:
    """The losses of three steps, and the exchanges of each."""
    torch.manual_seed(1)
    batches = [torch.randn(4, LENGTH, WIDTH) for _ in range(3)]
    model = copy.deepcopy(model).to(device)
    if counts is not None:
        gt.torch.shard(model, "tensor")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for x in batches:
        x = x.to(device)
        before = _exchanges() if counts is not None else Counter()
        loss = model(x).square().mean()
        loss.backward()
        if counts is not None:
            counts.append(_exchanges() - before)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def _exchanges() -> Counter[str]:
    client = session.current()
    client.flush()
    (found,) = client.get_dispatcher_stats()["sharding"].values()
    return Counter({kind: n for kind, n in found["commands"].items() if kind not in ("Move", "Create")})


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_has_two_reductions_forward_and_two_backward(kind: str):
    model, counts = _stack(kind), []
    with using(ThreadServer(2, "pytorch")):
        losses = _train(model, "tapestry", counts)
    assert counts[1:] == [{"AllReduce": 2 * (2 + 2)}] * 2
    if "dropout" in kind:  # the numbers are not the CPU's, and those of one worker
        with using(ThreadServer(1, "pytorch")):
            expected = _train(model, "tapestry")
    else:
        expected = _train(model, "cpu")
    assert losses == pytest.approx(expected, rel=1e-4)


def test_more_workers_than_heads_of_keys_give_the_same():
    model, counts = _stack("grouped"), []
    with using(ThreadServer(3, "pytorch")):
        losses = _train(model, "tapestry", counts)
    assert losses == pytest.approx(_train(model, "cpu"), rel=1e-4)


@pytest.mark.parametrize("name", ["llama", "gpt"])
def test_models_keep_their_heads_apart(name: str):
    if name == "llama":
        pytest.importorskip("transformers")
    with using(ThreadServer(2, "pytorch")) as client:
        model = gt.torch.shard(make(name).to("tapestry"), "tensor")
        tokens = torch.randint(0, 64, (4, LENGTH)).to("tapestry")
        result = model(tokens)
        (result.logits if name == "llama" else result).sum().backward()
        (found,) = client.get_dispatcher_stats()["sharding"].values()
    assert found["gathered"] == {}


# --- products of batches with several axes ---


def _products(q: Any, k: Any) -> list[Any]:
    merged = q.reshape(-1, *q.shape[2:])
    product = torch.bmm(merged, k.reshape(-1, *k.shape[2:]))
    product[0].mul_(2)  # a change of a part of the result
    return [q @ k, product, product.view(*q.shape[:2], *product.shape[1:]).sum(1), torch.bmm(product, merged)]


SHAPES = [((2, 3, 4, 5), (2, 3, 5, 4)), ((1, 3, 4, 5), (1, 3, 5, 4)), ((2, 1, 4, 5), (2, 1, 5, 4))]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_products_and_their_gradients_are_those_of_the_cpu(left: Any, right: Any, turned: bool):
    servers = Servers("pytorch")
    for workers, seed in ((1, 0), (2, 1), (3, 2)):
        found = []
        for device in ("cpu", "tapestry"):
            with servers.use(workers, seed):
                torch.manual_seed(0)
                q, k = (torch.randn(size, dtype=torch.float64) for size in (left, right))
                if turned:  # other strides
                    q, k = (one.transpose(1, 2).contiguous().transpose(1, 2) for one in (q, k))
                q, k = (one.to(device).requires_grad_() for one in (q, k))
                results = _products(q, k)
                sum(one.square().sum() for one in results).backward()
                grads = torch.autograd.grad(
                    torch.autograd.grad((q @ k).pow(3).sum(), q, create_graph=True)[0].square().sum(), [q, k]
                )
                found.append([one.detach().cpu() for one in (*results, q.grad, k.grad, *grads)])
        torch.testing.assert_close(found[1], found[0])
    servers.close()


def test_a_product_is_one_instruction_over_both_axes():
    with using(ThreadServer(1, "pytorch")) as client:
        issued: list[Any] = []
        q, k = torch.ones(2, 3, 4, 5).to("tapestry"), torch.ones(2, 3, 5, 4).to("tapestry")
        client.add_listener(issued.append)
        result = (q @ k).softmax(-1)
        assert [one.op for one in issued if hasattr(one, "op")] == ["matmul", "softmax"]
        assert result[0, 0, 0].tolist() == [0.25] * 4


def test_products_of_other_dtypes_and_sizes_raise_the_cpus_errors():
    with using(ThreadServer(1, "pytorch")):
        x = torch.ones(2, 3, 4, 5).to("tapestry").view(6, 4, 5)
        for other, message in (
            (torch.ones(2, 3, 4, 5).to("tapestry").view(6, 4, 5), "Expected size for first two dimensions"),
            (torch.ones(2, 3, 5, 4).double().to("tapestry").view(6, 5, 4), "same dtype|expected scalar type"),
        ):
            with pytest.raises(RuntimeError, match=message):
                torch.bmm(x, other)
