"""64-bit integers are shown exactly, although doubles, and so JSON numbers, cannot represent all of them."""

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from flask.testing import FlaskClient

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from triton_viz.clients import Tracer
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.nki import language
from triton_viz.visualizer.interface import create_app
from triton_viz.visualizer.values import tensor_values

pytestmark = pytest.mark.usefixtures("no_launches")

nl: Any = language
SIGNED = [0, -1, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
UNSIGNED = [0, 1, 2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63 + 1, 2**64 - 2, 2**64 - 1]


@pytest.fixture
def api() -> FlaskClient:
    return create_app().test_client()


@triton.jit
def copy(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at))


def copied(dtype: torch.dtype, numbers: list[int]) -> tuple[TensorInfo, TensorInfo]:
    x = torch.from_numpy(np.array(numbers, np.dtype(str(dtype).removeprefix("torch."))))
    out = torch.zeros_like(x)
    triton_viz.trace(Tracer(values=True))(copy)[(1,)](x, out, N=len(numbers))
    assert x.numpy().tolist() == out.numpy().tolist() == numbers
    first, second = triton_viz.launches[-1].tensors
    return first, second


CASES = [
    (torch.int64, SIGNED),
    (torch.uint64, UNSIGNED),
    (torch.int32, [0, -1, 2**31 - 1, -(2**31)]),
    (torch.uint8, [0, 1, 254, 255]),
]


@pytest.mark.parametrize(("dtype", "numbers"), CASES, ids=str)
def test_values_are_replayed_exactly(dtype: torch.dtype, numbers: list[int]):
    for tensor in copied(dtype, numbers):
        values, known = tensor_values(triton_viz.launches[-1], tensor, 10)
        assert known.all()
        assert values.tolist() == numbers


@pytest.mark.parametrize(("dtype", "numbers"), CASES, ids=str)
def test_the_page_gets_every_digit(dtype: torch.dtype, numbers: list[int], api: FlaskClient):
    for tensor in copied(dtype, numbers):
        for element, number in enumerate(numbers):
            address = f"/api/element?tensor={tensor.name}&element={element}&program=0,0,0"
            value = api.get(address).get_json()["value"]
            assert int(value) == number
            assert isinstance(value, str) == (abs(number) >= 2**53), "a page reads numbers as doubles"
        found = api.get(f"/api/histogram?tensor={tensor.name}").get_json()
        assert (int(found["lowest"]), int(found["highest"])) == (min(numbers), max(numbers))
        assert sum(found["counts"]) == len(numbers)
    for op in api.get("/api/data").get_json()["visualization_data"]:
        found = api.get(f"/api/histogram?uuid={op['uuid']}").get_json()
        assert (int(found["lowest"]), int(found["highest"])) == (min(numbers), max(numbers))


def test_values_that_are_no_integers_are_as_before(api: FlaskClient):
    x = torch.tensor([0.5, float("inf"), float("nan"), 1e300], dtype=torch.float64)
    triton_viz.trace(Tracer(values=True))(copy)[(1,)](x, torch.zeros_like(x), N=4)
    values = [api.get(f"/api/element?tensor=x&element={n}").get_json()["value"] for n in range(4)]
    assert values == [0.5, "inf", "nan", 1e300]
    flags = torch.tensor([True, False])
    triton_viz.trace(Tracer(values=True))(copy)[(1,)](flags, torch.zeros_like(flags), N=2)
    assert api.get("/api/histogram?tensor=x").get_json()["highest"] == 1


def copy_rows(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


@pytest.mark.parametrize(("dtype", "numbers"), [("int64", SIGNED), ("uint64", UNSIGNED)])
def test_values_of_nki_kernels_are_exact_too(dtype: str, numbers: list[int], api: FlaskClient):
    x = np.array([numbers], dtype)
    found = triton_viz.trace(Tracer(values=True), backend="nki")(copy_rows)(x)
    np.testing.assert_array_equal(found, x)
    for name in ("x", "out"):
        values = [
            api.get(f"/api/element?tensor={name}&element={n}").get_json()["value"]
            for n in range(len(numbers))
        ]
        assert [int(value) for value in values] == numbers
