"""The race detector: every race of the catalogue with its lines and programs, and no false alarm."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from liger_kernel import ops

import triton_viz
from tests.programs import ROOT, run_python
from tests.triton_viz import corpus
from tests.triton_viz.catalogue import ENTRIES, RACES
from tests.triton_viz.catalogue.entry import Entry, given
from tests.triton_viz.corpus.case import Case, launched_with
from tests.triton_viz.corpus.features import OLD_NAMES_ARE_FINE
from triton_viz.clients import RaceDetector, report
from triton_viz.clients.race_detector import race_detector as detector
from triton_viz.core.data import Issue


def issues_of(kernel: Any, grid: Any, arguments: dict[str, Any]) -> list[Issue]:
    triton_viz.trace("race_detector")(kernel)[grid](**arguments)
    return [record for record in triton_viz.launches[-1].records if isinstance(record, Issue)]


def races_of(entry: Entry) -> list[Issue]:
    arguments = entry.arguments()
    return issues_of(entry.kernel, entry.grid, given(arguments))


def named(name: str) -> Entry:
    return next(entry for entry in ENTRIES if entry.name == name)


def by_name(entries: list[Any]) -> Any:
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


RACING = [entry for entry in ENTRIES if entry.bug and entry.bug.kind in RACES]


def assert_found(entry: Entry, found: list[Issue]) -> None:
    assert entry.bug
    lines = {path[-1].line for issue in found for path in (issue.call_path, issue.other_path)}
    assert lines == entry.lines
    for issue in found:
        assert (issue.kind, issue.verdict) == (entry.bug.kind, "violation")
        assert issue.tensor == entry.bug.tensor
        programs = {issue.program, *issue.others}
        assert len(programs) == 2
        assert programs <= set(entry.bug.programs)
        assert issue.suggestion


@by_name(RACING)
def test_a_race_is_found_with_its_lines_and_programs(entry: Entry):
    assert_found(entry, races_of(entry))


@by_name(RACING)
def test_a_race_is_found_one_program_at_a_time_too(entry: Entry, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_viz.config, "vectorized", False)
    assert_found(entry, races_of(entry))


@triton.jit
def wait_for_the_first(flag, x, out, LOAD: tl.constexpr, STORE: tl.constexpr, SCOPE: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(x, 5)
        tl.atomic_store(flag, 1, sem=STORE, scope=SCOPE)
    else:
        while tl.atomic_load(flag, sem=LOAD, scope=SCOPE) == 0:
            pass
        tl.store(out + pid, tl.load(x))


@pytest.mark.skipif(not hasattr(tl, "atomic_load"), reason="this release of Triton has no atomic loads")
@pytest.mark.parametrize(
    ("load", "store", "scope", "racing"),
    [
        ("acquire", "release", "gpu", set()),
        ("acquire", "release", "sys", set()),
        ("relaxed", "release", "gpu", {"x"}),
        ("acquire", "relaxed", "gpu", {"x"}),
        ("acquire", "release", "cta", {"flag", "x"}),
    ],
)
def test_atomic_loads_and_stores_order_programs_as_they_say(load: str, store: str, scope: str, racing: set):
    flag, x, out = (torch.zeros(3, dtype=torch.int32) for _ in range(3))
    order = {"LOAD": load, "STORE": store, "SCOPE": scope}
    found = issues_of(wait_for_the_first, (3,), {"flag": flag, "x": x, "out": out, **order})
    assert {issue.tensor for issue in found} == racing


@triton.jit
def wait_in_another_width(wide, narrow, x, out):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(x, 5)
        before = tl.atomic_xchg(wide, 1)  # signals
        tl.store(out, before)
    else:
        while tl.atomic_add(narrow, 0) == 0:  # waits
            pass
        tl.store(out + pid, tl.load(x))


@pytest.mark.parametrize(("signal", "racing"), [(torch.int32, set()), (torch.int64, {"wide", "x"})])
def test_an_atomic_orders_programs_with_atomics_of_its_own_width_only(signal: torch.dtype, racing: set):
    flag, x, out = torch.zeros(4, dtype=torch.int32), *torch.zeros(2, 3, dtype=torch.int32)
    arguments = {"wide": flag.view(signal), "narrow": flag, "x": x, "out": out}
    assert {issue.tensor for issue in issues_of(wait_in_another_width, (3,), arguments)} == racing


def test_the_message_says_that_atomics_differ_in_width():
    (issue,) = races_of(named("counter_in_two_widths"))
    assert "updates atomically wide[0] (which is also narrow[1])" in issue.message
    assert "one is 8 bytes wide and the other 4" in issue.message
    assert "one element type" in issue.suggestion


@triton.jit
def add_and_read_often(wide, narrow, out):
    pid = tl.program_id(0)
    if pid == 0:
        tl.atomic_add(wide, 1)
        seen = tl.load(narrow)
        for _ in range(16):
            seen += tl.load(narrow)
        tl.store(out, seen)
    else:
        before = tl.atomic_add(narrow, 1)
        tl.store(out + pid, before)


def test_atomics_of_two_widths_race_however_many_reads_are_between_them():
    wide, out = torch.zeros(1, dtype=torch.int64), torch.zeros(2, dtype=torch.int32)
    arguments = {"wide": wide, "narrow": wide.view(torch.int32), "out": out}
    messages = [issue.message for issue in issues_of(add_and_read_often, (2,), arguments)]
    assert [message for message in messages if "8 bytes wide" in message]


@by_name([entry for entry in ENTRIES if not entry.bug])
def test_a_look_alike_has_no_race(entry: Entry):
    assert races_of(entry) == []


@by_name(
    [case for n, case in enumerate(corpus.CASES) if n % 9 == 0 and case.runs]
    + corpus.atomics.CASES
    + corpus.cooperation.CASES
)
@OLD_NAMES_ARE_FINE
def test_a_kernel_that_is_right_has_no_race(entry: Case):
    """A sample of the corpus, and all of its locks and atomics. Some store one value from many programs."""
    arguments = entry.fresh()
    found = issues_of(entry.kernel, entry.grid, launched_with(arguments))
    assert {issue.kind for issue in found} <= {"benign race"}


def grown(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).requires_grad_()


@pytest.mark.parametrize(
    "op",
    [
        lambda: ops.LigerRMSNormFunction.apply(grown(6, 40), grown(40), 1e-6),
        lambda: ops.LigerLayerNormFunction.apply(grown(6, 40), grown(40), grown(40), 1e-6),
        lambda: ops.LigerSiLUMulFunction.apply(grown(5, 33), grown(5, 33)),
        lambda: ops.LigerSoftmaxFunction.apply(grown(4, 100)),
        lambda: ops.LigerCrossEntropyFunction.apply(grown(7, 50), torch.arange(7), None, -100)[0],
    ],
    ids=["rms_norm", "layer_norm", "silu_mul", "softmax", "cross_entropy"],
)
def test_kernels_of_a_library_have_no_race_forwards_and_backwards(op: Any):
    triton_viz.clear()
    with triton_viz.trace("race_detector"):
        op().sum().backward()
    assert len(triton_viz.launches) >= 1
    assert report.violations(triton_viz.launches) == []


@triton.jit
def rows(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@triton.jit
def rows_but_the_last(x, out, n, BLOCK: tl.constexpr):
    """The last program also writes to the first element."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at % (n - 1), tl.load(x + at, mask=at < n) + 1, mask=at < n)


