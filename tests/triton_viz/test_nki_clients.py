"""Clients on NKI kernels: scans in profiles, skipped loads, and launches that were checked."""

from typing import Any

import numpy as np
import pytest
import torch

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from tests.triton_viz.helpers import kernels
from tests.triton_viz.nki_kernels import classic, modern
from triton_viz.clients import Profiler, Sanitizer
from triton_viz.core.data import Scan
from triton_viz.dsls.nki import classic_isa, isa, language
from triton_viz.visualizer.interface import create_app

pytestmark = pytest.mark.usefixtures("no_launches")

nl: Any = language
nisa: Any = isa
cnisa: Any = classic_isa
X = np.random.default_rng(0).random((8, 16), np.float32)


def scanned(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, cnisa.tensor_tensor_scan(tile, tile, initial=0.0, op0=np.multiply, op1=np.add))
    return out


def cumulated(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar_cumulative(result, nl.load(x), np.multiply, np.add, 2.0)
    nl.store(out, result)
    return out


def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x) * 2)
    return out


def scanned_by_hand() -> np.ndarray:
    found, state = np.empty_like(X), np.zeros(len(X), np.float32)
    for column in range(X.shape[1]):
        state = X[:, column] * state + X[:, column]
        found[:, column] = state
    return found


@pytest.mark.parametrize(
    ("kernel", "expected", "flops"),
    [
        (scanned, scanned_by_hand(), 2 * 8 * 15),
        (cumulated, np.cumsum(2 * X, axis=1), 8 * 16 + 8 * 15),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_profiler_counts_a_scan(kernel: Any, expected: np.ndarray, flops: int):
    profiler = Profiler(device="Trainium2")
    found = triton_viz.trace(["tracer", profiler], backend="nki")(kernel)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert any(isinstance(record, Scan) for record in triton_viz.launches[-1].records)
    (report,) = profiler.report().launches
    assert report.flops == flops
    assert (report.loaded, report.stored) == (X.nbytes, X.nbytes)


def negated_and_inverted(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.invert(nl.negative(nl.load(x))))
    return out


def test_the_profiler_counts_every_arithmetic_op_of_the_language():
    profiler, x = Profiler(), np.arange(128, dtype=np.int32).reshape(8, 16)
    found = triton_viz.trace(profiler, backend="nki")(negated_and_inverted)(x)
    np.testing.assert_array_equal(found, ~-x)
    (report,) = profiler.report().launches
    assert (report.flops, report.integer_ops) == (0, 2 * 128)


def test_the_profiler_can_skip_loads():
    """Loads return zeros of the tensor's dtype, and the traffic is that of a real launch."""
    full, skipping = Profiler(), Profiler(skip_loads=True)
    for x in (X, X.astype(np.int32)):
        np.testing.assert_array_equal(triton_viz.trace(full, backend="nki")(doubled)(x), 2 * x)
        found = triton_viz.trace(skipping, backend="nki")(doubled)(x)
        np.testing.assert_array_equal(found, np.zeros_like(x))
        assert found.dtype == x.dtype
    for one, other in zip(full.report().launches, skipping.report().launches, strict=True):
        assert (one.loaded, one.stored) == (other.loaded, other.stored) == (X.nbytes, X.nbytes)


def checked() -> bool:
    found = create_app().test_client().get("/api/issues").get_json()
    assert found["issues"] == []
    return found["checked"]


@pytest.mark.parametrize("spelling", [classic, modern], ids=["classic", "modern"])
@pytest.mark.parametrize("client", ["sanitizer", "race_detector"])
def test_a_clean_launch_that_a_client_looked_at_was_checked(spelling: Any, client: str, tmp_path: Any):
    triton_viz.trace(["tracer", client], backend="nki")(spelling.softmax)(X)
    assert triton_viz.launches[-1].checked_by == (client,)
    assert checked()
    triton_viz.save(tmp_path / "trace.tvz")
    triton_viz.load(tmp_path / "trace.tvz")
    assert checked(), "also when it comes from a file"


@pytest.mark.parametrize("client", ["sanitizer", "race_detector"])
def test_the_same_is_so_of_a_triton_kernel_without_programs(client: str):
    x = torch.ones(4)
    triton_viz.trace(client)(kernels.add)[(0,)](x, x, x, 4, BLOCK=4)
    assert checked()


def test_a_launch_that_no_client_looked_at_was_not_checked(monkeypatch: pytest.MonkeyPatch):
    triton_viz.trace(["tracer", "profiler"], backend="nki")(modern.softmax)(X)
    assert not checked()
    monkeypatch.setattr(triton_viz.config, "sanitizer", "off")
    triton_viz.trace(Sanitizer(), backend="nki")(modern.softmax)(X)
    assert not checked()


def doubles(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, tile + tile)
    return out


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("client", ["tracer", "sanitizer", "profiler", "race_detector"])
@pytest.mark.parametrize("shape", [(0, 8), (8, 0)])
def test_a_tensor_without_elements_is_like_any_other(client: str, shape: tuple[int, int]):
    x = np.zeros(shape, np.float32)
    result = triton_viz.trace(client, backend="nki")(doubles)(x)
    assert result.shape == shape
