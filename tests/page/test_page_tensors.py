"""Tensors on the page: marks, coverage, values, zoom, three dimensions."""

import re

import pytest
from playwright.sync_api import Route, expect

from tests.page.helpers.pages import (
    TIMES,
    choose_op,
    colours,
    highlighted,
    tile,
    wait_until_at_rest,
    wait_until_drawn,
)
from tests.page.helpers.traces import K, M, N, address, show, traces

__all__ = ["address", "show", "traces"]  # fixtures


def test_masked_elements_look_unlike_the_others(show) -> None:
    page = show("masked")
    wait_until_drawn(page)
    # 64 elements in rows of 16: 20 are loaded, 12 are masked off.
    assert highlighted(page, "x", "--load") == pytest.approx((0, 0, 1, 0.5), abs=0.02)
    assert highlighted(page, "x", "--masked") == pytest.approx((0.25, 0.25, 1, 0.5), abs=0.02)
    expect(page.locator("#legend")).to_contain_text("masked off")


def test_all_programs_show_the_coverage_of_a_tensor_with_overlaps(show) -> None:
    page = show("matmul")
    page.get_by_role("button", name="All programs", exact=True).click()
    wait_until_drawn(page, "all")
    captions = page.locator("#tensors figcaption")
    expect(captions.nth(0)).to_contain_text(f"max 4{TIMES}")
    expect(captions.nth(1)).to_contain_text(f"max 3{TIMES}")
    expect(captions.nth(2)).to_contain_text(f"max 1{TIMES}")
    page.select_option("#kind", "written")
    expect(captions.nth(0)).to_contain_text(f"max 0{TIMES}")
    page.locator("canvas[data-tensor=c]").hover(position={"x": 20, "y": 20})
    expect(page.get_by_role("tooltip")).to_contain_text(f"accessed 1{TIMES} by all programs")


def test_values_are_coloured_counted_and_read_one_by_one(show, traces) -> None:
    page = show("matmul")
    expect(page.locator("#histogram rect")).to_have_count(32)
    page.keyboard.press("v")
    wait_until_drawn(page, "values")
    assert colours(page, "canvas[data-tensor=a]") > 30
    canvas = page.locator("canvas[data-tensor=a]")
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": 5.5 * box["width"] / K, "y": 3.5 * box["height"] / M})
    card = page.locator("#element")
    expect(card).to_contain_text("a[3, 5]")
    load = traces["matmul"].at((0, 0, 0))[0]
    value = float(load.values[0][3, 5])
    expect(card).to_contain_text(f"{value:.6g}"[:6])
    a = traces["matmul"].tensors[0]
    expect(card).to_contain_text(hex(a.address + 4 * (3 * K + 5)))
    assert f"element=a:{3 * K + 5}" in page.url
    card.get_by_role("button", name="Load at line").first.click()
    expect(page.locator("#ops [aria-current]")).to_contain_text("Load")
    card.get_by_role("button", name="Unselect").click()
    expect(card).to_be_empty()


def test_an_element_that_is_unselected_while_a_program_is_fetched_stays_unselected(show) -> None:
    page = show("matmul", f"&element=a:{3 * K + 5}")
    card = page.locator("#element")
    expect(card).to_contain_text("a[3, 5]")
    held: list[Route] = []
    page.route("**/api/data?*", lambda route: held.append(route))
    with page.expect_request("**/api/data?*"):
        card.get_by_role("button", name="Load at line").first.click()
    card.get_by_role("button", name="Unselect").click()
    expect(card).to_be_empty()
    held.pop().continue_()
    wait_until_at_rest(page)
    expect(card).to_be_empty()
    assert "element=" not in page.url


def test_without_values_the_page_says_how_to_keep_them(show) -> None:
    page = show("masked")
    expect(page.locator("#histogram")).to_contain_text("triton_viz.config.values = True")
    page.get_by_role("button", name="Values").click()
    expect(page.locator("#values-missing")).to_contain_text("triton_viz.config.values = True")


def test_a_tensor_is_zoomed_to_single_elements_and_moved(show) -> None:
    page = show("million", "&program=0,0,0")
    wait_until_drawn(page)
    canvas = page.locator("canvas[data-tensor=x]")
    before = highlighted(page, "x", "--load")
    canvas.hover(position={"x": 0, "y": 0})
    for _ in range(40):
        page.mouse.wheel(0, -100)
    expect(page.get_by_role("tooltip")).to_contain_text("x[0]")
    page.wait_for_function("() => document.querySelector('#tip').textContent.includes('address')")
    after = highlighted(page, "x", "--load")
    assert before is not None
    assert after is not None
    assert after[2] - after[0] > 0.9 > before[2] - before[0]
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.down()
    page.mouse.move(box["x"], box["y"] - 250, steps=5)  # up: what is further down comes
    page.mouse.up()
    assert highlighted(page, "x", "--load") is None
    page.get_by_role("button", name="Fit").click()
    assert highlighted(page, "x", "--load") == before


