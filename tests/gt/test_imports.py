"""The packages of gt import only what the table in ARCHITECTURE.md allows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gt
from tests.programs import ROOT

PACKAGE = Path(gt.__file__).parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
COMMON = set(re.findall(r"`(\w+)`", PAGE.partition("All of them may import")[2].partition(".\n")[0]))
"""The modules that all packages may import."""
ALLOWED = {
    row[1]: set(re.findall(r"`(\w+)`", row[2])) | COMMON
    for row in re.finditer(r"^\| `gt/(\w+)/` \| .* \| ([^|]*) \|$", PAGE, re.MULTILINE)
}
FRONTS = {"client/tensor.py", "client/autograd.py", "client/nn.py", "client/optim.py"}
"""Paths that the specification names, for code that is elsewhere."""


def imports(node: ast.AST) -> Iterator[str]:
    """The modules that a file imports, but for those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.ImportFrom) and child.module == "gt":
            yield from (f"gt.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module is not None:
            yield child.module
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        yield from imports(child)


def files(package: str) -> Iterator[Path]:
    for path in sorted((PACKAGE / package).rglob("*.py")):
        if str(path.relative_to(PACKAGE)) not in FRONTS:
            yield path


def test_the_table_has_every_package_and_no_direction_that_is_not_used():
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(ALLOWED) == packages
    assert all((PACKAGE / f"{name}.py").is_file() for name in COMMON)
    for package, allowed in ALLOWED.items():
        modules = [module for path in files(package) for module in imports(ast.parse(path.read_text()))]
        used = {name.split(".")[1] for name in modules if name.startswith("gt.")}
        assert allowed - COMMON <= used, package


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_those_below_it(package: str):
    for path in files(package):
        for module in imports(ast.parse(path.read_text())):
            first, *rest = module.split(".")
            if first == "gt" and rest:
                assert rest[0] in ALLOWED[package] | {package}, f"{path} imports {module}"


def test_only_workers_and_the_device_import_an_engine():
    for package in ALLOWED.keys() - {"worker", "torch"}:
        for path in files(package):
            engines = {"torch", "jax"} & {name.split(".")[0] for name in imports(ast.parse(path.read_text()))}
            assert not engines, f"{path} imports {engines}"
