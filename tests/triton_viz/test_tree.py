"""The tree of triton_viz: which packages import which, what an import loads, and how files are named."""

import ast
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import triton_viz
from tests.programs import ROOT, run_python
from triton_viz.core.client_registry import registered_clients
from triton_viz.dsls import OPERATION_REGISTRY

PACKAGE = Path(triton_viz.__file__).parent
ALLOWED = {
    "numerics": set(),
    "executor": {"core", "numerics"},
    "core": {"dsls", "executor"},
    "dsls": {"core", "executor", "numerics"},
    "clients": {"core", "dsls", "executor"},
    "visualizer": {"core", "clients", "executor", "dsls"},
}
SETTINGS = {"sanitizer"}
"""Clients whose name is also the name of a setting in core/config.py."""


def modules(folder: str = "") -> list[Path]:
    return sorted((PACKAGE / folder).rglob("*.py"))


def imports(node: ast.AST) -> Iterator[str]:
    """The modules that a file imports, except those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.ImportFrom) and child.module is not None:
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        yield from imports(child)


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_package_imports_only_those_below_it(folder: str):
    for path in modules(folder):
        for name in imports(ast.parse(path.read_text())):
            top, _, rest = name.partition(".")
            assert top != "gt", path
            inner = rest.partition(".")[0]
            if top == "triton_viz" and inner not in ("errors", ""):
                assert inner in ALLOWED[folder] | {folder}, f"{path.relative_to(PACKAGE)} imports {name}"


LANGUAGES = re.compile(r"triton(?!_viz)\b|(neuronxcc|nki)\b|triton_viz\.dsls\.(triton|nki)\b")


@pytest.mark.parametrize("folder", [folder for folder in ALLOWED if folder != "dsls"])
def test_a_language_is_reached_by_its_interface_only(folder: str):
    found = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in modules(folder)
        for name in imports(ast.parse(path.read_text()))
        if LANGUAGES.match(name)
    ]
    assert found == []


def strings(tree: ast.Module) -> Iterator[str]:
    """The string literals of a file, except docstrings and other strings that are statements."""
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.value


@pytest.mark.parametrize("path", modules("core"), ids=lambda path: path.stem)
def test_the_core_names_no_language_and_no_client(path: Path):
    tree = ast.parse(path.read_text())
    languages = set(OPERATION_REGISTRY) & {"triton", "nki"}
    clients = {"tracer", "profiler", "sanitizer", "race_detector"}
    assert clients <= set(registered_clients())
    for name in imports(tree):
        assert not name.startswith("triton_viz.clients"), f"imports {name}"
    words = {word for text in strings(tree) for word in re.findall(r"\w+", text)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found = (words | {name.lower() for name in names}) & (languages | clients)
    assert found <= (SETTINGS if path.name == "config.py" else set())


def test_importing_it_loads_no_language_no_client_and_no_server():
    program = (
        "import sys, torch; before = set(sys.modules); import triton_viz; "
        "print(*sorted({'.'.join(name.split('.')[:3]) for name in set(sys.modules) - before}))"
    )
    loaded = run_python("-c", program).stdout.split()
    assert "triton_viz.core.trace" in loaded
    heavy = ("flask", "waitress", "werkzeug", "rich", "z3", "ml_dtypes", "jax", "triton")
    assert not [name for name in loaded if name.split(".")[0] in heavy]
    unwanted = ("triton_viz.clients", "triton_viz.visualizer", "triton_viz.numerics")
    unwanted += ("triton_viz.dsls.triton", "triton_viz.dsls.nki")
    assert not [name for name in loaded if name.startswith(unwanted)]


def page_sources() -> list[Path]:
    return [path for folder in ("src", "ops") for path in (ROOT / "frontend" / folder).rglob("*.ts")]


def test_a_client_loads_no_language_before_it_is_used():
    program = (
        "import sys; from triton_viz.clients import Profiler, RaceDetector, Sanitizer, Tracer, report; "
        "print(*(name for name in sys.modules if name.startswith(('triton_viz.dsls.', 'triton.'))))"
    )
    loaded = set(run_python("-c", program).stdout.split())
    assert not [name for name in loaded if name.startswith(("triton.", "triton_viz.dsls.triton"))]
    assert "triton_viz.dsls.nki" not in loaded
    assert "triton_viz.dsls.base" in loaded


@pytest.mark.parametrize("paths", [modules(), page_sources()], ids=["package", "page"])
def test_no_two_files_have_one_name(paths: list[Path]):
    counts = Counter(path.name for path in paths if path.name != "__init__.py")
    assert len(counts) > 20
    assert [name for name, count in counts.items() if count > 1] == []


def test_no_file_has_more_than_450_lines():
    page = [*page_sources(), *(ROOT / "frontend").glob("*.ts"), *(ROOT / "frontend" / "tests").rglob("*.ts")]
    assert {"timeline.ts", "vite.config.ts", "tape.test.ts", "report_payloads.ts"} <= {p.name for p in page}
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (*modules(), *page, *(ROOT / "tests").rglob("*.py"), *(ROOT / "tools").rglob("*.py"))
        if (lines := len(path.read_text().splitlines())) > 450
    }
    assert long == {}, "split them: a file is one idea"


WORDS = r"(?i)(?<![a-z])(whole[ _]numbers?|nobody|somebody|whoever|everybody|anybody)(?![a-z])"
"""Words for which the glossary has others, in text and in names."""


def test_sources_and_tests_use_the_words_of_the_glossary():
    tests = [*(ROOT / "tests/triton_viz").rglob("*.py"), *(ROOT / "tests/page").rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in (*modules(), *page_sources(), *tests)
        for match in re.finditer(WORDS, path.read_text())
        if path != Path(__file__)
    ]
    assert found == []


def definitions(path: Path) -> set[str]:
    """The ops that a file defines: as methods, as assignments in a class, or as keys of a table of ops."""
    tree = ast.parse(path.read_text())
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    if 'f"create_{' in path.read_text():
        for node in ast.walk(tree):
            keys = node.keys if isinstance(node, ast.Dict) else []
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict.fromkeys":
                keys = getattr(node.args[0], "elts", [])
            found |= {f"create_{key.value}" for key in keys if isinstance(key, ast.Constant)}
    return {name for name in found if name.startswith("create_")}


def test_a_triton_op_is_defined_in_at_most_two_files():
    from triton_viz.dsls.triton.ops.lane_builder import LaneBuilder

    defined_in: dict[str, list[str]] = {}
    for path in modules("dsls/triton"):
        for name in definitions(path):
            defined_in.setdefault(name, []).append(path.stem)
    ops = [name for name in dir(LaneBuilder) if name.startswith("create_")]
    assert len(ops) > 100
    assert {name: files for name in ops if len(files := defined_in.get(name, [])) > 2} == {}


KERNEL = """
import torch
import triton
import triton.language as tl
import triton_viz
from triton_viz.clients import Tracer


