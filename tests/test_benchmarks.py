"""The benchmarks' front door works, and every benchmark runs. No time is ever asserted."""

import inspect
import json
import re

import pytest

from benchmarks import gt_collectives, gt_hotpaths, gt_scaling, tv_core
from benchmarks.__main__ import main
from benchmarks.ablations import MECHANISMS
from benchmarks.harness import BENCHMARKS, Benchmark, Goal, cost_at_most, run, seconds_at_most, speed_at_least
from benchmarks.running_system import use_system
from tests.gt.helpers.servers import cluster, free_port
from tests.programs import ROOT, run_python


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

# These wait for a compiler or train a large model; or they differ from others in the kernel or the direction
# only; and the table below has gt_import and gt_small_ops_embedded.
LONG = {"gt_transformer_train", "gt_transformer_train_embedded", "torch_gpt2_step", "gt_mlp_train_small"}
LONG |= {"gt_mlp_train", "gt_mlp_train_embedded", "gt_scaling_mlp", "tv_execute_attention", "gt_import"}
LONG |= {
    "torch_gpt2_scaling",
    "torch_llama_step",
    "torch_llama_step_compiled",
    "tv_execute",
    "tv_payload_drawn",
}
LONG |= {"gt_clients", "gt_transfer", "gt_transfer_down", "gt_hotpath_first_steps", "gt_small_ops_embedded"}
LONG |= {f"tv_sanitizer_{kernel}" for kernel in ("softmax", "matmul", "layer_norm", "attention")}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.thorough] if name in LONG else [])
        for name in sorted(BENCHMARKS.keys() - SLOW)
    ],
)
def test_each_benchmark_runs_and_reports(name: str, capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setattr(tv_core, "KERNELS", ("vector_add", "attention"))
    monkeypatch.setattr(gt_collectives, "SIZES", (1 << 12, 1 << 20))
    monkeypatch.setattr(gt_collectives, "WORKERS", (2,))
    monkeypatch.setattr(gt_collectives, "SECONDS", 0.01)
    monkeypatch.setattr(gt_scaling, "SIZE", 512)
    if name in ("gt_hotpath_detect", "gt_hotpath_overhead"):
        stream, job = gt_hotpaths._stream, gt_hotpaths._job
        monkeypatch.setattr(gt_hotpaths, "_stream", lambda steps: stream(steps // 10))
        monkeypatch.setattr(gt_hotpaths, "_job", lambda step, steps: job(step, steps // 10))
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


USE = """
import gt
from benchmarks.running_system import use_system
print(use_system(port={port}))
print(sorted(gt.debug.get_worker_stats()), (gt.ones(2) + 1).tolist())
"""


def test_scripts_use_the_system_that_runs_at_the_default_port():
    assert inspect.signature(use_system).parameters["port"].default == 12345, "that of simple_launch.py"
    with cluster(workers=2) as running:
        said = run_python("-c", USE.format(port=running.port)).stdout.splitlines()
    assert said == [f"the system at localhost:{running.port}", "['worker_0', 'worker_1'] [2.0, 2.0]"]


@pytest.mark.parametrize(("workers", "why"), [(None, "none runs at localhost:"), (0, "has no workers")])
def test_scripts_start_a_system_of_their_own_if_none_can_be_used(workers: int | None, why: str):
    if workers is None:
        said = run_python("-c", USE.format(port=free_port())).stdout.splitlines()
    else:
        with cluster(workers=workers) as running:
            said = run_python("-c", USE.format(port=running.port)).stdout.splitlines()
    assert said[0].startswith("a system of its own, a server and a worker, as ")
    assert why in said[0]
    assert said[1] == "['worker_0'] [2.0, 2.0]"


@pytest.mark.parametrize("script", ["gt_benchmark.py", "compare.py"])
def test_a_script_says_which_system_it_measures(script: str):
    with cluster(workers=1, engine="pytorch") as running:
        said = run_python(script, running.address, cwd=ROOT / "benchmarks").stdout
    assert said.splitlines()[0].endswith(f"GT, on the system at {running.address}")
    for job in ("matmul 1000x1000", "linear forward", "mse loss", "backward", "relu", "sigmoid", "tanh"):
        assert job in said
    assert script in (ROOT / "benchmarks/README.md").read_text()


def test_each_ablation_switches_off_code_that_exists():
    """Each in a process of its own: it replaces functions for good."""
    program = "from benchmarks import ablations; ablations.MECHANISMS[{!r}](); print('off')"
    for name in MECHANISMS:
        assert run_python("-c", program.format(name)).stdout.strip() == "off"


MECHANISMS_CODE = {
    "detection": ["stream/hotpath_detector", "stream/tokens", "stream/sequences", "stream/repeat_builder"],
    "column prediction; n-gram filter": ["stream/prediction", "stream/ngram_filter"],
    "repeats as messages": ["stream/repeats"],
    "execution of repeats, compiled or not": ["worker/repeat_runner", "worker/compile/eager_repeat"],
    "compilation": [
        f"worker/compile/{name}"
        for name in ("graph", "helper", "compiling", "variants", "hotpaths", "compiled_code", "statistics")
    ],
    "background thread": ["worker/compile/background"],
    "placed repeats": [
        f"dispatcher/sharding/{name}"
        for name in ("placed_repeat", "placed_repeats", "repeat_writer", "segments")
    ],
    "backward replay": ["autograd/backward_replay"],
}


def test_the_page_states_how_much_code_each_mechanism_is():
    page = (ROOT / "benchmarks/README.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([0-9 +;]+) \| [^|]*\|$", page, re.MULTILINE)
    assert {name for name, _ in rows} == MECHANISMS_CODE.keys()
    total = 0
    for name, stated in rows:
        files = [ROOT / "gt" / f"{file}.py" for file in MECHANISMS_CODE[name]]
        counted = sum(bool(line.strip()) for file in files for line in file.read_text().splitlines())
        total += counted
        assert sum(map(int, re.findall(r"\d+", stated))) == pytest.approx(counted, rel=0.05, abs=10), name
    (written,) = re.findall(r"These are ([0-9,]+) lines", page)
    assert int(written.replace(",", "")) == pytest.approx(total, rel=0.05)
