"""The cluster's view, on the tape of a real training run."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import triton_viz
from gt.inspect import timeline
from tests.gt.device.test_tape import llama_log
from tests.gt.test_timeline import log
from tests.page.helpers.browser import Visit
from tests.page.helpers.pages import colours, image, served

__all__ = ["llama_log", "log"]  # fixtures
pytestmark = pytest.mark.usefixtures("no_launches")
HEIGHT, AXIS = 34, 26
"""Of a lane and of the axis above them, as timeline.ts draws them."""


@pytest.fixture
def tape(log: Path, seen: Visit) -> Iterator[Page]:
    """The page on a tape alone."""
    with served(seen, tape=log) as address:
        seen.page.goto(address)
        expect(seen.page.locator("#timeline")).to_have_attribute("data-drawn", re.compile(r"\d+ "))
        yield seen.page


def shown(timeline: Locator) -> tuple[float, float]:
    """From when to when the timeline shows."""
    _, start, end = (timeline.get_attribute("data-drawn") or "").split()
    return float(start), float(end)


def test_a_tape_without_launches_opens_the_cluster(tape: Page) -> None:
    expect(tape).to_have_title("Cluster · Triton-Viz")
    expect(tape.locator(".tape-name")).to_contain_text("gt.log")
    assert colours(tape, "#timeline") > 10
    expect(tape.locator("#cluster-shares")).to_contain_text("c1")
    expect(tape.locator("#cluster-shares")).to_contain_text("100 %")
    expect(tape.locator("#cluster-hot")).to_contain_text("linear → relu → linear")
    expect(tape.locator("#cluster-held")).to_contain_text("worker_0")


def test_the_timeline_zooms_moves_and_tells_of_an_instruction(tape: Page) -> None:
    canvas = tape.locator("#timeline")
    start, end = shown(canvas)
    box = canvas.bounding_box()
    assert box is not None
    worker = AXIS + 2.5 * HEIGHT
    canvas.hover(position={"x": box["width"] - 15, "y": worker})
    for _ in range(12):
        tape.mouse.wheel(0, -100)
    expect(canvas).not_to_have_attribute("data-drawn", re.compile(f"{start:.6f}"))
    near = shown(canvas)
    assert near[1] - near[0] < (end - start) / 10
    canvas.focus()
    tape.keyboard.press("ArrowLeft")
    assert shown(canvas)[0] < near[0]
    tape.keyboard.press("-")
    tape.get_by_role("button", name="Fit").last.click()
    assert shown(canvas) == (start, end)

    # A click on a box of several instructions zooms in, until a box has one instruction.
    for _ in range(12):
        spot = tape.evaluate(
            """([y]) => {
                const canvas = document.querySelector("#timeline");
                const context = canvas.cloneNode().getContext("2d", { willReadFrequently: true });
                context.drawImage(canvas, 0, 0);
                const { data } = context.getImageData(0, y * devicePixelRatio, canvas.width, 1);
                const back = [...data.slice(4 * 2, 4 * 2 + 3)].join();
                for (let x = 140; x < canvas.width; x++)
                    if ([...data.slice(4 * x, 4 * x + 3)].join() !== back
                        && [...data.slice(4 * x + 8, 4 * x + 11)].join() !== back) return x + 1;
                return -1;
            }""",
            [worker],
        )
        canvas.click(position={"x": spot, "y": worker})
    details = tape.locator("#instruction")
    expect(details).to_contain_text("took about")
    expect(details).to_contain_text("c1")
    expect(details.locator("pre")).to_contain_text("=")


def click_op(page: Page) -> None:
    """Click instructions of the worker, from the right, until one is an op of a module."""
    canvas = page.locator("#timeline")
    box = canvas.bounding_box()
    assert box is not None
    for across in range(int(box["width"]) - 12, 150, -3):
        canvas.click(position={"x": across, "y": AXIS + 2.5 * HEIGHT})
        if page.locator("#instruction .module-link").count():
            return
        page.locator("#timeline-fit").click()  # a click on several zooms in
    raise AssertionError("there is no op with a module")


def test_modules_are_shown_searched_and_clicked(llama_log: Path, seen: Visit) -> None:
    page = seen.page
    with served(seen, tape=llama_log) as address:
        page.goto(address)
        panel, search = page.locator("#cluster-modules"), page.locator("#module-search")
        names = panel.locator(".module-name")
        expect(names.first).to_have_text("model")
        for name in ("layers", "AdamW.step", "lm_head", "LlamaForCausalLM"):
            expect(names.get_by_text(name, exact=True)).to_be_visible()

        # A search leaves only the modules of that name in the table, and fades the others on the timeline.
        before = image(page, "#timeline")
        search.fill("layers.1.mlp")
        expect(names.first).to_have_text("model.layers.1.mlp")
        expect(names).to_have_text(["model.layers.1.mlp", *[re.compile("_proj|act_fn")] * 4])
        assert image(page, "#timeline") != before
        names.get_by_text("up_proj", exact=True).click()
        expect(search).to_have_value("model.layers.1.mlp.up_proj")
        expect(names).to_have_text(["model.layers.1.mlp.up_proj"])
        search.fill("nothing")
        expect(panel).to_contain_text("No module is called nothing.")
        panel.get_by_role("button", name="Show all").click()
        expect(search).to_have_value("")
        expect(names.first).to_have_text("model")

        # The details of an instruction have its module, line and phase; a click on the module selects it.
        click_op(page)
        details = page.locator("#instruction")
        module = details.locator(".module-link").inner_text()
        expect(details.locator(".user-line")).to_contain_text("train.py:")
        details.locator(".module-link").click()
        expect(search).to_have_value(module)
        expect(names.first).to_have_text(module)


def test_a_tape_without_modules_has_no_table_of_them(tape: Page) -> None:
    expect(tape.locator("#cluster-modules")).to_be_hidden()
    expect(tape.locator("#module-search")).to_be_hidden()


def test_a_log_that_grows_is_followed(log: Path, seen: Visit, tmp_path: Path) -> None:
    lines = log.read_text().splitlines(keepends=True)
    growing = tmp_path / "growing.log"
    growing.write_text("".join(lines[:100]))
    with served(seen, tape=growing) as address:
        page = seen.page
        page.goto(f"{address}#view=cluster")
        expect(page.locator(".tape-name")).to_contain_text("100 lines")
        page.get_by_role("button", name="Follow").click()
        with growing.open("a") as file:
            file.write("".join(lines[100:150]))
        expect(page.locator(".tape-name")).to_contain_text("150 lines")
        page.get_by_role("button", name="Follow").click()


def test_a_timeline_in_one_file_needs_no_server(log: Path, seen: Visit, tmp_path: Path) -> None:
    target = tmp_path / "timeline.html"
    assert timeline.main([str(log), "-o", str(target)]) == 0
    page = seen.page
    page.unroute_all()
    page.goto(target.as_uri())
    expect(page.locator(".tape-name")).to_contain_text("gt.log")
    assert colours(page, "#timeline") > 10
    expect(page.get_by_role("tab")).to_have_count(0)
    assert not triton_viz.launches
