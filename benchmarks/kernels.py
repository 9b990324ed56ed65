"""The kernels that tv_execute runs: what people write, in the sizes of the numbers that we are held to."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def matmul(a, b, c, m, n, k, TILE: tl.constexpr, GROUP: tl.constexpr):
    program = tl.program_id(0)
    rows, columns = tl.cdiv(m, TILE), tl.cdiv(n, TILE)
    in_group = GROUP * columns
    first_row = program // in_group * GROUP
    height = min(rows - first_row, GROUP)
    row = first_row + program % in_group % height
    column = program % in_group // height
    at_m = (row * TILE + tl.arange(0, TILE)) % m
    at_n = (column * TILE + tl.arange(0, TILE)) % n
    at_k = tl.arange(0, TILE)
    left = a + at_m[:, None] * k + at_k[None, :]
    right = b + at_k[:, None] * n + at_n[None, :]
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for step in range(tl.cdiv(k, TILE)):
        inside = at_k < k - step * TILE
        total = tl.dot(
            tl.load(left, mask=inside[None, :], other=0.0),
            tl.load(right, mask=inside[:, None], other=0.0),
            total,
        )
        left += TILE
        right += TILE * n
    at_m = row * TILE + tl.arange(0, TILE)
    at_n = column * TILE + tl.arange(0, TILE)
    mask = (at_m[:, None] < m) & (at_n[None, :] < n)
    tl.store(c + at_m[:, None] * n + at_n[None, :], total, mask=mask)


@triton.jit
def layer_norm(x, out, weight, bias, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centered = tl.where(mask, values - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / columns
    scaled = centered / tl.sqrt(variance + eps)
    result = scaled * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, result, mask=mask)


@triton.jit
def attention(q, k, v, out, length, scale, WIDTH: tl.constexpr, TILE: tl.constexpr):
    head = tl.program_id(1)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    at = tl.arange(0, WIDTH)
    start = head * length * WIDTH
    query = tl.load(q + start + rows[:, None] * WIDTH + at[None, :])
    highest = tl.full((TILE,), -float("inf"), tl.float32)
    total = tl.zeros((TILE,), tl.float32)
    result = tl.zeros((TILE, WIDTH), tl.float32)
    for first in range(0, length, TILE):
        keys = first + tl.arange(0, TILE)
        key = tl.load(k + start + keys[None, :] * WIDTH + at[:, None])
        scores = tl.dot(query, key) * scale
        peak = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp(scores - peak[:, None])
        shrink = tl.exp(highest - peak)
        total = total * shrink + tl.sum(weights, axis=1)
        value = tl.load(v + start + keys[:, None] * WIDTH + at[None, :])
        result = result * shrink[:, None] + tl.dot(weights, value)
        highest = peak
    tl.store(out + start + rows[:, None] * WIDTH + at[None, :], result / total[:, None])


class Workload(NamedTuple):
    """One kernel with its arguments, and what its output has to be."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    output: torch.Tensor
    expected: torch.Tensor


def _vector_add() -> Workload:
    n, block = 1_000_000, 1024
    x, y, out = torch.randn(n), torch.randn(n), torch.empty(n)
    arguments = {"x": x, "y": y, "out": out, "n": n, "BLOCK": block}
    return Workload(vector_add, (triton.cdiv(n, block),), arguments, out, x + y)


def _softmax() -> Workload:
    x, out = torch.randn(1024, 1024), torch.empty(1024, 1024)
    return Workload(softmax, (1024,), {"out": out, "x": x, "columns": 1024, "BLOCK": 1024}, out, x.softmax(1))


def _matmul() -> Workload:
    a, b, c = torch.randn(512, 512), torch.randn(512, 512), torch.empty(512, 512)
    arguments = {"a": a, "b": b, "c": c, "m": 512, "n": 512, "k": 512, "TILE": 32, "GROUP": 8}
    return Workload(matmul, (256,), arguments, c, a @ b)


def _layer_norm() -> Workload:
    x, out = torch.randn(1024, 1024), torch.empty(1024, 1024)
    weight, bias = torch.randn(1024), torch.randn(1024)
    arguments = {
        "x": x,
        "out": out,
        "weight": weight,
        "bias": bias,
        "columns": 1024,
        "eps": 1e-5,
        "BLOCK": 1024,
    }
    expected = torch.nn.functional.layer_norm(x, (1024,), weight, bias)
    return Workload(layer_norm, (1024,), arguments | {"BLOCK": 1024}, out, expected)


def _attention() -> Workload:
    heads, length, width = 4, 256, 32
    q, k, v = (torch.randn(heads, length, width) for _ in range(3))
    out = torch.empty(heads, length, width)
    arguments = {"q": q, "k": k, "v": v, "out": out, "length": length, "scale": width**-0.5} | {
        "WIDTH": width,
        "TILE": 32,
    }
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    arguments |= {"WIDTH": width, "TILE": 32}
    return Workload(attention, (length // 32, heads), arguments, out, expected)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "vector_add": _vector_add,
    "softmax": _softmax,
    "matmul": _matmul,
    "layer_norm": _layer_norm,
    "attention": _attention,
}
