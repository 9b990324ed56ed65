"""The sources of gt: one name for one thing, in files of one idea."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.programs import ROOT

MODULES = sorted((ROOT / "gt").rglob("*.py"))
TESTS = sorted((ROOT / "tests" / "gt").rglob("*.py"))
MAX_LINES = 450
ONE_PER_MODULE = {"ROWS", "KERNELS", "F"}
"""A group's rows of the op table, a module's kernels for PyTorch's dispatcher, and a type variable."""


def constants(tree: ast.Module) -> Iterator[str]:
    """The names of a module's constants. `_HALF` beside `HALF` would be as confusing as a second `HALF`."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(name, ast.Name) and name.id.isupper():
                    yield name.id.strip("_")


def test_a_constant_has_one_definition_and_so_one_meaning():
    where: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for name in constants(ast.parse(path.read_text())):
            where[name].append(str(path.relative_to(ROOT)))
    assert "TABLE" in where
    several = {name: paths for name, paths in where.items() if len(paths) > 1 and name not in ONE_PER_MODULE}
    assert several == {}


def test_one_module_has_the_name_of_the_attribute_seed():
    knowing = [path for path in MODULES if re.search(r"""["']seed["']""", path.read_text())]
    assert [str(path.relative_to(ROOT)) for path in knowing] == ["gt/ops/run_time.py"]


def test_one_module_has_the_rule_which_attributes_may_differ_between_repeats():
    knowing = [path for path in MODULES if re.search(r"\bRUN_TIME\b", path.read_text())]
    names = [str(path.relative_to(ROOT)) for path in knowing]
    assert names == ["gt/ops/run_time.py", "gt/ops/table.py"], "the other fills it from the rows"


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_no_file_of_gt_or_of_its_tests_is_too_long():
    found = {str(path.relative_to(ROOT)): lines(path) for path in (*MODULES, *TESTS)}
    assert {name: count for name, count in found.items() if count > MAX_LINES} == {}, "split them by subject"


WORDS = re.compile(
    r"\b(rehears\w*|condens\w*|glanc\w*|tellers?|doors?|tickets?|landings?|stretch(es)?|loans?|len[dt]s?|owes?"
    r"|parcels?|promis\w*|tall(y|ies)|lies|laid|whole numbers?|how-manieth|nobody|somebody|whoever)\b",
    re.IGNORECASE,
)
"""Metaphors and vague subjects that the code once had in place of words of the field."""
OF_TRITON_VIZ = re.compile(r"triton-viz|adding-a|checking-a-kernel|writing-a-client|nki")


def texts() -> Iterator[tuple[str, str]]:
    """The sources, tests, benchmarks and examples, what they log included, and the documents."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if not OF_TRITON_VIZ.search(path.name)]
    pages += [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    scripts = [
        *(ROOT / "benchmarks").glob("gt_*"),
        *(ROOT / "benchmarks").glob("torch_*"),
        *ROOT.glob("*.py"),
    ]
    for path in (*MODULES, *TESTS, *pages, *scripts):
        if path != Path(__file__):
            yield str(path.relative_to(ROOT)), path.read_text()


def test_code_logs_and_docs_have_the_words_of_the_field():
    found = {name: WORDS.search(text.replace("_", " ")) for name, text in texts()}  # names in code, too
    assert {name: one[0] for name, one in found.items() if one} == {}
