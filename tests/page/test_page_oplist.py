"""The list of ops is virtual: only the rows in view are in the document."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

import triton_viz
from tests.page.helpers.browser import Visit
from tests.page.helpers.pages import choose_op, open_view, served

pytestmark = pytest.mark.usefixtures("no_launches")
LOADS = 1_000


def straight_line_kernel(folder: Path) -> Any:
    """A kernel of many loads, each on its own line, without a loop."""
    lines = [f"    total += tl.load(x + {number})" for number in range(LOADS)]
    head = ["import triton", "import triton.language as tl", "", "@triton.jit", "def many(x, out):"]
    path = folder / "many_loads.py"
    path.write_text("\n".join([*head, "    total = tl.load(x)", *lines, "    tl.store(out, total)", ""]))
    spec = importlib.util.spec_from_file_location("many_loads", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.many


def test_only_the_rows_in_view_are_in_the_document(seen: Visit, tmp_path: Path):
    x, out = torch.ones(LOADS), torch.zeros(1)
    triton_viz.trace("tracer")(straight_line_kernel(tmp_path))[(1,)](x, out)
    assert out.item() == LOADS + 1
    page = seen.page
    with served(seen) as address:
        open_view(page, address)
        total = LOADS + 2
        expect(page.locator("#position")).to_have_text(f"1 of {total:,}")
        rows = page.locator("#ops [data-op]")
        few = rows.count()
        assert 10 < few < 200
        assert rows.first.inner_text().startswith("1")
        choose_op(page, total - 1)
        expect(page.locator("#ops [aria-current]")).to_contain_text("Store")
        expect(page.locator("#ops [aria-current]")).to_be_in_viewport()
        assert rows.count() < 200
        expect(page.locator("#ops [data-op='0']")).to_have_count(0)
        page.locator("#ops").evaluate("list => { list.scrollTop = list.scrollHeight / 2 }")
        expect(page.locator(f"#ops [data-op='{LOADS // 2 + 5}']")).to_be_in_viewport()
        page.locator(f"#ops [data-op='{LOADS // 2 + 5}']").click()
        expect(page.locator("#position")).to_have_text(f"{LOADS // 2 + 6} of {total:,}")
        assert rows.count() < 200
