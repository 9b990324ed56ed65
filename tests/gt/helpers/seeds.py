"""Helpers of the tests that quote the specification."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.gt.helpers.servers import Cluster, cluster

DATA = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "gt_debug.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(path))
    return path


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Cluster]:
    with cluster(workers=2, engine="numpy") as running:
        yield running


def lines(log: Path, event: str) -> list[str]:
    return [line for line in log.read_text().splitlines() if f"| {event} " in line]
