"""docs/adding-a-visualization.md, followed step by step: a record, its payload, a renderer, the page."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.gt.helpers.servers import Process
from tests.page.helpers.browser import Visit
from tests.programs import ROOT, TIMEOUT, run_python

PAGE = (ROOT / "docs" / "adding-a-visualization.md").read_text()
PYTHON = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))
TYPESCRIPT = dict(re.findall(r"```typescript\n// (\S+)\n(.*?)```", PAGE, re.DOTALL))
NODE = ROOT / "frontend" / "node_modules"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The document's Python files."""
    for name, text in PYTHON.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The page, built with the document's renderer in it."""
    if not NODE.is_dir():
        reason = "no build tools for the page: `make test` installs them"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    frontend = tmp_path / "tree" / "frontend"
    shutil.copytree(ROOT / "frontend", frontend, ignore=shutil.ignore_patterns("node_modules"))
    (frontend / "node_modules").symlink_to(NODE)
    (frontend / "ops" / "gather.ts").write_text(TYPESCRIPT["ops/gather.ts"])
    importing, entry = TYPESCRIPT["ops/registry.ts"].splitlines()
    registry = frontend / "ops" / "registry.ts"
    text = registry.read_text()
    text = text.replace("import { load }", f"{importing}\nimport {{ load }}", 1)
    registry.write_text(text.replace('  ["Scan"', f'{entry}\n  ["Scan"', 1))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    tools = [["typescript/bin/tsc", "--noEmit"], ["vite/bin/vite.js", "build", "--logLevel", "warn"]]
    for script, *arguments in tools:
        command = ["node", str(NODE / script), *arguments]
        subprocess.run(command, cwd=frontend, env={**os.environ, "PATH": path}, check=True, timeout=TIMEOUT)
    return tmp_path / "tree" / "triton_viz" / "static"


def test_the_payload_is_what_the_document_says(folder: Path):
    environment = {"PYTHONPATH": f"{ROOT}:{folder}"}
    printed = run_python("pick.py", cwd=folder, environment=environment).stdout.splitlines()
    assert printed == re.findall(r"^print\(.*\)  # (.*)$", PYTHON["pick.py"], re.MULTILINE)


@pytest.fixture
def address(folder: Path, built: Path) -> Iterator[str]:
    """The document's trace, on the page that was built."""
    code = (
        "from pathlib import Path; from triton_viz.visualizer import interface\n"
        f"interface.STATIC = Path({str(built)!r})\n"
        "import pick, triton_viz\n"
        "triton_viz.launch(port=0, open_browser=False)\n"
    )
    server = Process("-c", code, PYTHONPATH=f"{ROOT}:{folder}")
    try:
        found = re.search(r"http://\S+", server.says("http://"))
        assert found is not None
        yield found[0]
    finally:
        server.stop()


def test_the_renderer_is_on_the_page(address: str, seen: Visit):
    page = seen.page
    page.goto(f"{address}#program=2,0,0")
    page.locator("#ops button", has_text="Gather").click()
    expect(page.locator("#ops [aria-current]")).to_contain_text("axis 0")
    expect(page.locator("#detail")).to_contain_text("picks from the first 4 of 4")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#detail")).to_contain_text("picks from the first 1 of 4")
    expect(page.locator("#detail .blocks .done")).to_have_count(1)