@tl.core.builtin
def twice(x, _semantic=None):
    return tl.tensor(_semantic.builder.create_twice(x.handle), x.type)


@triton_viz.trace([Tracer(arithmetic=True), "profiler", "sanitizer"])
@triton.jit
def doubled(x, out):
    at = tl.program_id(0) * 4 + tl.arange(0, 4)
    tl.store(out + at, twice(tl.load(x + at)))


x, out = torch.arange(8.0), torch.zeros(8)
doubled[(2,)](x, out)
assert out.tolist() == (2 * x).tolist()
records = triton_viz.launches[-1].records
print(*(record.name for record in records if type(record).__name__ == "Compute" and record.name == "twice"))
print(*(record.report.flops for record in records if type(record).__name__ == "KernelProfile"))
print(*(record.verdict for record in records if type(record).__name__ == "Verdict"))
"""


def test_a_triton_op_is_added_by_one_line(tmp_path: Path):
    """Clients know it: it is recorded, counted as arithmetic, and no obstacle to the sanitizer's proofs."""
    shutil.copytree(PACKAGE, tmp_path / "triton_viz", ignore=shutil.ignore_patterns("__pycache__", "static"))
    ops = tmp_path / "triton_viz/dsls/triton/ops/arithmetic.py"
    row = '    "exp": np.exp,\n'
    assert row in ops.read_text()
    ops.write_text(ops.read_text().replace(row, f'{row}    "twice": lambda a: a + a,\n'))
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert run_python("kernel.py", cwd=tmp_path).stdout.split() == ["twice", "8", "ok", "ok"]
