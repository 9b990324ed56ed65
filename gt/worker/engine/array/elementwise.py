"""Elementwise ops that NumPy and JAX share."""

import math
from typing import Any

import numpy


def sign(xp: Any, x: Any) -> Any:
    return x if x.dtype == bool else xp.sign(x)


def rsqrt(xp: Any, x: Any) -> Any:
    return 1 / xp.sqrt(x)


def erf(xp: Any, x: Any) -> Any:
    if xp is numpy:
        # NumPy has no erf. The standard library's is exact and slow, which is fine for the reference engine.
        return numpy.vectorize(math.erf, otypes=[x.dtype])(x)
    from jax.scipy.special import erf

    return erf(x)


def clamp(xp: Any, x: Any, min: float | None, max: float | None) -> Any:
    # The smaller bound wins where they cross, as in PyTorch.
    x = x if min is None else xp.maximum(x, min)
    return x if max is None else xp.minimum(x, max)


def cast(xp: Any, x: Any, dtype: str) -> Any:
    # The engine casts every result to the dtype of the op table.
    return x
