"""Which packages of gt may import which: ARCHITECTURE.md shows the same table."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gt

PACKAGE = Path(gt.__file__).parent
COMMON = {"errors", "config", "logs"}
ALLOWED = {
    "ops": {"errors"},
    "stream": {"ops"} | COMMON,
    "transport": {"ops", "stream"} | COMMON,
    "client": {"ops", "stream", "transport", "autograd", "tensors", "server"} | COMMON,
    "autograd": {"ops", "stream", "tensors"} | COMMON,
    "tensors": {"ops", "stream", "transport", "client", "autograd", "nn"} | COMMON,
    "nn": {"ops", "stream", "transport", "client", "autograd", "tensors"} | COMMON,
    "optim": {"nn", "autograd", "tensors"} | COMMON,
    "dispatcher": {"ops", "stream", "transport"} | COMMON,
    "worker": {"ops", "stream", "transport", "command_line"} | COMMON,
    "server": {"dispatcher", "worker", "stream", "transport", "command_line"} | COMMON,
    "torch": {"client", "stream", "ops", "tensors", "debug"} | COMMON,
    "inspect": {"client", "dispatcher", "stream", "transport"} | COMMON,
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