def test_one_shared_element_among_a_hundred_thousand_programs_is_found():
    n = 100_000 * 4
    arguments = {"x": torch.arange(n).float(), "out": torch.zeros(n), "n": n, "BLOCK": 4}
    assert issues_of(rows, (n // 4,), arguments) == []
    (issue,) = issues_of(rows_but_the_last, (n // 4,), arguments)
    assert (issue.index, issue.program, issue.others) == ((0,), (0, 0, 0), ((n // 4 - 1, 0, 0),))


@pytest.mark.parametrize("name", ["scatter_to_one_row_twice", "views_that_overlap", "byte_of_a_word"])
def test_touches_that_do_not_fit_are_folded_and_races_found_all_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(detector, "KEPT", 0)
    monkeypatch.setattr(triton_viz.config, "vectorized", False)  # so that there are many chunks to fold
    assert_found(named(name), races_of(named(name)))


def test_accesses_beyond_the_memory_limit_are_undecided_if_programs_wait(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(detector, "KEPT_WITH_ORDER", 0)
    found = races_of(named("under_a_lock"))
    assert found
    for issue in found:
        assert issue.verdict == "undecided"
        assert "try a smaller grid" in issue.message
    assert report.violations(triton_viz.launches[-1]) == []


@triton.jit
def as_bfloat(out, BLOCK: tl.constexpr, SAME: tl.constexpr):
    v = 1.0 if SAME else 1.0 + 0.125 * tl.program_id(0)
    tl.store(out + tl.arange(0, BLOCK), tl.zeros([BLOCK], tl.float32) + v)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float8_e5m2, torch.int8]
)
@pytest.mark.parametrize("same", [True, False])
def test_stores_of_one_value_and_of_several_are_distinguished_in_every_type(dtype: torch.dtype, same: bool):
    out = torch.zeros(8, dtype=dtype)
    found = issues_of(as_bfloat, (9,), {"out": out, "BLOCK": 8, "SAME": same})
    assert [issue.kind for issue in found] == ["benign race" if same else "race"]


@triton.jit
def through_a_table(table, BLOCK: tl.constexpr):
    """Each element of a block is stored to another tensor; all programs store to the same tensors."""
    at = tl.arange(0, BLOCK)
    where = tl.load(table + at).to(tl.pointer_type(tl.int32))
    tl.store(where, tl.program_id(0))


def test_tensors_behind_pointers_are_looked_at():
    targets = [torch.zeros(1, dtype=torch.int32) for _ in range(4)]
    table = torch.tensor([t.data_ptr() for t in targets])
    (issue,) = issues_of(through_a_table, (3,), {"table": table, "BLOCK": 4})
    assert issue.tensor.startswith("*table[")
    assert issue.kind == "race"


def test_the_message_names_all_that_share_the_memory():
    (issue, *_) = races_of(named("views_that_overlap"))
    assert "x[" in issue.message
    assert "out[" in issue.message
    assert "nothing orders the two" in issue.message


def test_a_race_in_a_discarded_chunk_is_counted_once():
    """Spin locks make programs run again, one by one."""
    client = RaceDetector()
    arguments = named("under_two_locks").arguments()
    triton_viz.trace(client)(named("under_two_locks").kernel)[(4,)](**given(arguments))
    assert client.finalize() is client.finalize()
    lines = [(i.call_path[-1].line, i.other_path[-1].line) for i in client.finalize()]
    assert len(lines) == len(set(lines))


def test_several_threads_find_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_viz.config, "num_sms", 3)
    entry = named("store_without_program_id")
    assert_found(entry, races_of(entry))


# --- reports ---


@pytest.fixture
def racing_launch() -> Any:
    races_of(named("sum_by_load_and_store"))
    return triton_viz.launches[-1]


def test_the_report_shows_both_lines_and_a_suggestion(racing_launch: Any, capsys: pytest.CaptureFixture[str]):
    report.print_issues(racing_launch)
    said = capsys.readouterr().err
    assert "race in kernel sum_by_load_and_store" in said
    assert "before = tl.load(out)" in said
    assert "tl.store(out, before + mine)" in said
    assert "tl.atomic_add" in said


def test_json_agrees_with_the_records(racing_launch: Any):
    stored = json.loads(report.issues_as_json(racing_launch))
    records = [record for record in racing_launch.records if isinstance(record, Issue)]
    assert len(stored) == len(records) == 2
    for plain, issue in zip(stored, records, strict=True):
        assert plain["message"] == issue.message
        assert (tuple(plain["program"]), plain["tensor"]) == (issue.program, "out")
        assert plain["path"][-1]["line"] == issue.call_path[-1].line
        assert plain["level"] == "error"


def test_sarif_has_the_required_fields(racing_launch: Any):
    log = json.loads(report.issues_as_sarif(racing_launch, tool="triton-race-detector"))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "triton-race-detector"
    assert len(run["results"]) == 2
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note", "none")
        assert result["message"]["text"]
        for location in [*result["locations"], *result["relatedLocations"]]:
            physical = location["physicalLocation"]
            assert physical["region"]["startLine"] in named("sum_by_load_and_store").lines
            assert physical["artifactLocation"]["uri"].endswith("tests/triton_viz/catalogue/races.py")
            assert "\\" not in physical["artifactLocation"]["uri"]


def test_sarif_without_issues_is_a_run_without_results():
    (run,) = json.loads(report.issues_as_sarif([]))["runs"]
    assert run["results"] == []


PROGRAM = """
import sys
import torch, triton, triton.language as tl

@triton.jit
def add(out, BY: tl.constexpr):
    if BY == 1:
        tl.store(out, tl.load(out) + 1)
    else:
        tl.atomic_add(out, 1)

out = torch.zeros(1, dtype=torch.int32)
add[(4,)](out, BY=int(sys.argv[1]))
print("out is", out.item())
"""


@pytest.mark.parametrize("as_module", [False, True])
@pytest.mark.parametrize(("by", "code"), [("1", 1), ("2", 0)])
def test_the_command_runs_an_unchanged_program_and_fails_if_it_races(
    tmp_path: Path, by: str, code: int, as_module: bool
):
    (tmp_path / "adds.py").write_text(PROGRAM)
    program = ["-m", "adds"] if as_module else ["adds.py"]
    command = [
        "-m",
        "triton_viz.clients.race_detector.race_detector_command",
        "--sarif",
        "found.sarif",
        *program,
        by,
    ]
    done = run_python(*command, cwd=tmp_path, fails=bool(code), environment={"PYTHONPATH": str(ROOT)})
    assert done.returncode == code
    assert "out is" in done.stdout
    assert ("race in kernel add" in done.stderr) == bool(code)
    (run,) = json.loads((tmp_path / "found.sarif").read_text())["runs"]
    assert bool(run["results"]) == bool(code)
