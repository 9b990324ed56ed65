"""Answers of the page's server, for tests."""

import json
import math
from collections.abc import Iterator

import numpy as np
import pytest
from flask.testing import FlaskClient

import triton_viz
from triton_viz.visualizer.interface import create_app


@pytest.fixture
def api() -> Iterator[FlaskClient]:
    """A client of the server."""
    with create_app().test_client() as client:
        yield client


def marks(api: FlaskClient, tensor: str, columns: int, **fields: object) -> list[list[int]]:
    """A tensor's marks, one for each element, in rows."""
    (launch,) = triton_viz.launches[-1:]
    count = math.prod(next(t.shape for t in launch.tensors if t.name == tensor))
    query = "".join(f"&{name}={value}" for name, value in fields.items())
    url = f"/api/tensor?tensor={tensor}&columns={columns}&across={columns}&down={-(-count // columns)}{query}"
    return cells(api.get(url).data).astype(int).tolist()


def cells(data: bytes) -> np.ndarray:
    """The numbers of a binary answer, in rows."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    (layer,) = header["layers"]
    start = 8 + -(-length // 8) * 8
    count = header["across"] * header["down"]
    return np.frombuffer(data, layer["dtype"], count, start).reshape(header["down"], header["across"])
