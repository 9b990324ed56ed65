"""The page's payloads for the kernels of the corpus agree with each program's records."""

import math

import numpy as np
import pytest
from flask.testing import FlaskClient

import triton_viz
from tests.thorough import some
from tests.triton_viz.corpus import CASES
from tests.triton_viz.corpus.case import Case, launched_with
from tests.triton_viz.corpus.features import OLD_NAMES_ARE_FINE
from tests.triton_viz.helpers.page_answers import api, marks
from triton_viz.core.data import Access, Launch
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.visualizer.interface import create_app

__all__ = ["api", "create_app"]
pytestmark = [pytest.mark.usefixtures("no_launches"), OLD_NAMES_ARE_FINE]
SAMPLE = some([case for case in CASES if case.runs and "loud" not in case.name], 4)


def launched(case: Case) -> Launch:
    arguments = case.fresh()  # keeps tensors alive that a kernel reaches by pointers
    triton_viz.trace()(case.kernel)[case.grid](**launched_with(arguments))
    return triton_viz.launches[-1]


def positions(op: Access, tensor: TensorInfo) -> np.ndarray:
    """Which elements of a tensor one program's op accessed."""
    touched = op.mask
    if op.elements.which is not None:
        touched = touched & (op.elements.which[0] == op.elements.tensors.index(tensor.name))
    found = tensor.elements(op.offsets[touched])
    return found[found >= 0]


def accesses(launch: Launch, program: tuple[int, int, int], tensor: TensorInfo) -> list[Access]:
    ops = launch.at(program)
    return [op for op in ops if isinstance(op, Access) and tensor.name in op.elements.tensors]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_tiles_and_coverage_agree_with_the_programs(case: Case, api: FlaskClient):
    launch = launched(case)
    if not math.prod(launch.grid):
        answer = api.get("/api/data")
        assert (answer.status_code, "ran no program" in answer.get_json()["error"]) == (404, True)
        return
    x, y, z = (size - 1 for size in launch.grid)
    data = api.get(f"/api/data?program={x},{y},{z}").get_json()
    own = [op for op in launch.at((x, y, z)) if isinstance(op, Access)]
    told = [op for op in data["visualization_data"] if "block" in op]
    for op, payload in zip(own, told, strict=True):
        touched = int(op.mask.sum())
        assert (payload["touched"] + payload["outside"], payload["masked"]) == (
            touched,
            op.mask.size - touched,
        )
    for tensor in launch.tensors:
        count = math.prod(tensor.shape)
        if not count:
            continue
        (row,) = marks(api, tensor.name, count, program=f"{x},{y},{z}") if count < 8000 else ([],)
        if row:
            expected = np.zeros(count, int)
            for op in accesses(launch, (x, y, z), tensor):
                expected[positions(op, tensor)] = 1
            assert row == expected.tolist()
        if math.prod(launch.grid) <= 64 and count < 8000:
            counts = np.zeros(count, int)
            for program in launch.programs():
                for op in accesses(launch, program, tensor):
                    np.add.at(counts, positions(op, tensor), 1)
            assert marks(api, tensor.name, count, layer="coverage") == [counts.tolist()]
