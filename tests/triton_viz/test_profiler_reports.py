"""The profiler's output: records, JSON, tables, compiled code, and its command."""

import json
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import triton_viz
from tests.programs import run_python
from tests.triton_viz.helpers.profiled_kernels import add, matmul, softmax
from tests.triton_viz.helpers.profiling import finding, kinds, profiled, site
from triton_viz.clients import Profiler, Tracer
from triton_viz.clients.profiler import Report
from triton_viz.clients.profiler.kernel_profile import Advice, KernelProfile, SiteProfile
from triton_viz.errors import UnsupportedError

pytestmark = pytest.mark.usefixtures("no_launches")


# --- results ---


def test_records_stand_in_the_launch_and_survive_a_file(tmp_path: Any):
    x, out = torch.randn(8, 585), torch.empty(8, 585)
    triton_viz.trace("profiler")(softmax)[(8,)](x, out, 585, BLOCK=1024)
    (launch,) = triton_viz.launches
    triton_viz.save(tmp_path / "profile.tvz")
    triton_viz.load(tmp_path / "profile.tvz")
    (loaded,) = triton_viz.launches
    assert loaded.records == launch.records
    assert {type(record) for record in loaded.records} == {SiteProfile, Advice, KernelProfile}
    assert loaded.records[-1].report.kernel == "softmax"  # type: ignore[attr-defined]


def test_finalize_gives_the_same_again_and_counts_a_launch_once():
    profiler = Profiler()
    x, y, out = torch.randn(64), torch.randn(64), torch.empty(64)
    triton_viz.trace(profiler)(add)[(1,)](x, y, out, 64, BLOCK=64)
    assert profiler.finalize() == triton_viz.launches[-1].records == profiler.finalize()
    assert len(profiler.report().launches) == 1
    profiler.clear()
    assert profiler.report().launches == ()


def test_a_launch_without_programs_has_nothing_to_report():
    profiler = Profiler()
    x = torch.randn(64)
    triton_viz.trace(profiler)(add)[(0,)](x, x, x, 64, BLOCK=64)
    assert profiler.report().launches == ()
    assert triton_viz.launches[-1].records == []


def test_a_report_is_json_and_back():
    profiler = Profiler()
    a, b, c = torch.randn(32, 64), torch.randn(64, 48), torch.empty(32, 48)
    profiled(matmul, (2, 3), a, b, c, 32, 48, 64, TILE=16, profiler=profiler)
    report = profiler.report()
    assert json.loads(report.to_json())["launches"][0]["kernel"] == "matmul"
    assert Report.from_json(report.to_json()) == report


def test_a_report_is_printed_as_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    profiler = Profiler(show=True, sample=4)
    x, out = torch.randn(8, 585), torch.empty(8, 585)
    profiled(softmax, (8,), x, out, 585, BLOCK=1024, profiler=profiler)
    shown = capsys.readouterr().out
    assert "grid (8, 1, 1), 8 programs" in shown
    assert "a sample of 4 programs" in shown
    assert "Loop over blocks of 128" in shown
    profiler.print_report()
    assert capsys.readouterr().out == shown


# --- the compiler ---


def compiled_for_hopper(source: ASTSource) -> Any:
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": True})


def test_the_report_has_the_compiled_instructions_of_each_line():
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(4)}
    source = ASTSource(
        add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}, aligned
    )
    compiled = compiled_for_hopper(source)
    profiler = Profiler()
    profiler.post_warmup_callback(add, compiled)
    x = torch.randn(1024)
    report = profiled(add, (1,), x, x.clone(), torch.empty(1024), 1024, BLOCK=1024, profiler=profiler)
    made = report.compiled
    assert made is not None
    assert (made.target, made.shared, made.warps) == ("cuda:90", 0, 4)
    line = next(one for one in made.lines if one.line == site(report, "x").site[0].line)
    assert sum("ld.global.v4" in text for text in line.instructions) == 4
    assert sum("st.global.v4" in text for text in line.instructions) == 2
    assert set(line.widths) == {16}
    assert sum("tt.load" in text for text in line.ttgir) == 2
    assert any("tt.store" in text for text in line.ttgir)
    assert "vector width" not in kinds(report)


