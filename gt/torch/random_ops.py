"""Random ops, which use the stream's counter-based generator.

They depend on the seed (`torch.manual_seed`) and on the order of draws, and not on the number of workers or
on how tensors are sharded. They are not the numbers that PyTorch draws on other devices.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

from gt.ops.dtypes import PRECISION
from gt.ops.run_time import with_seed
from gt.torch.buffers import DEVICE, contiguous, create, emit, name_of, read
from gt.torch.generators import drawing_from, next_seed

_DRAWN_DTYPES = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})


def _draw(row: str, size: tuple[int, ...], dtype: torch.dtype, **more: Any) -> torch.Tensor:
    """A new tensor of random numbers."""
    attrs = {"shape": list(size), **more, "dtype": name_of(dtype).removeprefix("torch.")}
    return create(contiguous(size, dtype), emit(row, (), with_seed(attrs, next_seed())))


def _uniform(like: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    return _draw("rand", tuple(like.shape), dtype or _working(like.dtype))


def _working(dtype: torch.dtype) -> torch.dtype:
    """The dtype that numbers for a tensor are drawn in."""
    return dtype if dtype in _DRAWN_DTYPES else torch.float32


def _normal(size: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_complex:
        pairs = _draw("randn", (*size, 2), dtype.to_real())
        return torch.view_as_complex(pairs * 0.5**0.5)
    return _draw("randn", size, dtype)


def uniform_(self: torch.Tensor, from_: float = 0.0, to: float = 1.0, generator: Any = None) -> torch.Tensor:
    """Numbers from a uniform distribution."""
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}")
    if self.dtype.is_complex:
        pairs = _draw("rand", (*self.shape, 2), self.dtype.to_real())
        return self.copy_(torch.view_as_complex(pairs * (to - from_) + from_))
    drawn = _uniform(self)
    if (from_, to) != (0.0, 1.0):
        drawn = drawn * (to - from_) + from_
    return self.copy_(drawn)


def normal_(self: torch.Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> torch.Tensor:
    """Numbers from a normal distribution."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    drawn = _normal(tuple(self.shape), self.dtype if self.dtype.is_complex else _working(self.dtype))
    if std != 1.0:
        drawn = drawn * std
    return self.copy_(drawn if mean == 0.0 else drawn + mean)


def normal_of(mean: Any, std: Any = 1.0, generator: Any = None) -> torch.Tensor:
    """The kernel of `torch.normal` with tensors for the mean or the standard deviation."""
    like = mean * 1.0 + std * 0.0 if isinstance(mean, torch.Tensor) else std * 1.0 + mean * 0.0
    return _normal(tuple(like.shape), like.dtype) * std + mean


def normal_between(mean: float, std: float, size: Any, *, dtype: Any = None, **_: Any) -> torch.Tensor:
    """The kernel of `torch.normal` with numbers and a size."""
    return torch.empty(tuple(size), dtype=dtype, device=DEVICE).normal_(mean, std)


def random_(self: torch.Tensor, *bounds: int | None, generator: Any = None) -> torch.Tensor:
    """Integers from 0, or from the first of two bounds, to the last bound, which is excluded."""
    low, high = (0, None) if not bounds else (0, bounds[0]) if len(bounds) == 1 else bounds
    dtype = self.dtype
    if high is None:
        if dtype.is_floating_point:
            high = 2 ** PRECISION[name_of(dtype).removeprefix("torch.")] + 1
        else:
            high = 2 if dtype is torch.bool else torch.iinfo(dtype).max
            high += dtype not in (torch.bool, torch.int64)
    if low is None or low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return self.copy_(_draw("randint", tuple(self.shape), torch.int64, low=low, high=high))


def bernoulli_(self: torch.Tensor, p: Any = 0.5, generator: Any = None) -> torch.Tensor:
    """1 with a probability, which is a number or a tensor of them."""
    if not isinstance(p, torch.Tensor) and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return self.copy_(_uniform(self, torch.float64 if isinstance(p, float) else torch.float32) < p)


def bernoulli(self: torch.Tensor, p: Any = None, generator: Any = None) -> torch.Tensor:
    """1 with the probability in each element, or with `p`."""
    return (_uniform(self, torch.float32) < (self if p is None else p)).to(self.dtype)


def exponential_(self: torch.Tensor, lambd: float = 1.0, generator: Any = None) -> torch.Tensor:
    """Numbers from an exponential distribution."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return self.copy_(-torch.log1p(-_uniform(self, torch.float64)) / lambd)


def geometric_(self: torch.Tensor, p: float, generator: Any = None) -> torch.Tensor:
    """Numbers from a geometric distribution."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    import math

    return self.copy_(torch.ceil(torch.log1p(-_uniform(self, torch.float64)) / math.log1p(-p)).clamp(min=1))


def cauchy_(
    self: torch.Tensor, median: float = 0.0, sigma: float = 1.0, generator: Any = None
) -> torch.Tensor:
    """Numbers from a Cauchy distribution."""
    import math

    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")

    return self.copy_(torch.tan(math.pi * (_uniform(self, torch.float64) - 0.5)) * sigma + median)


def log_normal_(
    self: torch.Tensor, mean: float = 1.0, std: float = 2.0, generator: Any = None
) -> torch.Tensor:
    """Numbers whose logarithm is normal."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return self.copy_(torch.exp(_normal(tuple(self.shape), torch.float64) * std + mean))


def randperm(n: int, dtype: Any = None, **_: Any) -> torch.Tensor:
    """The integers below n in random order."""
    return _draw("randperm", (n,), dtype or torch.int64)


def randperm_out(n: int, generator: Any = None, *, out: torch.Tensor) -> torch.Tensor:
    """The integers below n in random order, in the tensor `out`."""
    return out.resize_(n).copy_(_draw("randperm", (n,), torch.int64))


def native_dropout(input: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The kernel of dropout: the result, and which elements are kept."""
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    attrs = with_seed({"p": float(p)}, next_seed())
    keep = create(contiguous(tuple(input.shape), torch.bool), emit("dropout_mask", (read(input),), attrs))
    return input * keep * (1 / (1 - p) if p < 1 else 0.0), keep


def _from_generator(draw: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """A kernel that draws from the generator that is given, if there is one."""

    @functools.wraps(draw)
    def run(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("generator") is None:
            return draw(*args, **kwargs)
        with drawing_from(kwargs["generator"]):
            return draw(*args, **kwargs)

    return run


_DRAWING = {
    "uniform_": uniform_,
    "normal_": normal_,
    "normal.Tensor_float": normal_of,
    "normal.float_Tensor": normal_of,
    "normal.Tensor_Tensor": normal_of,
    "normal.float_float": normal_between,
    "random_": random_,
    "random_.to": random_,
    "random_.from": random_,
    "bernoulli_.float": bernoulli_,
    "bernoulli_.Tensor": bernoulli_,
    "bernoulli": bernoulli,
    "bernoulli.p": bernoulli,
    "exponential_": exponential_,
    "geometric_": geometric_,
    "cauchy_": cauchy_,
    "log_normal_": log_normal_,
    "randperm": randperm,
    "randperm.generator": randperm,
    "randperm.out": randperm_out,
    "randperm.generator_out": randperm_out,
    "native_dropout": native_dropout,
}

KERNELS = {name: _from_generator(draw) for name, draw in _DRAWING.items()}
"""The kernels, by overload."""

COMPOSED = ("rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "normal_functional")
"""Random ops that PyTorch decomposes into those above."""
