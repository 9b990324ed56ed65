"""Training scripts of the kinds that researchers write: the device's losses and results are the CPU's."""

import collections
import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

import gt.torch  # noqa: F401 - registers the device
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer

Random = Callable[..., torch.Tensor]


def adversarial(device: str, randn: Random) -> list[float]:
    """A GAN with spectral normalization and a gradient penalty: second derivatives of convolutions."""
    generator: Any = nn.Sequential(
        *(nn.ConvTranspose2d(4, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)),
        *(nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh()),
    ).to(device)
    critic: Any = nn.Sequential(
        nn.utils.parametrizations.spectral_norm(nn.Conv2d(1, 8, 4, 2, 1)),
        *(nn.LeakyReLU(0.2, inplace=True), nn.Flatten(), nn.Linear(128, 1)),
    ).to(device)
    optimizers = [torch.optim.Adam(one.parameters(), 2e-3, betas=(0.5, 0.9)) for one in (generator, critic)]
    losses = []
    for _ in range(3):
        real, fake = randn(4, 1, 8, 8).to(device), generator(randn(4, 4, 1, 1).to(device))
        critic.zero_grad()
        between = torch.lerp(real, fake.detach(), 0.3).requires_grad_()
        scores = critic(between)
        (slope,) = torch.autograd.grad(scores, between, torch.ones_like(scores), create_graph=True)
        penalty = (slope.flatten(1).norm(dim=1) - 1).square().mean()
        loss = critic(fake.detach()).mean() - critic(real).mean() + 10 * penalty
        loss.backward()
        optimizers[1].step()
        generator.zero_grad()
        deceived = F.softplus(-critic(fake)).mean()
        deceived.backward()
        optimizers[0].step()
        losses += [loss.item(), deceived.item()]
    return losses


