"""The benchmarks' front door works, and every benchmark runs. No time is ever asserted."""

import json
import re

import pytest

from benchmarks import gt_collectives, tv_core
from benchmarks.__main__ import main
from benchmarks.harness import BENCHMARKS, Benchmark, Goal, cost_at_most, run, seconds_at_most, speed_at_least


@pytest.mark.parametrize("columns", [80, 200])
def test_without_names_they_are_listed(capsys: pytest.CaptureFixture[str], monkeypatch, columns: int):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([]) == 0
    out = capsys.readouterr().out
    for name, entry in BENCHMARKS.items():
        assert name in out
        assert str(entry.goal) in out
    assert main(["--json"]) == 0
    assert {entry["name"] for entry in json.loads(capsys.readouterr().out)} == set(BENCHMARKS)


# Triton's interpreter takes seconds for these, and they differ from tv_execute_vector_add in the kernel only.
SLOW = {f"tv_execute_{kernel}" for kernel in ("softmax", "matmul", "layer_norm")}


@pytest.mark.timeout(600)  # some wait for a compiler
@pytest.mark.parametrize("name", sorted(BENCHMARKS.keys() - SLOW))
def test_each_benchmark_runs_and_reports(name: str, capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setattr(tv_core, "KERNELS", ("vector_add", "attention"))
    monkeypatch.setattr(gt_collectives, "SIZES", (1 << 12, 1 << 20))
    monkeypatch.setattr(gt_collectives, "WORKERS", (2,))
    assert main([name, "--repeats", "2", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["name"] == name
    assert result["low"] <= result["value"] <= result["high"]
    assert result["subject_seconds"] > 0
    assert result["reference_seconds"] > 0


def test_a_table_shows_ratio_goal_and_spread_in_eighty_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["gt_small_ops_embedded", "gt_import", "--repeats", "2"]) == 0
    out = capsys.readouterr().out
    spread = r"(met|not yet) +\d+\.\d\d \.\. \d+\.\d\d"
    assert re.search(rf"gt_small_ops_embedded +\d+\.\d\dx +<= 3x +{spread} +PyTorch", out)
    assert re.search(rf"gt_import +\d+\.\d\d s +<= 0\.3 s +{spread} +\d+\.\d\dx ", out)


def test_an_unknown_name_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(["gt_warp_drive"])
    assert caught.value.code == 2
    assert "no benchmark is called gt_warp_drive; there are gt_" in capsys.readouterr().err


def test_ratios_are_medians_in_the_goals_terms(monkeypatch: pytest.MonkeyPatch):
    durations = {"ours": 2.0, "theirs": 1.0}
    clock = [0.0]

    def job(name: str):
        def work() -> None:
            clock[0] += durations[name]

        return work

    monkeypatch.setattr("benchmarks.harness.time.perf_counter", lambda: clock[0])
    for goal, value, met in (
        (cost_at_most(3), 2.0, True),
        (speed_at_least(0.95), 0.5, False),
        (seconds_at_most(0.3), 2.0, False),
    ):
        entry = Benchmark("b", "what", "reference", goal, lambda: (job("ours"), job("theirs")))
        result = run(entry, repeats=3)
        assert result.ratio == 2.0
        assert (result.value, result.low, result.high, result.met) == (value, value, value, met)
    assert [str(g) for g in (Goal("<=", 3), seconds_at_most(0.3))] == ["<= 3x", "<= 0.3 s"]
