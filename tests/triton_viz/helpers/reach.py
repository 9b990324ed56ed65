"""Kernels that access memory by computed addresses, and the ways to launch them."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

import triton_viz
from triton_viz.core.config import cfg
from triton_viz.core.data import Issue


@pytest.fixture(params=["at once", "one by one", "threads"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """The ways in which a launch can run."""
    before = cfg.vectorized, cfg.num_sms
    cfg.vectorized, cfg.num_sms = request.param != "one by one", 3 if request.param == "threads" else 1
    yield
    cfg.vectorized, cfg.num_sms = before


def traced(kernel: Any) -> Any:
    return triton_viz.trace("tracer")(kernel)


def issues_of(client: Any, kernel: Any, *args: Any, **kwargs: Any) -> list[Issue]:
    triton_viz.clear()
    triton_viz.trace(client)(kernel)[(2,)](*args, **kwargs)
    return [record for record in triton_viz.launches[-1].records if isinstance(record, Issue)]


def apart(a: torch.Tensor, b: torch.Tensor) -> int:
    """How many elements b begins after a."""
    return (b.data_ptr() - a.data_ptr()) // a.element_size()


def name(kernel: Any) -> str:
    return kernel.fn.__name__


@triton.jit
def stores_at_address(address, out, BLOCK: tl.constexpr):
    tl.store(address.to(tl.pointer_type(tl.float32)) + tl.arange(0, BLOCK), 7.0)


@triton.jit
def fills(table, offset, BLOCK: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(p + offset + tl.arange(0, BLOCK), 7.0)
