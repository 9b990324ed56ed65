"""The benchmarks' front door works, and every benchmark runs. No time is ever asserted."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.harness import BENCHMARKS, Benchmark, Goal, cost_at_most, run, seconds_at_most, speed_at_least


def test_without_names_they_are_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([]) == 0
    out = capsys.readouterr().out
    for name, entry in BENCHMARKS.items():
        assert name in out
        assert str(entry.goal) in out


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_each_benchmark_runs_and_reports(name: str, capsys: pytest.CaptureFixture[str]):
    assert main([name, "--repeats", "2", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["name"] == name
    assert result["low"] <= result["value"] <= result["high"]
    assert result["subject_seconds"] > 0
    assert result["reference_seconds"] > 0


def test_a_table_shows_median_goal_and_spread(capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["gt_matmul", "--repeats", "2"]) == 0
    out = capsys.readouterr().out
    assert ">= 0.95x" in out
    assert "half of all" in out


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
        assert (result.value, result.low, result.high, result.met) == (value, value, value, met)
    assert [str(g) for g in (Goal("<=", 3), seconds_at_most(0.3))] == ["<= 3x", "<= 0.3 s"]
