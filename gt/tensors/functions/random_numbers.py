"""Functions that make tensors of random numbers, and `dropout` of `gt.nn.functional`.

They take PyTorch's `device` and `pin_memory`, and ignore them, like those of `creation`.
"""

from typing import Any

from gt.client.session import current
from gt.errors import ArgumentError, DTypeError
from gt.ops import dtypes
from gt.tensors.base import Number, check_dtype, check_number, create
from gt.tensors.methods.in_place import scaled
from gt.tensors.methods.shaping import Size, as_shape
from gt.tensors.numpy_names import with_numpy_names
from gt.tensors.random import next_seed
from gt.tensors.tensor import Tensor

__all__ = [
    "bernoulli",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]


def rand(
    *sizes: Size,
    size: Size | None = None,
    dtype: Any = "float32",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Random numbers, evenly spread over [0, 1)."""
    return _random("rand", as_shape(sizes, size), dtype, requires_grad)


def randn(
    *sizes: Size,
    size: Size | None = None,
    dtype: Any = "float32",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Random numbers from the standard normal distribution."""
    return _random("randn", as_shape(sizes, size), dtype, requires_grad)


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Size | None = None,
    *,
    dtype: Any = "float32",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Random numbers from a normal distribution. Mean and deviation may be tensors, which give the size."""
    if isinstance(std, Number) and std < 0:
        raise ArgumentError(f"normal expects std >= 0.0, but found std {std}")
    if size is None:
        like = mean + std
        if not isinstance(like, Tensor):
            raise TypeError("normal(): of two numbers, give a size too")
        return randn_like(like) * std + mean
    made = scaled(randn(as_shape((size,)), dtype=dtype), std, mean)
    return made.requires_grad_() if requires_grad else made


def randint(
    low: Any = 0,
    high: Any = None,
    size: Any = None,
    *,
    dtype: Any = "int64",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Random integers: `randint(high, size)` below high, `randint(low, high, size)` from low."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if not isinstance(low, int) or not isinstance(high, int):
        raise TypeError(f"randint() takes (high, size) or (low, high, size), not {low!r} to {high!r}")
    if check_number(low) >= check_number(high):
        raise ArgumentError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return create(
        current(),
        "randint",
        requires_grad,
        shape=as_shape((size,)),
        low=low,
        high=high,
        dtype=check_dtype(dtype or "int64"),
        seed=next_seed(),
    )


def randperm(
    n: int,
    *,
    dtype: Any = "int64",
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """The numbers below n, shuffled."""
    if n < 0:
        raise ArgumentError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    name = check_dtype(dtype or "int64")
    return create(current(), "randperm", requires_grad, shape=(n,), dtype=name, seed=next_seed())


@with_numpy_names
def multinomial(input: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    """`num_samples` random indices for each row, with the elements of the row as weights."""
    weights = input.detach().to("float64")
    if weights.ndim not in (1, 2):
        raise ArgumentError(f"prob_dist must be 1 or 2 dim, and this has shape {list(weights.shape)}")
    if not num_samples > 0 or (not replacement and num_samples > weights.shape[-1]):
        raise ArgumentError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement: {num_samples} of "
            f"{weights.shape[-1]}"
            if num_samples > 0
            else "cannot sample n_sample <= 0 samples"
        )
    if replacement:
        # Inverse transform sampling: the index at which the cumulative weights exceed a random number.
        sums = weights.cumsum(-1).unsqueeze(-2)
        drawn = rand(*weights.shape[:-1], num_samples, 1, dtype="float64") * sums[..., -1:]
        return (drawn >= sums).sum(-1).clamp(max=weights.shape[-1] - 1)
    # The smallest of exponential random numbers whose rates are the weights.
    drawn = -(1 - rand(*weights.shape, dtype="float64")).log() / weights
    return drawn.argsort(-1)[..., :num_samples].clone()


@with_numpy_names
def bernoulli(input: Tensor, p: float | None = None) -> Tensor:
    """1 with the probability in `input`, or p, and 0 otherwise."""
    if p is not None:
        return input._value.tensor().bernoulli_(p)  # only its shape and dtype are used
    if not input.is_floating_point():
        raise DTypeError(f'"bernoulli" not implemented for {dtypes.TITLE[input.dtype]!r}')
    return (rand_like(input, dtype="float64") < input.detach()).to(input.dtype)


def check_probability(p: float) -> None:
    """Raise ValueError unless p is a probability."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Elements set to zero with probability p, the others divided by 1 - p; unchanged unless training."""
    check_probability(p)
    if not training or p == 0:
        return input
    return input._apply("dropout", p=float(p), seed=next_seed())


def _random(op: str, shape: tuple[int, ...], dtype: Any, requires_grad: bool) -> Tensor:
    name = check_dtype(dtype or "float32")
    if not dtypes.is_float(name):
        raise DTypeError(f"{op} makes floating point numbers, not {name}")
    return create(current(), op, requires_grad, shape=shape, dtype=name, seed=next_seed())


# --- in another's shape and dtype ---


@with_numpy_names
def rand_like(
    input: Tensor,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Random numbers over [0, 1), in another's shape and dtype."""
    return _random("rand", input.shape, dtype or input.dtype, requires_grad)


@with_numpy_names
def randn_like(
    input: Tensor,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Random numbers from the standard normal distribution, in another's shape and dtype."""
    return _random("randn", input.shape, dtype or input.dtype, requires_grad)


@with_numpy_names
def randint_like(
    input: Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool | None = False,
) -> Tensor:
    """Random integers, in another tensor's shape and dtype."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad)
