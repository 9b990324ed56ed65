"""A worker's statistics of repeated sequences, with and without compilation, on every engine."""

from typing import Any

import pytest

import gt
from gt.client import session
from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instructions import Op

LOOP = """
import gt, json
{start}
x = gt.ones(4)
for n in range(3000):
    x = (x * 0.5 + 1.0).tanh().exp()
x.tolist()
print(json.dumps(list(gt.debug.get_worker_stats().values())))
"""


def stats_of(code: str, **settings: str) -> list[dict[str, Any]]:
    import json

    from tests.programs import run_python

    return json.loads(run_python("-c", code, environment=settings).stdout)


@pytest.mark.parametrize("compiles", ["0", "1"])
@pytest.mark.parametrize(
    "start", ["gt.init(engine='pytorch')", "gt.init(engine='numpy')", "gt.init(workers=1, engine='numpy')"]
)
def test_a_loop_is_hot_whether_it_is_compiled_or_not(start: str, compiles: str):
    (stats,) = stats_of(LOOP.format(start=start), GT_AUTO_COMPILE=compiles, GT_COMPILE_AFTER="1e6")
    assert stats["hot_instructions"] > 0.9 * stats["total_instructions"]
    assert stats["hot_instructions"] <= stats["total_instructions"]
    assert stats["hot_sequences"] == len(stats["repetitions"]) >= 1
    assert sum(stats["repetitions"].values()) > 10
    assert stats["unique_sequences"] > stats["hot_sequences"]
    assert ("compiled" in stats) == (compiles == "1" and "pytorch" in start)


@pytest.fixture(params=["0", "1"])
def stats(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """The statistics of an embedded worker, with and without compilation."""
    monkeypatch.setenv("GT_AUTO_COMPILE", request.param)
    before = session._current
    monkeypatch.setattr(session, "_current", None)
    client = gt.init(engine="numpy")
    yield lambda: client.get_stats()["auto_worker"]
    gt.close()
    monkeypatch.setattr(session, "_current", before)


def test_unique_sequences_are_the_patterns_that_were_seen(stats):
    x = gt.ones(3)
    assert stats()["unique_sequences"] == 1, "a single op"
    (x + 1).tolist()
    first = stats()["unique_sequences"]
    for _ in range(3):
        (x * 2).exp().tolist()
    assert stats()["unique_sequences"] == first + 1
    for _ in range(3):
        (x * 2).log().tolist()
    found = stats()
    assert found["unique_sequences"] == first + 2
    assert (found["hot_sequences"], found["hot_instructions"], found["repetitions"]) == (0, 0, {})


def test_repeats_are_counted_after_their_client_has_left():
    code = LOOP.replace("print", "gt.connect(address)\nprint")
    from tests.gt.helpers.servers import cluster

    with cluster(workers=1, engine="numpy") as running:
        start = f"address = '{running.address}'; gt.connect(address)"
        (stats,) = stats_of(code.format(start=start), GT_AUTO_COMPILE="0")
    assert stats["hot_instructions"] > 0.9 * stats["total_instructions"]


def test_a_detector_counts_repetitions_and_frees():
    detector = HotPathDetector()
    one = 0
    for step in range(1, 1001):
        for n, name in enumerate(("mul", "add", "tanh", "exp", "log", "relu")):
            one, before = 6 * step + n, one
            for instruction in (Op(one, name, (before,), None, 0), before):
                list(detector.process(instruction))
    stats = detector.get_stats()
    assert stats["total_instructions"] == 1000 * 12
    ((sequence, times),) = stats["repetitions"].items()
    assert sequence in detector.sequences
    length = 2 * len(detector.sequences[sequence])
    assert stats["hot_instructions"] == times * length > 0.9 * 12000
