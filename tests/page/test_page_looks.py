"""Requirements of every view: readable text, nothing cut off, keys that do what the help says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from playwright.sync_api import Page, expect

import triton_viz
from examples import matmul
from tests.gt.helpers.servers import Process
from tests.page.helpers.browser import Visit
from tests.page.helpers.pages import served, wait_until_at_rest, wait_until_drawn
from tests.page.test_page_sharded import log
from tests.triton_viz.helpers import kernels
from tests.triton_viz.nki_kernels import modern
from tests.triton_viz.test_nki_kernels import CASES
from triton_viz.core.data import Launch

__all__ = ["log"]  # fixtures
VIEWS = ("matmul", "attention", "cube", "profile", "chip-profile", "issues", "cluster", "help")
FAINT = """() => {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (text) => {
        paint.clearRect(0, 0, 1, 1);
        paint.fillStyle = text;
        paint.fillRect(0, 0, 1, 1);
        return [...paint.getImageData(0, 0, 1, 1).data];
    };
    const linear = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const found = rgba(getComputedStyle(at).backgroundColor);
            if (found[3] > 128) return found;
        }
        return [255, 255, 255, 255];
    };
    const faint = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const element = walk.currentNode.parentElement;
        if (!walk.currentNode.textContent.trim() || !element.checkVisibility()) continue;
        if (element.closest("script, style, option, svg, :disabled")) continue;
        const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) faint.push(`${contrast.toFixed(2)} ${element.className}: ${element.textContent}`);
    }
    return faint;
}"""
CUT_OFF = """() => [document.documentElement, ...document.querySelectorAll("main:not([hidden]) *")]
    .filter((element) => element instanceof HTMLElement)
    .filter((element) => element.scrollWidth > element.clientWidth + 1 && element.clientWidth)
    .map((element) => element.id || element.className || element.outerHTML)"""


@triton.jit
def cube(out, BLOCK: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = ((z * tl.num_programs(1) + y) * tl.num_programs(0) + x) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, at)


@pytest.fixture(scope="module")
def traces() -> Iterator[dict[str, Launch]]:
    triton_viz.clear()
    found: dict[str, Launch] = {}
    a, b, c = torch.ones(40, 48), torch.ones(48, 56), torch.zeros(40, 56)
    traced = triton_viz.trace(["tracer", "profiler", "sanitizer"])(matmul.matmul.kernel)
    traced[(3, 4)](a, b, c, 40, 56, 48, TILE=16)
    found["matmul"] = triton_viz.launches[-1]
    x = torch.ones(10)
    traced = triton_viz.trace(["tracer", "sanitizer"])(kernels.add_unmasked)
    traced[(3,)](x, x.clone(), torch.ones(10), 10, BLOCK=4)
    found["unmasked"] = triton_viz.launches[-1]
    case = next(case for case in CASES if case.kernel == "attention")
    triton_viz.trace(["tracer", "profiler"], backend="nki")(modern.attention)(*case.arguments)
    found["attention"] = triton_viz.launches[-1]
    triton_viz.trace("tracer")(cube)[(2, 3, 4)](torch.zeros(2, 3, 4, 8, dtype=torch.int32), BLOCK=8)
    found["cube"] = triton_viz.launches[-1]
    yield found
    triton_viz.clear()


@pytest.fixture(scope="module")
def address(traces: dict[str, Launch], log: Path) -> Iterator[str]:
    with served(tape=log) as address:
        yield address


def go(page: Page, address: str, traces: dict[str, Launch], name: str) -> None:
    """Open a view, and wait until it is there."""
    places = {
        "profile": f"view=profile&launch={traces['matmul'].id}",
        "chip-profile": f"view=profile&launch={traces['attention'].id}",
        "issues": f"view=issues&launch={traces['unmasked'].id}",
        "cluster": "view=cluster",
    }
    page.goto(f"{address}#{places.get(name) or f'launch={traces.get(name, traces[VIEWS[0]]).id}'}")
    view = re.search(r"view=(\w+)", places.get(name, ""))
    shown = page.locator(f"#view-{view[1] if view else 'kernel'}")
    expect(shown.locator(".panel, .issue").first).to_be_visible()
    wait_until_at_rest(page)
    if name in ("matmul", "attention", "cube"):
        wait_until_drawn(page)
    if name == "attention":
        page.keyboard.press("j")
        expect(page.locator("#chip .bar.live").first).to_be_visible()
    if name == "help":
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_all_text_can_be_read(name: str, scheme: str, address: str, traces, seen: Visit):
    seen.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    go(seen.page, address, traces, name)
    assert seen.page.evaluate(FAINT) == []


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (2560, 1440)])
@pytest.mark.parametrize("name", ["attention", "cube", "chip-profile", "cluster"])
def test_nothing_is_cut_off(name: str, width: int, height: int, address: str, traces, seen: Visit):
    seen.page.set_viewport_size({"width": width, "height": height})
    go(seen.page, address, traces, name)
    cut = seen.page.evaluate(CUT_OFF)
    # A long name is truncated, and its title has the full name.
    assert [one for one in cut if one != "buffer-name" and "figcaption" not in one] == []


def test_a_grid_of_three_axes_has_a_slider_for_each_and_keys(address: str, traces, seen: Visit):
    page, id = seen.page, traces["cube"].id
    go(page, address, traces, "cube")
    expect(page.locator("#grid")).to_have_text("2 × 3 × 4 = 24")
    map = page.locator("#map")
    page.locator("#slide-z").fill("2")
    expect(map).to_have_attribute("data-drawn", f"{id} bytes 0,0,2")
    map.focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(map).to_have_attribute("data-drawn", f"{id} bytes 1,1,3")
    expect(page).to_have_url(re.compile("program=1,1,3"))
    # A tensor with four axes is shown completely, also in 3D.
    wait_until_drawn(page)
    expect(page.locator("figcaption")).to_contain_text("2 × 3 × 4 × 8")
    page.keyboard.press("3")
    expect(page.locator("canvas[data-tensor=out]")).to_have_attribute("data-drawn", re.compile("3d$"))


def test_the_help_lists_every_key_that_does_something(address: str, traces, seen: Visit):
    go(seen.page, address, traces, "help")
    named = set(seen.page.locator("#help kbd").all_inner_texts())
    assert named == {*"←→↑↓kjliIova30+-t?", "space", "Esc"}
    source = (Path(__file__).parents[2] / "frontend" / "src" / "main.ts").read_text()
    table = source[source.index("listenKeys({") :]
    keys = set(re.findall(r'^  "?([^":\n]+)"?: ', table, re.MULTILINE)) | set(
        re.findall(r"^  (\w+): ", table, re.MULTILINE)
    )
    words = {" ": "space", "ArrowLeft": "←", "ArrowRight": "→", "ArrowUp": "↑", "ArrowDown": "↓"}
    assert {words.get(key, key) for key in keys} <= named


def test_an_instruction_that_launched_a_kernel_leads_to_it(traces, seen: Visit, tmp_path: Path):
    id = traces["matmul"].id
    tape = tmp_path / "gt.log"
    tape.write_text(
        "   1.000s | #0001 | RECV         | CLIENT c1 | BinaryOp       | 9B | result=1 op=k\n"
        f"   1.001s | #0002 | WORKER_SEND  | WORKER w0 | WorkerBinaryOp | 9B | result=c1_1 op=k launch={id}\n"
        "   1.900s | #0003 | WORKER_RECV  | WORKER w0 | WorkerBinaryOp | 0B | result=c1_1 success=True\n"
    )
    with served(seen, tape=tape) as address:
        page = seen.page
        page.goto(f"{address}#view=cluster")
        canvas = page.locator("#timeline")
        expect(canvas).to_have_attribute("data-drawn", re.compile(r"^1 "))
        canvas.click(position={"x": 700, "y": 26 + 2.5 * 34})
        page.get_by_role("link", name="the kernel that it launched").click()
        expect(page).to_have_title("matmul · Triton-Viz")
        expect(page.locator("#view-kernel")).to_be_visible()


def test_a_trace_file_opens_from_the_command_line(traces, seen: Visit, tmp_path: Path):
    path = tmp_path / "trace.tvz"
    triton_viz.save(path)
    command = (
        "import sys; from triton_viz.visualizer.visualizer_command import main; sys.exit(main(sys.argv[1:]))"
    )
    process = Process("-c", command, str(path), "--port", "0", "--no-browser")
    try:
        found = re.search(r"http://\S+/", process.says("http://"))
        assert found is not None
        seen.page.goto(found[0])
        expect(seen.page.locator("#launch option")).to_have_count(len(traces))
        expect(seen.page).to_have_title("cube · Triton-Viz")
        wait_until_drawn(seen.page)
    finally:
        assert process.interrupt() == 0
        process.stop()
