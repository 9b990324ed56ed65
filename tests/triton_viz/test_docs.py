"""The documents about extending triton_viz: their programs run, and the names in them exist."""

import pkgutil
import re
from pathlib import Path

import pytest
import torch

import triton_viz
from tests.programs import ROOT, run_python
from tests.triton_viz.helpers import client_kernels
from tests.triton_viz.test_clients import Calls
from triton_viz.core.data import OPS

pytestmark = pytest.mark.usefixtures("no_launches")

CLIENTS = "docs/writing-a-client.md"
RECORDS = "docs/adding-a-record.md"
LANGUAGES = "docs/adding-a-dsl.md"
NKI = "docs/nki.md"
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


def files_of(page: str) -> dict[str, str]:
    """The programs of a document, by the file names in their first lines."""
    blocks = re.findall(r"```python\n# (\S+\.py)\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert len(blocks) == (ROOT / page).read_text().count("```python"), "every block is a file"
    return dict(blocks)


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with the document's programs."""
    for name, text in files_of(request.node.callspec.params["page"]).items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("page", "environment"),
    [
        (CLIENTS, {}),
        (CLIENTS, {"TRITON_INTERPRET": "1"}),
        (RECORDS, {"TRITON_VIZ_NUM_SMS": "2"}),
        pytest.param(CLIENTS, {"TRITON_VIZ_NUM_SMS": "2"}, marks=pytest.mark.thorough),
        pytest.param(RECORDS, {}, marks=pytest.mark.thorough),
        pytest.param(RECORDS, {"TRITON_INTERPRET": "1"}, marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_a_document_prints_its_expected_output(page: str, environment: dict[str, str], folder: Path):
    programs = [(name, text) for name, text in files_of(page).items() if PRINTED.search(text)]
    assert len(programs) == {CLIENTS: 3, RECORDS: 2}[page]
    code = f"import runpy\nfor name in {[name for name, _ in programs]}: runpy.run_path(name)"
    environment = {"PYTHONPATH": f"{ROOT}:{folder}", **environment}
    printed = run_python("-c", code, cwd=folder, environment=environment).stdout.splitlines()
    assert printed == [line for _, text in programs for line in PRINTED.findall(text)]


def test_the_document_on_checking_prints_its_expected_output(tmp_path: Path):
    text = (ROOT / "docs/checking-a-kernel.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    (tmp_path / "page.py").write_text(code)
    done = run_python("page.py", cwd=tmp_path, environment={"PYTHONPATH": str(ROOT)})
    assert done.stdout.splitlines() == PRINTED.findall(code)
    assert "out of bounds in kernel double" in done.stderr


@pytest.mark.parametrize(("page", "program"), [(LANGUAGES, "run_sums.py"), (NKI, "rows_of_softmax.py")])
def test_a_document_with_one_program_prints_its_expected_output(page: str, program: str, folder: Path):
    printed = run_python(program, cwd=folder, environment={"PYTHONPATH": f"{ROOT}:{folder}"}).stdout
    assert printed.splitlines() == PRINTED.findall(files_of(page)[program])


@pytest.mark.parametrize("page", [RECORDS])
def test_a_file_with_unknown_records_is_an_error_that_says_what_to_import(page: str, folder: Path):
    environment = {"PYTHONPATH": str(ROOT)}
    run_python("run_pick.py", cwd=folder, environment=environment)
    code = "import triton_viz; triton_viz.load('pick.tvz')"
    done = run_python("-c", code, cwd=folder, environment=environment, fails=True)
    assert "pick.tvz holds records of type 'Gather', which no imported module defines: import" in done.stderr
    code = "import triton_viz, gathers; triton_viz.load('pick.tvz'); print(len(triton_viz.launches))"
    assert run_python("-c", code, cwd=folder, environment=environment).stdout == "1\n"


def arguments_by_type() -> dict[str, set[str]]:
    """The document's table of the arguments of callbacks."""
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", (ROOT / CLIENTS).read_text(), re.MULTILINE)
    return {
        kind: set(re.findall(r"`(\w+)`", arguments))
        for kinds, arguments in rows
        for kind in re.findall(r"`(\w+)`", kinds)
    }


def test_the_table_of_arguments_is_what_callbacks_get():
    heard = Calls()
    triton_viz.trace(heard)(client_kernels.one_of_each)[(1,)](torch.ones(16, 16), torch.zeros(1), SIDE=16)
    told = {kind.__name__: set(calls[0]) for kind, calls in heard.before.items()}
    table = arguments_by_type()
    assert {kind: table[kind] for kind in told} == told
    assert set(table) - set(told) == {"Other", "Transfer"}, "unknown ops are rare; Triton has one memory"
    assert set(table) <= set(OPS)


PAGES = [page.relative_to(ROOT) for page in (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/design/triton-*.md"))]
FOLDERS = "clients|core|dsls|executor|numerics|visualizer"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_files_and_names_of_the_package_that_a_page_gives_exist(page: Path):
    text = (ROOT / page).read_text()
    for path in re.findall(rf"`(?:triton_viz/)?((?:{FOLDERS})/[\w/]+\.py)`", text):
        assert (ROOT / "triton_viz" / path).is_file(), path
    for name in re.findall(rf"`(?:triton_viz\.)?((?:{FOLDERS})\.[\w.]+)", text):
        assert pkgutil.resolve_name(f"triton_viz.{name}") is not None
