"""NKI kernels in both spellings compute what NumPy does, and leave the same kinds of records."""

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import torch

import triton_viz
from tests.triton_viz.nki_kernels import classic, modern
from triton_viz.core.data import Access, Dot, Load, SbufEvent, Store
from triton_viz.dsls.nki import NeuronProfile

pytestmark = pytest.mark.usefixtures("no_launches")

random = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def gelu(x: np.ndarray) -> np.ndarray:
    return torch.nn.functional.gelu(torch.from_numpy(x)).numpy()


def softmax(x: np.ndarray) -> np.ndarray:
    return torch.softmax(torch.from_numpy(x), dim=-1).numpy()


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    a, b = np.split(x, 2, axis=1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=1)


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    x, gamma, beta = (torch.from_numpy(t) for t in (x, gamma, beta))  # type: ignore[assignment]
    return torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta).numpy()  # type: ignore[arg-type, union-attr]


class Case(NamedTuple):
    kernel: str
    arguments: tuple[Any, ...]
    expected: Callable[..., np.ndarray]
    grid: Any = None


def product(lhsT: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    return lhsT.T @ rhs


def rms_norm(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * w


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    return softmax(q.T @ k / np.sqrt(np.float32(len(q)))) @ v


CASES = [
    Case("tensor_add", (numbers(300, 700), numbers(300, 700)), lambda a, b: a + b, (3, 2)),
    Case(
        "transpose_2d",
        (numbers(16, 12), 3, 4),
        lambda x, h, w: x.reshape(-1, h, w).swapaxes(1, 2).reshape(x.shape),
    ),
    Case(
        "average_pool",
        (numbers(5, 6, 8), 2),
        lambda x, s: x.reshape(5, 6 // s, s, 8 // s, s).mean(axis=(2, 4)),
    ),
    Case("matmul_basic", (numbers(128, 64), numbers(128, 512)), product),
    Case("matmul_tiled", (numbers(256, 256), numbers(256, 1024)), product),
    Case("matmul_hoisted", (numbers(256, 256), numbers(256, 1024)), product),
    Case("matmul_blocked", (numbers(256, 512), numbers(256, 512)), product),
    Case("softmax", (numbers(200, 96),), softmax),
    Case("rms_norm", (numbers(200, 96), numbers(96)), rms_norm),
    Case("layer_norm", (numbers(200, 600), numbers(600), numbers(600)), layer_norm),
    Case("rotary", (numbers(256, 64), numbers(256, 32), numbers(256, 32)), rotated),
    Case("attention", (numbers(64, 256), numbers(64, 256), numbers(256, 64)), attention),
    Case("mlp", (numbers(64, 128), numbers(128, 256), numbers(256, 128)), lambda x, u, d: gelu(x @ u) @ d),
]


@pytest.mark.parametrize("spelling", [classic, modern], ids=["classic", "modern"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel)
def test_a_kernel_agrees_with_numpy(case: Case, spelling: Any):
    kernel = triton_viz.trace("tracer", backend="nki")(getattr(spelling, case.kernel))
    result = kernel[case.grid](*case.arguments) if case.grid else kernel(*case.arguments)
    np.testing.assert_allclose(result, case.expected(*case.arguments), rtol=2e-4, atol=2e-4)
    (launch,) = triton_viz.launches
    assert launch.kernel == case.kernel
    assert {type(record) for record in launch.records} >= {Load, Store, SbufEvent, NeuronProfile}
    assert any(isinstance(record, Dot) for record in launch.records) == (
        "matmul" in case.kernel or case.kernel in ("attention", "mlp")
    )
    names = {tensor.name for tensor in launch.tensors}
    assert {r.tensor for r in launch.records if isinstance(r, Access)} <= names
    assert "out" in names


@pytest.mark.parametrize("spelling", [classic, modern], ids=["classic", "modern"])
def test_bfloat16_tensors_of_torch_come_and_go(spelling: Any):
    a, b = torch.randn(256, 128, dtype=torch.bfloat16), torch.randn(256, 512, dtype=torch.bfloat16)
    result = spelling.matmul_tiled(a, b)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result.float(), a.float().T @ b.float(), rtol=2e-2, atol=2e-1)


def test_arrays_of_bfloat16_stay_so():
    x = numbers(128, 64).astype(ml_dtypes.bfloat16)
    assert modern.softmax(x).dtype == ml_dtypes.bfloat16