def replayed(device: str, randn: Random) -> list[float]:
    """Q-learning from a replay buffer of single steps, with a target network that follows."""
    choose = random.Random(0)
    network = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
    target = copy.deepcopy(network)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, amsgrad=True)
    buffer: collections.deque[Any] = collections.deque(maxlen=20)
    state, losses = torch.zeros(1, 4, device=device), []
    for step in range(16):
        with torch.no_grad():
            action = network(state).max(1).indices.view(1, 1)
        if choose.random() < 0.5:
            action = torch.tensor([[choose.randrange(2)]], device=device)
        following = None if step % 5 == 4 else randn(1, 4).to(device)
        buffer.append((state, action, following, torch.tensor([step / 8 + action.item()], device=device)))
        state = torch.zeros(1, 4, device=device) if following is None else following
        if len(buffer) < 8:
            continue
        states, actions, after, rewards = zip(*choose.sample(list(buffer), 8), strict=True)
        goes_on = torch.tensor([one is not None for one in after], device=device)
        values = torch.zeros(8, device=device)
        with torch.no_grad():
            values[goes_on] = target(torch.cat([one for one in after if one is not None])).max(1).values
        found = network(torch.cat(states)).gather(1, torch.cat(actions))
        loss = F.smooth_l1_loss(found, (values * 0.99 + torch.cat(rewards)).unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(network.parameters(), 0.5)
        optimizer.step()
        kept, new = target.state_dict(), network.state_dict()
        target.load_state_dict({name: 0.9 * kept[name] + 0.1 * new[name] for name in new})
        losses.append(loss.item())
    return losses


def on_a_graph(device: str, randn: Random) -> list[float]:
    """Attention over the edges of graphs, by scattering and adding at indices."""
    project, score = nn.Linear(5, 8).to(device), nn.Parameter(torch.linspace(-1, 1, 16).to(device))
    head = nn.Linear(8, 3).to(device)
    optimizer = torch.optim.Adam([*project.parameters(), score, *head.parameters()], 0.01, weight_decay=5e-4)
    losses = []
    for _ in range(3):
        x, edges = randn(12, 5).to(device), randn(2, 30).mul(100).long().remainder(12).to(device)
        sources, targets = torch.cat([edges, torch.arange(12, device=device).repeat(2, 1)], 1)
        h = project(x)
        weight = F.leaky_relu(torch.cat([h[sources], h[targets]], -1) @ score, 0.2)
        largest = torch.full((12,), -1e9, device=device).scatter_reduce(0, targets, weight, "amax")
        weight = (weight - largest[targets]).exp()
        total = torch.zeros(12, device=device).index_add_(0, targets, weight)
        h = torch.zeros_like(h).index_add(0, targets, h[sources] * (weight / total[targets])[:, None])
        graph = torch.arange(12, device=device) // 4
        pooled = torch.zeros(int(graph.max()) + 1, 8, device=device)
        pooled = pooled.scatter_add_(0, graph[:, None].expand_as(h), h) / torch.bincount(graph)[:, None]
        loss = F.cross_entropy(head(F.elu(pooled)), torch.arange(3, device=device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class _Contrast(nn.Module):
    """Contrastive learning with a momentum encoder and a queue of negatives, written through slices."""

    queue: torch.Tensor
    place: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.linspace(-1, 1, 48).sin().view(4, 12), dim=0))
        self.register_buffer("place", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        queries = F.normalize(self.query(x), dim=1)
        with torch.no_grad():
            for new, kept in zip(self.query.parameters(), self.key.parameters(), strict=True):
                kept.data = kept.data * 0.9 + new.data * 0.1
            keys = F.normalize(self.key(y), dim=1)
        near = torch.einsum("nc,nc->n", queries, keys).unsqueeze(-1)
        logits = torch.cat([near, queries @ self.queue.clone().detach()], 1) / 0.2
        start = int(self.place)
        self.queue[:, start : start + len(keys)] = keys.T
        self.place[0] = (start + len(keys)) % 12
        return F.cross_entropy(logits, torch.zeros(len(x), dtype=torch.int64).to(x.device))


def contrastive(device: str, randn: Random) -> list[float]:
    model = _Contrast().to(device)
    optimizer = torch.optim.SGD(model.query.parameters(), 0.1, momentum=0.9, nesterov=True)
    losses = []
    for _ in range(5):
        x = randn(4, 6)
        loss = model(x.to(device), (x + 0.1 * randn(4, 6)).to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, model.queue.sum().item()]


def searched(device: str, randn: Random) -> list[float]:
    """Attention with a cache that beam search reorders in place."""
    embed, project = nn.Embedding(13, 16).to(device), nn.Linear(16, 48).to(device)
    beams, scores = 3, torch.tensor([0.0, -1e9, -1e9], device=device)
    cache = torch.zeros(2, beams, 2, 12, 8, device=device)
    text = torch.tensor([[1, 2, 3]] * beams, device=device)
    with torch.inference_mode():
        begin = 0
        for _ in range(5):
            x = embed(text[:, begin:])
            q, k, v = (one.unflatten(-1, (2, 8)).transpose(1, 2) for one in project(x).chunk(3, -1))
            end = text.shape[1]
            cache[0, :, :, begin:end], cache[1, :, :, begin:end] = k, v
            y = F.scaled_dot_product_attention(q, *cache[..., :end, :], is_causal=not begin)  # type: ignore[arg-type]
            logits = y.transpose(1, 2).flatten(2)[:, -1] @ embed.weight.T
            scores, found = (logits.log_softmax(-1) + scores[:, None]).view(-1).topk(beams)
            beam = torch.div(found, 13, rounding_mode="floor")
            text = torch.cat([text[beam], (found % 13)[:, None]], 1)
            cache.copy_(cache.index_select(1, beam))
            begin = end
    return [*map(float, text.flatten().tolist()), *scores.tolist()]


def learning_to_learn(device: str, randn: Random) -> list[float]:
    """MAML by function transforms: gradients through steps of gradient descent, over a batch of tasks."""
    model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    parameters = dict(model.named_parameters())
    optimizer = torch.optim.RMSprop(parameters.values(), 1e-2, centered=True)

    def loss(given: dict[str, Any], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (functional_call(model, given, (x,)) - y).square().mean()

    def adapted(given: dict[str, Any], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            slope = grad(loss)(given, x, y)
            given = {name: one - 0.05 * slope[name] for name, one in given.items()}
        return loss(given, x + 0.1, y)

    losses = []
    for _ in range(3):
        x = randn(3, 5, 1).to(device)
        found = vmap(adapted, in_dims=(None, 0, 0))(parameters, x, x.sin()).mean()
        optimizer.zero_grad()
        found.backward()
        optimizer.step()
        losses.append(found.item())
    return losses


SCRIPTS = (adversarial, replayed, on_a_graph, contrastive, searched, learning_to_learn)


def _run(script: Callable[[str, Random], list[float]], device: str) -> list[float]:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    return script(device, lambda *size: torch.randn(size, generator=generator))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.__name__)
def test_a_script_gives_what_it_gives_on_the_cpu(script: Callable[[str, Random], list[float]]) -> None:
    assert _run(script, "tapestry") == pytest.approx(_run(script, "cpu"), rel=2e-4, abs=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.__name__)
def test_a_script_gives_the_same_over_workers(script: Callable[[str, Random], list[float]]) -> None:
    expected = _run(script, "cpu")
    with using(ThreadServer(3, "pytorch", shard_threshold=16)):
        assert _run(script, "tapestry") == pytest.approx(expected, rel=2e-4, abs=1e-5)
