"""`torch.Generator(device="tapestry")` draws apart from the device's own random numbers, as on a GPU."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gt.torch  # noqa: F401 - registers the device

DEVICE = "tapestry"


def _half(size: int = 40) -> torch.Tensor:
    return torch.full((size,), 0.5, device=DEVICE)


DRAWS: dict[str, Callable[..., torch.Tensor]] = {
    "rand": lambda **g: torch.rand(8, device=DEVICE, **g),
    "randn": lambda **g: torch.randn(8, device=DEVICE, **g),
    "randn, out": lambda **g: torch.randn(8, out=torch.zeros(8, device=DEVICE), **g),
    "randn_like": lambda **g: torch.randn_like(_half(), **g),
    "randint": lambda **g: torch.randint(99, (8,), device=DEVICE, **g),
    "randperm": lambda **g: torch.randperm(20, device=DEVICE, **g),
    "normal of numbers": lambda **g: torch.normal(0.0, 1.0, (8,), device=DEVICE, **g),
    "normal of tensors": lambda **g: torch.normal(_half(), _half(), **g),
    "normal_": lambda **g: _half().normal_(**g),
    "uniform_": lambda **g: _half().uniform_(0, 2, **g),
    "exponential_": lambda **g: _half().exponential_(**g),
    "bernoulli": lambda **g: torch.bernoulli(_half(), **g),
    "multinomial": lambda **g: torch.multinomial(_half(), 9, **g),
    "poisson": lambda **g: torch.poisson(_half() * 20, **g),
    "trunc_normal_": lambda **g: torch.nn.init.trunc_normal_(_half(), **g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_depend_on_the_generator_alone(name: str) -> None:
    draw, generator = DRAWS[name], torch.Generator(device=DEVICE).manual_seed(4)
    torch.manual_seed(1)
    undisturbed = torch.rand(3, device=DEVICE)
    torch.manual_seed(1)
    first, second = draw(generator=generator), draw(generator=generator)
    assert torch.equal(torch.rand(3, device=DEVICE), undisturbed)
    generator.manual_seed(4)
    assert torch.equal(draw(generator=generator), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    "again",
    [
        lambda one: one.clone_state(),
        copy.deepcopy,
        lambda one: pickle.loads(pickle.dumps(one)),
        lambda one: torch.Generator(DEVICE).set_state(one.get_state()),
    ],
    ids=["clone_state", "deepcopy", "pickle", "set_state"],
)
def test_a_copy_goes_on_as_the_generator_does(again: Callable[[Any], Any]) -> None:
    generator = torch.Generator(DEVICE).manual_seed(2)
    torch.rand(2, device=DEVICE, generator=generator)
    other = again(generator)
    assert other.device == torch.device("tapestry:0")
    assert torch.equal(*[torch.rand(9, device=DEVICE, generator=one) for one in (generator, other)])


def test_generators_of_the_cpu_are_made_as_always() -> None:
    one = torch.Generator().manual_seed(3)
    assert type(one) is type(torch.default_generator)
    assert one.device.type == "cpu"
    assert [isinstance(x, torch.Generator) for x in (one, torch.Generator(DEVICE), 3)] == [True, True, False]
    assert torch.equal(torch.rand(2, generator=one), torch.rand(2, generator=one.manual_seed(3)))
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.Generator("tapestry:1")


def test_a_generator_of_the_cpu_is_refused_also_at_the_place_of_one_that_was_freed() -> None:
    for _ in range(50):
        torch.Generator(DEVICE)
        with pytest.raises(RuntimeError, match="Expected a 'tapestry' device type for generator"):
            torch.rand(2, device=DEVICE, generator=torch.Generator())


@pytest.mark.parametrize("backend", ["tapestry", "aot_eager"])
def test_compiled_code_may_draw_from_a_generator(backend: str) -> None:
    def draw(x: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator(device=DEVICE).manual_seed(3)
        return x * 2 + torch.rand(5, device=DEVICE, generator=generator)

    def draw_from(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return x * 2 + torch.rand(5, device=DEVICE, generator=generator)

    torch.compiler.reset()
    x = torch.ones(5, device=DEVICE)
    compiled = torch.compile(draw, backend=backend)
    for _ in range(2):
        assert torch.equal(compiled(x), draw(x))
    compiled, generator = torch.compile(draw_from, backend=backend), torch.Generator(DEVICE)
    for seed in (1, 1, 2):
        found = compiled(x, generator.manual_seed(seed))
        assert torch.equal(found, draw_from(x, generator.manual_seed(seed)))