def test_two_dimensions_come_first_and_three_on_request_never_edge_on(show) -> None:
    page = show("attention")
    wait_until_drawn(page)
    canvas = page.locator("canvas[data-tensor=q]")
    expect(canvas).to_have_attribute("data-drawn", re.compile("2d$"))
    page.keyboard.press("3")
    expect(canvas).to_have_attribute("data-drawn", re.compile("3d$"))
    expect(page.locator("#solid")).to_have_attribute("aria-pressed", "true")
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 50, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 900, box["y"] + 600, steps=4)
    page.mouse.up()
    wait_until_at_rest(page)
    across, down = canvas.evaluate(
        """(canvas) => {
            const copy = canvas.cloneNode().getContext("2d", { willReadFrequently: true });
            copy.drawImage(canvas, 0, 0);
            const { data, width, height } = copy.getImageData(0, 0, canvas.width, canvas.height);
            const [columns, rows] = [new Set(), new Set()];
            for (let at = 0; at < width * height; at++)
                if (data[4 * at + 3] > 128) columns.add(at % width), rows.add(Math.floor(at / width));
            return [columns.size / width, rows.size / height];
        }"""
    )
    assert across > 0.2
    assert down > 0.2
    page.keyboard.press("3")
    expect(canvas).to_have_attribute("data-drawn", re.compile("2d$"))


def test_in_three_dimensions_an_op_is_in_its_slice_and_zooming_enlarges_it(show) -> None:
    page = show("attention", "&program=2,1,0")
    page.keyboard.press("j")
    page.keyboard.press("3")
    canvas = page.locator("canvas[data-tensor=k]")
    expect(canvas).to_have_attribute("data-drawn", re.compile("3d$"))
    before = highlighted(page, "k", "--load")
    assert before is not None
    box = canvas.bounding_box()
    assert box is not None
    x, y = (before[0] + before[2]) / 2 * box["width"], (before[1] + before[3]) / 2 * box["height"]
    canvas.hover(position={"x": x, "y": y})
    # The second head is the second sheet, which is visible through the first.
    expect(page.locator("#tip")).to_have_text(re.compile(r"^k\[1, \d+, \d+\]: accessed by this op"))
    page.mouse.wheel(0, -100)
    page.mouse.wheel(0, -100)
    after = highlighted(page, "k", "--load")
    assert after is not None
    assert after[2] - after[0] > 1.2 * (before[2] - before[0])
    canvas.click(position={"x": x, "y": y})
    expect(page).to_have_url(re.compile("element=k:"))
    page.get_by_role("button", name="Fit").click()
    assert highlighted(page, "k", "--load") == pytest.approx(before, abs=0.02)


def test_slices_of_a_tensor_in_three_dimensions_do_not_overlap(show) -> None:
    page = show("attention", "&program=0,1,0")
    choose_op(page, 0)
    page.keyboard.press("3")
    expect(page.locator("canvas[data-tensor=q]")).to_have_attribute("data-drawn", re.compile("3d$"))
    box = highlighted(page, "q", "--load")
    # Only the first rows of the second sheet are marked, not the end of the first sheet.
    assert box is not None
    assert box[3] - box[1] < 0.3


def test_a_dot_shows_its_tiles_in_all_three_tensors_and_how_far_along_k_it_is(show) -> None:
    page = show("matmul", "&program=1,2,0")
    choose_op(page, 5)
    expect(page.locator("#detail")).to_contain_text("k: step 2 of 3")
    assert highlighted(page, "a", "--load") == tile((16, 32), (16, 32), M, K)
    assert highlighted(page, "b", "--load") == tile((16, 32), (32, 48), K, N)
    assert highlighted(page, "c", "--store") == tile((16, 32), (32, 48), M, N)
    for label in ("tile A", "tile B", "tile C"):
        expect(page.locator("#legend")).to_contain_text(label)


def test_tensors_are_called_by_their_arguments_names(show) -> None:
    page = show("attention")
    names = page.locator("#tensors figcaption b").all_inner_texts()
    assert sorted(names) == ["k", "out", "q", "v"]