@pytest.mark.parametrize(
    ("target", "language", "load"),
    [
        ("hip:gfx942", "amdgcn", "buffer_load_"),
        ("hip:gfx1100", "amdgcn", "_load_b"),
        ("cuda:80", "ptx", "ld.global"),
    ],
)
def test_a_report_has_the_code_of_the_requested_target(target: str, language: str, load: str, capsys: Any):
    profiler, other = Profiler(target=target), Asm()
    x, out = torch.randn(1024), torch.empty(1024)
    triton_viz.trace([profiler, other])(add)[(1,)](x, x.clone(), out, 1024, BLOCK=1024)
    (report,) = profiler.report().launches
    made = report.compiled
    assert made is not None
    assert (made.target, made.language, made.error) == (target, language, "")
    line = next(one for one in made.lines if one.line == site(report, "x").site[0].line)
    assert any(load in text for text in line.instructions)
    assert set(line.widths) == {16}
    code = [text for one in made.lines for text in one.instructions]
    assert all(text[0].isalpha() or text[0] == "@" for text in code), "instructions, and no metadata"
    assert any("ld.global" in text for text in code) == (language == "ptx")
    profiler.print_report()
    assert f"compiled for {target} ({language})" in capsys.readouterr().out
    assert other.target == triton_viz.config.target, "each client has its own target"


class Asm(Tracer):
    NAME = "asm"

    def pre_warmup_callback(self, jit_fn: Any) -> bool:
        return True

    def post_warmup_callback(self, jit_fn: Any, compiled: Any) -> None:
        self.target = compiled.target


@triton.jit
def only_on_a_cpu(x):
    names = {"a": 1}  # the compiler has no dictionaries
    tl.store(x, names["a"] + tl.load(x))


def test_a_report_says_why_there_is_no_code_for_the_target(capsys: Any):
    profiler = Profiler(target="hip:gfx942", show=True)
    report = profiled(only_on_a_cpu, (1,), torch.zeros(1), profiler=profiler)
    assert report.compiled is not None
    assert "does not compile for hip:gfx942" in report.compiled.error
    assert "not compiled for hip:gfx942" in capsys.readouterr().out


def test_a_target_that_does_not_exist_is_refused_at_once():
    with pytest.raises(UnsupportedError, match=r"no target is called 'tpu:5'"):
        Profiler(target="tpu:5")


def test_the_compiler_runs_only_if_there_is_a_target():
    assert not Profiler().pre_warmup_callback(add)
    assert Profiler(target="cuda:90").pre_warmup_callback(add)


def test_narrow_accesses_of_the_compiler_are_found():
    source = ASTSource(add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 2048})
    profiler = Profiler()
    profiler.post_warmup_callback(add, compiled_for_hopper(source))
    x = torch.randn(2048)
    report = profiled(add, (1,), x, x.clone(), torch.empty(2048), 2048, BLOCK=2048, profiler=profiler)
    assert "at most 4 bytes" in finding(report, "vector width", "x").message


# --- the command ---

PROGRAM = """
import sys
import torch, triton
import triton.language as tl

@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

x = torch.ones(100)
double[(2,)](x, 100, BLOCK=64)
print("sum", x.sum().item(), sys.argv[1:])
if "fail" in sys.argv:
    sys.exit(3)
"""


def test_the_command_profiles_an_unchanged_program(tmp_path: Any):
    (tmp_path / "program.py").write_text(PROGRAM)
    found = tmp_path / "report.json"
    command = ("-m", "triton_viz.clients.profiler.profiler_command", "--json", str(found))
    done = run_python(*command, str(tmp_path / "program.py"), "--flag", "a")
    assert "sum 200.0 ['--flag', 'a']" in done.stdout
    assert "double (program.py:6), grid (2, 1, 1)" in done.stdout
    (launch,) = Report.from_json(found.read_text()).launches
    assert (launch.loaded, launch.stored, launch.flops) == (400, 400, 128)


def test_the_command_compiles_for_the_target_that_it_is_given(tmp_path: Any):
    (tmp_path / "program.py").write_text(PROGRAM)
    found = tmp_path / "report.json"
    command = (
        "-m",
        "triton_viz.clients.profiler.profiler_command",
        "--target",
        "hip:gfx90a",
        "--json",
        str(found),
    )
    assert "compiled for hip:gfx90a (amdgcn)" in run_python(*command, str(tmp_path / "program.py")).stdout
    (launch,) = Report.from_json(found.read_text()).launches
    assert launch.compiled is not None
    assert any("s_endpgm" in text for line in launch.compiled.lines for text in line.instructions)


def test_the_command_runs_modules_and_hands_on_exit_codes(tmp_path: Any):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_python(
        *("-m", "triton_viz.clients.profiler.profiler_command", "--device", "A100", "-m", "program", "fail"),
        cwd=tmp_path,
        fails=True,
        environment={"PYTHONPATH": str(triton_viz.__path__[0]).removesuffix("triton_viz")},
    )
    assert done.returncode == 3
    assert "on a A100" in done.stdout


def test_the_command_says_what_is_missing():
    done = run_python("-m", "triton_viz.clients.profiler.profiler_command", fails=True)
    assert "nothing to run: give a script, or -m and a module" in done.stderr
    done = run_python(
        "-m", "triton_viz.clients.profiler.profiler_command", "--device", "abacus", "x.py", fails=True
    )
    assert "no device is called 'abacus'" in done.stderr
