"""Random numbers of the device: they depend on the seed alone, whichever op draws them, and in any layout."""

from collections.abc import Callable

import pytest
import torch
from torch import distributions
from torch.nn import functional as F

import gt.torch  # noqa: F401 - registers the device
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer

DEVICE = "tapestry"


def _ramp(size: int = 40) -> torch.Tensor:
    return torch.linspace(0.1, 0.9, size, device=DEVICE)


def _integers() -> torch.Tensor:
    return torch.empty(0, dtype=torch.int64, device=DEVICE)


DRAWS: dict[str, Callable[[], torch.Tensor]] = {
    "normal of numbers": lambda: torch.normal(0.0, 1.0, (8,), device=DEVICE),
    "normal, out": lambda: torch.normal(_ramp(), _ramp(), out=torch.empty(40, device=DEVICE)),
    "rand, out": lambda: torch.rand(6, out=torch.empty(2, device=DEVICE)),
    "randint, out": lambda: torch.randint(0, 99, (8,), out=_integers()),
    "randperm, out": lambda: torch.randperm(9, out=_integers()),
    "bernoulli, out": lambda: torch.bernoulli(_ramp(), out=torch.empty(40, device=DEVICE)),
    "multinomial, out": lambda: torch.multinomial(_ramp(), 9, out=_integers()),
    "poisson": lambda: torch.poisson(_ramp() * 30),
    "binomial": lambda: torch.binomial(_ramp() * 0 + 50, _ramp()),
    "rrelu": lambda: F.rrelu(-_ramp(), training=True),
    "rrelu in place": lambda: F.rrelu_(-_ramp(), training=True),
    "gumbel softmax": lambda: F.gumbel_softmax(_ramp().view(4, 10)),
    "alpha dropout": lambda: F.alpha_dropout(_ramp(), 0.5, training=True),
    "attention": lambda: F.scaled_dot_product_attention(*[_ramp().view(1, 1, 10, 4)] * 3, dropout_p=0.5),
    "gamma": lambda: distributions.Gamma(_ramp(), _ramp()).rsample(),
    "beta": lambda: distributions.Beta(_ramp(), _ramp()).rsample(),
    "dirichlet": lambda: distributions.Dirichlet(_ramp()).rsample(),
    "student's t": lambda: distributions.StudentT(_ramp() + 1).rsample(),
    "categorical": lambda: distributions.Categorical(logits=_ramp()).sample((20,)),
}


@pytest.fixture(autouse=True)
def validates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distributions check their arguments, as they do in a program: PyTorch's tests turn that off."""
    monkeypatch.setattr(distributions.Distribution, "_validate_args", True)


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_seed_gives_the_same_numbers_and_each_draw_others(name: str) -> None:
    torch.manual_seed(3)
    first, second = DRAWS[name]().cpu(), DRAWS[name]().cpu()
    torch.manual_seed(3)
    assert torch.equal(DRAWS[name]().cpu(), first)
    assert not torch.equal(first, second)
    assert first.numel() > 4


def test_ops_draw_the_same_numbers_on_any_number_of_workers() -> None:
    found = []
    for workers in (1, 3):
        with using(ThreadServer(workers, "pytorch", shard_threshold=16)):
            torch.manual_seed(5)
            rates = torch.full((30, 20), 7.0, device=DEVICE)
            drawn = (torch.poisson(rates), F.rrelu(-rates, training=True), torch.multinomial(rates, 5))
            found.append([one.cpu() for one in drawn])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_samples_have_the_distributions_mean() -> None:
    torch.manual_seed(0)
    many = torch.full((4000,), 0.25, device=DEVICE)
    means = {
        "poisson": (torch.poisson(many * 8).mean(), 2.0),
        "binomial": (torch.binomial(many * 80, many).mean(), 5.0),
        "gamma": (distributions.Gamma(many * 8, many).sample().mean(), 8.0),
        "normal": (torch.normal(3.0, 2.0, (4000,), device=DEVICE).mean(), 3.0),
    }
    assert {name: found.item() for name, (found, _) in means.items()} == {
        name: pytest.approx(wanted, rel=0.05) for name, (_, wanted) in means.items()
    }


def test_the_device_does_not_draw_from_the_cpus_generator() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    torch.poisson(_ramp()).cpu()
    F.rrelu(_ramp(), training=True).cpu()
    assert torch.equal(torch.rand(3), expected)


def test_a_compiled_graph_draws_new_numbers_in_every_call() -> None:
    torch.compiler.reset()
    compiled = torch.compile(lambda rates: torch.poisson(rates * 30), backend="tapestry")
    torch.manual_seed(1)
    found = [compiled(_ramp()).tolist() for _ in range(3)]
    assert len({tuple(one) for one in found}) == 3
    torch.manual_seed(1)
    assert found == [torch.poisson(_ramp() * 30).tolist() for _ in range(3)]


@pytest.mark.parametrize("draw", [torch.poisson, torch.bernoulli])
def test_another_devices_generator_is_an_error(draw: Callable[..., torch.Tensor]) -> None:
    with pytest.raises(RuntimeError, match="Expected a 'tapestry' device type for generator but found 'cpu'"):
        draw(_ramp(), generator=torch.Generator())
