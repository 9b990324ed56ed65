"""The kernel view on real traces: the source, the ops and their steps, the map of programs."""

import re

from playwright.sync_api import Route, expect

from tests.page.helpers.pages import TIMES, choose_op, colours, highlighted, line_of, wait_until_drawn
from tests.page.helpers.traces import address, show, traces

__all__ = ["address", "show", "traces"]  # fixtures


def test_lines_show_the_heat_of_all_programs(show, traces) -> None:
    page = show("matmul")
    line = line_of(traces["matmul"], "left = tl.load")
    strip = page.locator(f"#source [data-line='{line}'] .heat")
    expect(strip).to_have_attribute(
        "title", "30.0 KiB moved by all programs, 17 % of its elements masked off, no issues"
    )
    page = show("unmasked")
    expect(page.locator("#source .heat.has-issues")).to_have_count(1)
    expect(page.locator("#source .heat.has-issues")).to_have_attribute("title", re.compile("3 issues"))


def test_a_clicked_line_shows_its_ops(show) -> None:
    page = show("attention")
    page.locator("#source button", has_text="tl.dot").first.click()
    expect(page.locator("#ops [aria-current]")).to_contain_text("Dot")
    lines = page.locator("#ops .same-line span:nth-child(3)").all_inner_texts()
    assert len(set(lines)) == 1


def test_an_op_in_a_function_that_was_called_shows_that_functions_source(show) -> None:
    page = show("called")
    called = page.locator("#called")
    expect(called).to_contain_text("in load_row, kernels.py")
    expect(called.locator("[aria-current] code")).to_contain_text("return tl.load(")
    page.locator("#ops button", has_text="Store").click()
    expect(called).to_be_hidden()


def test_a_loop_is_one_group_and_its_iterations_are_chosen(show) -> None:
    page = show("attention")
    expect(page.locator("#position")).to_have_text("1 of 50")
    expect(page.locator("#ops .loop")).to_have_count(1)
    assert page.locator("#ops [data-op]").count() == 8
    expect(page.locator(".loop-head .number")).to_have_text("1 of 8")
    page.get_by_role("button", name="Next iteration").last.click()
    expect(page.locator(".loop-head .number")).to_have_text("2 of 8")
    expect(page.locator("#detail")).to_contain_text("iteration 2 of 8")
    expect(page.locator("#position")).to_have_text("8 of 50")


def test_steps_go_forward_and_back_by_op_line_and_iteration(show) -> None:
    page, position = show("matmul"), None
    position = page.locator("#position")
    for button, text in [
        ("Next op", "2 of 10"),
        ("Next line", "3 of 10"),
        ("Previous op", "2 of 10"),
        ("Next iteration", "4 of 10"),
        ("Next iteration", "7 of 10"),
        ("Previous iteration", "4 of 10"),
    ]:
        page.locator(".steps").get_by_role("button", name=button).click()
        expect(position).to_have_text(text)
    for key, text in [("i", "7 of 10"), ("I", "4 of 10"), ("l", "5 of 10")]:
        page.keyboard.press(key)
        expect(position).to_have_text(text)
    choose_op(page, 9)
    expect(page.locator("#next")).to_be_disabled()
    assert highlighted(page, "c", "--store") is not None


def test_play_goes_on_by_itself_until_it_is_stopped(show) -> None:
    page = show("attention")
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")
    # Playing continues meanwhile: the third op may already have passed.
    expect(page.locator("#position")).to_have_text(re.compile(r"^([3-9]|\d\d) of 50$"))
    page.locator("#play").click()
    expect(page.locator("#play")).to_have_attribute("aria-label", "Play")


def test_the_map_is_coloured_by_a_metric_and_chosen_by_keys_and_sliders(show, traces) -> None:
    page, id = show("matmul"), traces["matmul"].id
    map = page.locator("#map")
    expect(map).to_have_attribute("data-drawn", f"{id} bytes 0,0,0")
    expect(page.locator("#map-high")).to_have_text("7.0 KiB")
    assert colours(page, "#map") >= 4
    page.select_option("#metric", "ops")
    expect(page.locator("#map-high")).to_have_text("10")
    map.focus()
    for key, program in [
        ("ArrowRight", "1,0,0"),
        ("ArrowDown", "1,1,0"),
        ("ArrowLeft", "0,1,0"),
        ("ArrowUp", "0,0,0"),
    ]:
        page.keyboard.press(key)
        expect(map).to_have_attribute("data-drawn", f"{id} ops {program}")
    page.keyboard.press("ArrowUp")  # beyond the grid
    page.locator("#slide-y").fill("3")
    expect(map).to_have_attribute("data-drawn", f"{id} ops 0,3,0")
    assert "program=0,3,0" in page.url


def test_a_slider_starts_at_a_program_that_was_chosen_and_has_not_arrived(show, traces) -> None:
    page, id = show("matmul"), traces["matmul"].id
    held: list[Route] = []
    page.route("**/api/data*", lambda route: held.append(route))
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#slide-y").fill("3")
    page.wait_for_timeout(100)
    page.unroute("**/api/data*")
    for route in held:
        route.continue_()
    expect(page.locator("#map")).to_have_attribute("data-drawn", f"{id} bytes 1,3,0")


def test_a_million_programs_and_a_vector_of_millions_are_drawn(show, traces) -> None:
    page = show("million", "&program=999999,0,0")
    expect(page.locator("#grid")).to_have_text(f"1000000 {TIMES} 1 {TIMES} 1 = 1,000,000")
    expect(page.locator("#map")).to_have_attribute("data-drawn", f"{traces['million'].id} bytes 999999,0,0")
    wait_until_drawn(page)
    for selector in ("#map", "canvas[data-tensor=x]"):
        box = page.locator(selector).bounding_box()
        assert box is not None
        assert box["width"] > 100, "a hairline"
        assert box["height"] > 60, "a hairline"
    left, top, right, bottom = highlighted(page, "x", "--load") or (0, 0, 0, 0)
    assert (left > 0, top > 0.9, right <= 1, bottom > 0.99) == (True, True, True, True)
    expect(page.locator("#detail")).to_contain_text("reads 11 elements of x, 5 elements masked off")
