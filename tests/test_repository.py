"""The repository itself: what the documents say is true, and what is installed is pinned."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.programs import ROOT, TIMEOUT, run_python

README = (ROOT / "README.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


def normal(name: str) -> str:
    """A package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


PINS = {
    normal(name): version
    for name, version in re.findall(
        r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def python_blocks(document: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)


def test_the_readmes_code_runs(tmp_path: Path):
    device, first, training, kernel, library = python_blocks(ROOT / "README.md")
    kernel = kernel.replace(
        "triton_viz.launch()", "triton_viz.launch(port=0, block=False, open_browser=False)"
    )
    for name, code, expected in (
        ("device.py", device, "epoch 19  loss 0.0"),
        ("gt_tour.py", first + training, "[ 6  8 10 12]"),
        ("kernel.py", kernel, "Load x 32\nStore out 32"),
        (
            "library.py",
            f"import torch\n{library}\nprint(triton_viz.launches[-1].kernel)",
            "_rms_norm_forward_kernel",
        ),
    ):
        (tmp_path / name).write_text(code)
        assert expected in run_python(name, cwd=tmp_path).stdout


def test_the_readmes_kernel_without_its_mask_says_what_the_readme_says(tmp_path: Path):
    *_, kernel, _ = python_blocks(ROOT / "README.md")
    (tmp_path / "kernel.py").write_text(kernel.replace(", mask=at < n", ""))
    said = run_python("kernel.py", cwd=tmp_path, fails=True).stderr
    (promised,) = re.findall(r"AccessError: (kernel\.py:\d+: kernel double, program .*): address", README)
    assert promised in said
    assert "Is a mask missing?" in said


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_link_to_files_that_exist_and_name_targets_that_exist(document: Path):
    text = document.read_text()
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)  # `kernel[grid](...)` is no link
    for target in re.findall(r"\]\(([^)#]+)", prose):
        assert target.startswith("https://") or (document.parent / target).exists(), target
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for named in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
        assert named in targets, named


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target in phony[1].split():
        assert re.search(rf"make {target} +\S", done.stdout), target


def test_everything_that_is_asked_for_is_pinned_exactly():
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    asked = [re.match(r"[A-Za-z0-9_.-]+", requirement) for group in groups for requirement in group]
    for name in asked:
        assert name
        assert normal(name[0]) in PINS, name[0]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert build == [f"setuptools=={PINS['setuptools']}"]
    assert (PINS["torch"], PINS["triton"]) == ("2.13.0", "3.9.0")
    assert "torch==2.13.0" in PROJECT["dependencies"], (
        "exact here too: an install without constraints is safe"
    )


def test_what_the_packages_import_is_asked_for():
    """A package that is only there because something else brought it is missing on the next machine."""
    imported: set[str] = set()
    for path in [*(ROOT / "gt").rglob("*.py"), *(ROOT / "triton_viz").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    ours = {"gt", "triton_viz"} | set(sys.stdlib_module_names)
    providers = packages_distributions()
    wanted = {normal(provider) for name in imported - ours for provider in providers[name]}
    extras = [one for extra in PROJECT["optional-dependencies"].values() for one in extra]
    asked = {normal(re.split(r"[<>=; ]", one)[0]) for one in [*PROJECT["dependencies"], *extras]}
    assert wanted - asked <= {"werkzeug"}, "which is a part of flask"


def test_extras_entry_points_and_types_are_declared():
    assert {"test", "jax", "ray", "nki"} <= set(PROJECT["optional-dependencies"])
    for package in ("gt", "triton_viz"):
        assert (ROOT / package / "py.typed").exists()
    for target in PROJECT["scripts"].values():
        module, _, function = target.partition(":")
        assert callable(getattr(__import__(module, fromlist=[function]), function))


def test_the_wheel_carries_the_page_and_the_type_markers(tmp_path: Path):
    # From a copy: a build leaves files behind, and old ones would come along.
    copy = tmp_path / "copy"
    for package in ("gt", "triton_viz"):
        shutil.copytree(ROOT / package, copy / package)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", tmp_path, copy], check=True, capture_output=True, timeout=TIMEOUT)
    (wheel,) = tmp_path.glob("tapestry-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"gt/py.typed", "triton_viz/py.typed", "triton_viz/static/index.html"} <= set(names)
    assert any(re.fullmatch(r"triton_viz/static/assets/.+\.js", name) for name in names)
    assert not any(name.startswith(("tests/", "benchmarks/", "examples/", "tools/")) for name in names)


def test_packages_do_not_import_each_other():
    for package, forbidden in (("gt", "triton_viz"), ("triton_viz", "gt")):
        for path in (ROOT / package).rglob("*.py"):
            assert not re.search(rf"^\s*(import|from) {forbidden}\b", path.read_text(), re.MULTILINE), path


def test_no_package_module_is_empty():
    for package in ("gt", "triton_viz"):
        for path in (ROOT / package).rglob("*.py"):
            assert path.read_text().strip(), path
