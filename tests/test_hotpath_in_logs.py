"""The instruction log shows hot paths: where each begins and ends, and every op, however it travelled."""

import os
import re
from pathlib import Path

import pytest

from tests.programs import run_python

STEPS = 20
TRAIN = f"from tests.test_hotpaths import mlp\nmlp({STEPS})"


@pytest.mark.parametrize("workers", ["", "1"])
def test_the_log_shows_the_marks_and_every_op(tmp_path: Path, workers: str):
    def log(auto: str) -> list[str]:
        path = tmp_path / f"gt-{auto}.log"
        settings = {"GT_INSTRUCTION_LOG": str(path), "GT_AUTO_COMPILE": auto, "GT_WORKERS": workers}
        run_python("-c", TRAIN, environment={**os.environ, **settings})
        return path.read_text().splitlines()

    hot, cold = log("1"), log("0")
    starts = [line for line in hot if "| WorkerHotPathStart " in line]
    ends = [line for line in hot if re.search(r"\| WorkerHotPathEnd .*complete=True", line)]
    assert len(starts) >= STEPS // 2
    assert len(ends) >= STEPS // 2
    assert not [line for line in cold if "HotPath" in line]

    def what(lines: list[str], event: str) -> list[str]:
        """The ops of a direction, in order, without times and sizes."""
        parts = [re.split(r" *\| *", line) for line in lines]
        return [part[6] for part in parts if part[2] == event and " op=" in part[6]]

    for event in ("RECV", "WORKER_SEND", "WORKER_RECV"):
        assert what(hot, event) == what(cold, event)


def test_every_tensor_that_is_made_is_freed_in_the_log(tmp_path: Path):
    path = tmp_path / "gt.log"
    run_python("-c", TRAIN, environment={**os.environ, "GT_INSTRUCTION_LOG": str(path)})
    made, freed = [], []
    for line in path.read_text().splitlines():
        if "| RECV " in line:
            freed += re.findall(r"FreeTensor .*tensor_id=(\d+)", line)
            made += re.findall(r"(?:result|tensor_id)=(\d+) ", line) if "FreeTensor" not in line else []
    assert len(freed) == len(set(freed))
    assert set(freed) <= set(made)
    assert len(set(made) - set(freed)) < len(made) / 4, "most are gone at the end"
