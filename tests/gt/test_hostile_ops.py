"""An op that a client forges reads no memory but that of its inputs, writes no files, and ends no worker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gt.errors import WorkerError
from gt.stream.instructions import Op
from gt.worker.engine.torch import aten
from tests.gt.helpers.servers import Cluster, cluster, connect


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with cluster(engine="pytorch") as running:
        yield running


def error_of(running: Cluster, name: str, attrs: dict[str, Any], *arrays: np.ndarray) -> str:
    """The error of an op. Its client then computes something on the same worker."""
    client = connect(running)
    inputs = tuple([client.create(array) for array in arrays])
    result = client.next_id()
    client.emit(Op(result, name, inputs, attrs, 0))
    with pytest.raises(WorkerError) as error:
        client.fetch(result)
    assert client.fetch(client.create(np.ones(2))).tolist() == [1, 1]
    client.close()
    return str(error.value)


NO_NUMBERS = np.zeros(0, np.int64)

REFUSED: dict[str, tuple[dict[str, Any], tuple[np.ndarray, ...]]] = {
    "aten::_reshape_alias": ({"size": [1000], "stride": [1]}, (np.ones(3),)),
    "aten::_reshape_alias_copy": ({"size": [1000], "stride": [1]}, (np.ones(3),)),
    "aten::_nested_view_from_buffer": ({}, (np.ones(3), *[NO_NUMBERS] * 3)),
    "aten::_empty_affine_quantized": ({"size": [1000]}, ()),
    "aten::_sparse_coo_tensor_unsafe": ({"size": [2]}, (np.full((1, 1), 1000), np.ones(1))),
    "aten::_convert_indices_from_coo_to_csr": ({"size": 1}, (np.full(3, 1000),)),
    "aten::empty_like": ({}, (np.ones(3),)),
    "aten::set_data": ({}, (np.ones(3), np.ones(2))),
    "aten::sparse_coo_tensor": ({"size": [2]}, ()),
    "aten::quantize_per_tensor": ({"scale": 1.0, "zero_point": 0, "dtype": "torch.quint8"}, (np.ones(3),)),
    "aten::warn": ({"message": "from a client"}, ()),
    "aten::manual_seed": ({"seed": 1}, ()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsafe_op_of_pytorchs_is_refused(running: Cluster, name: str):
    attrs, arrays = REFUSED[name]
    assert "is not an op that clients may use" in error_of(running, name, attrs, *arrays)


def test_no_op_writes_a_file(running: Cluster, tmp_path: Path):
    file = tmp_path / "written"
    attrs = {"item": "text", "filename": str(file)}
    assert "is not an op that clients may use" in error_of(running, "aten::save", attrs)
    assert not file.exists()


@pytest.mark.parametrize(
    "name",
    [
        *(
            "add.Tensor",
            "max_pool2d_with_indices",
            "native_layer_norm",
            "_softmax",
            "_linalg_svd",
            "tril_indices",
        ),
        *("_fft_r2c", "_fused_adamw_", "_upsample_nearest_exact2d", "_to_copy", "_unsafe_index.Tensor"),
    ],
)
def test_ops_that_programs_reach_are_allowed(name: str):
    assert callable(aten.function(f"aten::{name}"))


def floats(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


WINDOW = {"kernel": [2, 2], "stride": [2, 2], "padding": [1, 1], "shape": [2, 3, 8, 8]}
NORM = {"normalized_shape": [4], "eps": 1e-5}

WRONG_SHAPES: dict[str, tuple[str, dict[str, Any], tuple[np.ndarray, ...]]] = {
    "more images": ("avg_pool2d_grad", WINDOW, (floats(500, 3, 5, 5),)),
    "more channels": ("avg_pool2d_grad", WINDOW, (floats(2, 300, 5, 5),)),
    "fewer rows": ("layer_norm_grad", NORM, (floats(1, 4), floats(100_000, 4))),
    "no rows": ("layer_norm_grad", NORM, (floats(2, 3, 0), floats(8, 4))),
}
"""Gradients for results of other shapes, for which PyTorch's functions read or write beyond their tensors."""


@pytest.mark.parametrize("case", WRONG_SHAPES)
def test_a_gradient_of_another_shape_is_refused(running: Cluster, case: str):
    name, attrs, arrays = WRONG_SHAPES[case]
    assert "does not fit" in error_of(running, name, attrs, *arrays)
