"""The cluster's view, on the tape of a real training run."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import triton_viz
from gt.inspect import timeline
from tests.gt.test_timeline import log
from tests.page.helpers.browser import Visit
from tests.page.helpers.pages import browser, colours, seen, served

__all__ = ["browser", "log", "seen"]  # fixtures
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

    # Clicking a box of many goes nearer, until it is of one.
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
