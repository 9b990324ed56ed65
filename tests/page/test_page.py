"""The kernel's view of the page, in a real browser, on real traces from a real server."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect

import triton_viz
from examples import matmul, vector_add
from tests.page.helpers.browser import Visit
from tests.page.helpers.pages import (
    TIMES,
    choose_op,
    highlighted,
    line_of,
    marked_line,
    marked_op,
    open_view,
    served,
    tile,
    wait_until_at_rest,
    wait_until_drawn,
)
from tests.triton_viz.helpers.kernels import copy_strided

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("no_launches")


# Tiles of 16 by 16; the last ones of the 40 rows and 56 columns are half full.
M, N, K = 40, 56, 48


@pytest.fixture
def address() -> Iterator[str]:
    """A server on two launches: a vector addition, then a matrix product."""
    vector_add.run()
    matmul.run(M, N, K)
    with served() as address:
        yield address


def test_the_newest_launch_is_shown_and_any_can_be_picked(address: str, seen: Visit) -> None:
    page, (first, second) = seen.page, triton_viz.launches
    open_view(page, address)
    options = page.locator("#launch option")
    expect(options).to_have_count(2)
    assert "vector_add" in options.nth(0).inner_text()
    assert f"4 {TIMES} 1 {TIMES} 1" in options.nth(0).inner_text()
    assert "matmul" in options.nth(1).inner_text()
    assert f"3 {TIMES} 4 {TIMES} 1" in options.nth(1).inner_text()
    expect(page.locator("#launch")).to_have_value(str(second.id))
    expect(page.locator("canvas[data-tensor]")).to_have_count(3)
    expect(page).to_have_title("matmul · Triton-Viz")

    page.select_option("#launch", str(first.id))
    expect(page).to_have_title("vector_add · Triton-Viz")
    expect(page.locator("#source")).to_contain_text("def vector_add(x, y, out, n, BLOCK: tl.constexpr):")
    expect(page.locator("#file")).to_have_text("vector_add.py")
    assert f"launch={first.id}" in page.url
    page.go_back()
    expect(page).to_have_title("matmul · Triton-Viz")


def test_a_program_and_an_op_show_in_the_source_the_tensors_and_the_address(
    address: str, seen: Visit
) -> None:
    page, launch = seen.page, triton_viz.launches[1]
    open_view(page, address)
    assert marked_op(page)[1:] == ["Load", line_of(launch, "left = tl.load"), "a", "256", "0"]
    assert marked_line(page).startswith("left = tl.load(a")
    assert highlighted(page, "a", "--load") == tile((0, 16), (0, 16), M, K)
    assert highlighted(page, "b", "--load") is None

    page.locator("#program-x").fill("2")
    page.locator("#program-x").press("Enter")
    expect(page.locator("#ops [aria-current]")).to_contain_text("128")
    assert highlighted(page, "a", "--load") == tile((32, 40), (0, 16), M, K)
    assert highlighted(page, "a", "--tint") == tile((32, 40), (16, 48), M, K)
    assert highlighted(page, "c", "--tint") == tile((32, 40), (0, 16), M, N)
    assert "program=2,0,0" in page.url

    choose_op(page, 4)
    assert marked_op(page)[1:] == ["Load", line_of(launch, "right = tl.load"), "b", "256", "0"]
    assert marked_line(page).startswith("right = tl.load(b")
    assert highlighted(page, "a", "--load") is None
    assert highlighted(page, "b", "--load") == tile((16, 32), (0, 16), K, N)

    choose_op(page, 9)
    assert marked_line(page).startswith("tl.store(c")
    assert highlighted(page, "c", "--store") == tile((32, 40), (0, 16), M, N)
    expect(page.locator("#detail")).to_have_text("Storewrites 128 elements to c, 128 elements masked off")
    *_, (last, _) = launch.numbered((2, 0, 0))
    assert page.url == f"{address}#launch={launch.id}&program=2,0,0&op={launch.id}-{last}-2.0.0"


def test_the_address_leads_back_to_the_same_view(address: str, seen: Visit) -> None:
    page = seen.page
    open_view(page, address)
    page.select_option("#launch", str(triton_viz.launches[0].id))
    expect(page).to_have_title("vector_add · Triton-Viz")
    page.locator("#program-x").fill("3")
    page.locator("#program-x").press("Enter")
    expect(page.locator("#ops [aria-current]")).to_contain_text("28")
    choose_op(page, 2)
    view = page.url, marked_op(page), marked_line(page), highlighted(page, "out", "--store")
    assert view[1][1:] == ["Store", line_of(triton_viz.launches[0], "tl.store"), "out", "4", "28"]
    assert view[3] is not None

    page.goto("about:blank")
    open_view(page, view[0])
    assert (page.url, marked_op(page), marked_line(page), highlighted(page, "out", "--store")) == view
    expect(page.locator("#program-x")).to_have_value("3")


def test_the_keyboard_steps_through_programs_and_ops(address: str, seen: Visit) -> None:
    page = seen.page
    open_view(page, address)
    position = page.locator("#position")
    expect(position).to_have_text("1 of 10")
    for key, text in [("j", "2 of 10"), ("ArrowDown", "3 of 10"), ("k", "2 of 10"), ("ArrowUp", "1 of 10")]:
        page.keyboard.press(key)
        expect(position).to_have_text(text)
    page.keyboard.press("ArrowUp")
    expect(position).to_have_text("1 of 10")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#program-x")).to_have_value("1")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#program-x")).to_have_value("0")
    # also if keys are pressed faster than answers arrive
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#program-x")).to_have_value("2")

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_map_the_source_and_the_buttons_can_be_clicked(address: str, seen: Visit) -> None:
    page = seen.page
    open_view(page, address)
    box = page.locator("#map").bounding_box()
    assert box is not None
    # 3 by 4 programs, x across: the middle of the last one.
    page.locator("#map").click(position={"x": box["width"] * 5 / 6, "y": box["height"] * 7 / 8})
    expect(page.locator("#program-x")).to_have_value("2")
    expect(page.locator("#program-y")).to_have_value("3")

    line = page.locator("#source button", has_text="right = tl.load")
    expect(line.locator(".badge")).to_have_text("3")
    for position in ("2 of 10", "5 of 10", "8 of 10", "2 of 10"):
        line.click()
        expect(page.locator("#position")).to_have_text(position)
    page.get_by_role("button", name="Next op").click()
    expect(page.locator("#position")).to_have_text("3 of 10")
    size = f"(16{TIMES}16)"
    expect(page.locator("#detail")).to_contain_text(f"DotA{size}@B{size}→C{size}")
    expect(page.locator("#detail")).to_contain_text("k: step 1 of 3")
    page.get_by_role("button", name="Previous op").click()
    expect(page.locator("#position")).to_have_text("2 of 10")


def test_hovering_a_tensor_names_the_element(address: str, seen: Visit) -> None:
    page = seen.page
    open_view(page, address)
    wait_until_drawn(page)
    canvas = page.locator("canvas[data-tensor=a]")
    box = canvas.bounding_box()
    assert box is not None
    a = next(tensor for tensor in triton_viz.launches[1].tensors if tensor.name == "a")
    for row, col, what in [(3, 5, "accessed by this op"), (3, 20, "accessed by another op of this program")]:
        canvas.hover(position={"x": (col + 0.5) * box["width"] / K, "y": (row + 0.5) * box["height"] / M})
        where = a.address + (row * K + col) * a.itemsize
        expect(page.get_by_role("tooltip")).to_have_text(f"a[{row}, {col}]: {what} · address {where:#x}")


def test_elements_in_the_gaps_of_a_view_are_counted_apart(seen: Visit) -> None:
    view, out = torch.ones(8, 8)[:, :4], torch.zeros(16)
    triton_viz.trace()(copy_strided)[(1,)](view, out, 8, 1, ROWS=2, COLUMNS=8)
    with served(seen) as address:
        open_view(seen.page, address)
        expect(seen.page.locator("#detail")).to_contain_text("reads 8 elements of x")
        expect(seen.page.locator("#detail")).to_contain_text("8 elements outside the view")


def test_the_traffic_is_that_of_all_programs(address: str, seen: Visit) -> None:
    page = seen.page
    page.goto(f"{address}#view=profile&launch={triton_viz.launches[0].id}")
    rows = page.locator("#traffic tr")
    expect(rows).to_have_count(3)
    assert rows.nth(0).locator("td").all_inner_texts() == ["Load", "x", "4", "100", "28", "400 B"]
    assert rows.nth(2).locator("td").all_inner_texts() == ["Store", "out", "4", "100", "28", "400 B"]


def test_without_launches_the_page_says_what_to_do(seen: Visit) -> None:
    with served(seen) as address:
        seen.page.goto(address)
        message = seen.page.get_by_role("status")
        expect(message).to_contain_text("No kernel was traced yet")
        expect(message).to_contain_text("triton_viz.trace")
        expect(seen.page.locator("#launch")).to_be_disabled()
        expect(seen.page.locator("#view-kernel")).to_be_hidden()
        vector_add.run()
        message.get_by_role("button", name="Try again").click()
        expect(seen.page).to_have_title("vector_add · Triton-Viz")


def test_an_address_of_nothing_says_so(address: str, seen: Visit) -> None:
    seen.page.goto(f"{address}#launch={triton_viz.launches[1].id}&program=9,0,0")
    message = seen.page.get_by_role("status")
    expect(message).to_contain_text("There is nothing at this address")
    expect(message).to_contain_text("The grid (3, 4, 1) of 12 programs has no (9, 0, 0).")
    assert [url.partition("?")[2] for url in seen.take_failures(1)] == [
        f"launch={triton_viz.launches[1].id}&program=9,0,0: 404"
    ]
    seen.page.select_option("#launch", str(triton_viz.launches[0].id))
    expect(seen.page).to_have_title("vector_add · Triton-Viz")


def test_a_server_that_is_gone_is_reported_and_can_come_back(seen: Visit) -> None:
    vector_add.run()
    page = seen.page
    with served() as address:
        open_view(page, address)
        choose_op(page, 1)
        expect(page.locator("#position")).to_have_text("2 of 3")
    before = page.url  # after all answers have arrived
    page.keyboard.press("ArrowRight")
    message = page.get_by_role("status")
    expect(message).to_contain_text("The server does not answer")
    expect(message).to_contain_text("Start it again")
    expect(page.locator("#view-kernel")).to_be_hidden()
    wait_until_at_rest(page)
    (failed,) = seen.take_failures(1)  # it tries once, and then waits for the user
    assert failed.endswith("ERR_CONNECTION_REFUSED")
    with served(seen, int(address.rstrip("/").rpartition(":")[2])):
        message.get_by_role("button", name="Try again").click()
        expect(page.locator("#position")).to_have_text("2 of 3")
        assert page.url == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_in_dark(address: str, seen: Visit, scheme: str) -> None:
    page = seen.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    open_view(page, address)
    names = [
        "--back",
        "--panel",
        "--marked",
        "--hover",
        "--text",
        "--muted",
        "--load",
        "--store",
        "--atomic",
        "--dot",
        "--other",
        "--transfer",
        "--instruction",
        "--reduce",
        "--issue",
    ]
    luminance: dict[str, float] = page.evaluate(
        """(names) => {
            const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
            const linear = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
            return Object.fromEntries(names.map((name) => {
                document.body.style.outlineColor = `var(${name})`;
                paint.fillStyle = getComputedStyle(document.body).outlineColor;
                paint.fillRect(0, 0, 1, 1);
                const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map(linear);
                return [name, 0.2126 * r + 0.7152 * g + 0.0722 * b];
            }));
        }""",
        names,
    )
    assert (luminance["--panel"] < 0.1) == (scheme == "dark")
    for back in names[:4]:
        for text in names[4:]:
            low, high = sorted((luminance[back], luminance[text]))
            assert (high + 0.05) / (low + 0.05) >= 4.5, f"{text} on {back} is below WCAG AA"


def test_the_canvases_follow_a_change_of_scheme(address: str, seen: Visit) -> None:
    page = seen.page
    page.emulate_media(color_scheme="light")
    open_view(page, address)
    wait_until_drawn(page)
    light = page.locator("canvas[data-tensor=a]").evaluate("canvas => canvas.toDataURL()")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("old => document.querySelector('[data-tensor=a]').toDataURL() !== old", arg=light)
    assert highlighted(page, "a", "--load") == tile((0, 16), (0, 16), M, K)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (2560, 1440)])
def test_nothing_is_cut_off(address: str, seen: Visit, width: int, height: int) -> None:
    page = seen.page
    page.set_viewport_size({"width": width, "height": height})
    open_view(page, address)
    choose_op(page, 2)
    wide = page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll("main *")]
            .filter((element) => element.scrollWidth > element.clientWidth + 1 && element.clientWidth)
            .map((element) => element.id || element.className || element.outerHTML)"""
    )
    assert wide == []


def test_the_built_page_is_that_of_the_sources() -> None:
    """Without a browser or Node: the hash that the build wrote, recomputed."""
    frontend = ROOT / "frontend"
    skipped = {"node_modules", "tests", "GLOSSARY.md", "biome.json"}
    paths = [path.relative_to(frontend) for path in frontend.rglob("*") if path.is_file()]
    names = sorted(
        path.as_posix()
        for path in paths
        if not any(part in skipped or part.startswith(".") for part in path.parts)
    )
    lines = [f"{hashlib.sha256((frontend / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    built = (ROOT / "triton_viz" / "static" / "sources.sha256").read_text().strip()
    assert "src/main.ts" in names
    assert hashlib.sha256("".join(lines).encode()).hexdigest() == built, (
        "triton_viz/static was built from other sources than frontend/ has now: run `make page`"
    )
