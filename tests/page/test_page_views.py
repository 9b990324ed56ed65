"""Every view of the page on real traces: what is on the screen, in the address, and where a click leads."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from playwright.sync_api import Page, Route, expect

import triton_viz
from benchmarks.kernels import WORKLOADS
from examples import matmul
from tests.page.helpers.browser import Visit
from tests.page.helpers.pages import (
    TIMES,
    browser,
    choose_op,
    colours,
    highlighted,
    line_of,
    open_view,
    seen,
    served,
    tile,
    wait_until_at_rest,
    wait_until_drawn,
)
from tests.triton_viz.helpers import kernels
from triton_viz.core.data import Launch

__all__ = ["browser", "seen"]  # fixtures
M, N, K = 40, 56, 48


@triton.jit
def collide(out):
    tl.store(out, tl.program_id(0))


@pytest.fixture(scope="module")
def traces() -> Iterator[dict[str, Launch]]:
    """Launches of all kinds, traced once; by name."""
    triton_viz.clear()
    torch.manual_seed(0)
    traced: dict[str, Launch] = {}

    def trace(
        name: str, clients: list[str], kernel: object, grid: tuple[int, ...], *args: object, **named: object
    ):
        triton_viz.trace(clients)(kernel)[grid](*args, **named)
        traced[name] = triton_viz.launches[-1]

    kept, triton_viz.config.values = triton_viz.config.values, True
    for name in ("softmax", "attention"):
        work = WORKLOADS[name]()
        trace(name, ["tracer"], work.kernel, work.grid, **work.arguments)
    a, b, c = torch.randn(M, K), torch.randn(K, N), torch.zeros(M, N)
    trace(
        "matmul", ["tracer", "profiler", "sanitizer"], matmul.matmul.kernel, (3, 4), a, b, c, M, N, K, TILE=16
    )
    triton_viz.config.values = kept
    x = torch.ones(10)
    clients = ["tracer", "sanitizer"]
    trace("unmasked", clients, kernels.add_unmasked, (3,), x, x.clone(), torch.ones(10), 10, BLOCK=4)
    trace("race", ["tracer", "race_detector"], collide, (4,), torch.zeros(3))
    trace("masked", ["tracer"], kernels.add, (1,), *[torch.ones(64) for _ in range(3)], 20, BLOCK=32)
    trace("called", ["tracer"], kernels.row_norm, (2,), torch.ones(2, 8), torch.zeros(2), 8, BLOCK=8)
    n = 16_000_000 - 5
    many = [torch.ones(n), torch.ones(n), torch.zeros(n)]
    trace("million", ["tracer"], kernels.add, (1_000_000,), *many, n, BLOCK=16)
    yield traced
    triton_viz.clear()


@pytest.fixture(scope="module")
def address(traces: dict[str, Launch]) -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture
def show(address: str, seen: Visit, traces: dict[str, Launch]):
    """Opens a trace by its name, and gives the page."""

    def show(name: str, more: str = "") -> Page:
        open_view(seen.page, f"{address}#launch={traces[name].id}{more}")
        return seen.page

    return show


def test_lines_wear_the_heat_of_all_programs(show, traces) -> None:
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


def test_time_goes_forth_and_back_by_op_line_and_iteration(show) -> None:
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
    # It does not wait for who looks: the third op may be over by then.
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


def test_a_slider_goes_on_from_a_program_that_is_still_on_its_way(show, traces) -> None:
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
    expect(page.get_by_role("tooltip")).to_contain_text(f"touched 1{TIMES} by all programs")


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
    card.get_by_role("button", name="Let go").click()
    expect(card).to_be_empty()


def test_an_element_that_is_let_go_while_a_program_comes_does_not_come_back(show) -> None:
    page = show("matmul", f"&element=a:{3 * K + 5}")
    card = page.locator("#element")
    expect(card).to_contain_text("a[3, 5]")
    held: list[Route] = []
    page.route("**/api/data?*", lambda route: held.append(route))
    with page.expect_request("**/api/data?*"):
        card.get_by_role("button", name="Load at line").first.click()
    card.get_by_role("button", name="Let go").click()
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


def test_in_three_dimensions_an_op_is_found_in_its_slice_and_approached(show) -> None:
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
    # The second head, which is the second sheet, seen through the first.
    expect(page.locator("#tip")).to_have_text(re.compile(r"^k\[1, \d+, \d+\]: touched by this op"))
    page.mouse.wheel(0, -100)
    page.mouse.wheel(0, -100)
    after = highlighted(page, "k", "--load")
    assert after is not None
    assert after[2] - after[0] > 1.2 * (before[2] - before[0])
    canvas.click(position={"x": x, "y": y})
    expect(page).to_have_url(re.compile("element=k:"))
    page.get_by_role("button", name="Fit").click()
    assert highlighted(page, "k", "--load") == pytest.approx(before, abs=0.02)


def test_slices_of_a_tensor_in_space_do_not_reach_into_each_other(show) -> None:
    page = show("attention", "&program=0,1,0")
    choose_op(page, 0)
    page.keyboard.press("3")
    expect(page.locator("canvas[data-tensor=q]")).to_have_attribute("data-drawn", re.compile("3d$"))
    box = highlighted(page, "q", "--load")
    # The first rows of the second sheet: what is marked is one small area, not also the end of the first.
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


def test_the_profile_has_facts_a_roofline_tables_and_leads_to_the_line(show, traces) -> None:
    page = show("matmul")
    page.get_by_role("tab", name="Profile").click()
    facts = page.locator("#profile-summary")
    expect(facts).to_contain_text("61.5 KiB")
    expect(facts).to_contain_text("bound by")
    expect(page.locator(".roofline .dot")).to_have_count(1)
    expect(page.locator(".roofline .roof")).to_have_count(1)
    expect(page.locator("#heat")).to_have_attribute("data-drawn", re.compile("bytes 0,0,0"))
    assert colours(page, "#heat") >= 4
    assert "view=profile" in page.url
    line = line_of(traces["matmul"], "tl.store")
    page.locator("tr.link", has_text="store").click()
    expect(page.locator("#view-kernel")).to_be_visible()
    expect(page.locator("#source [aria-current]")).to_have_attribute("data-line", line)
    page.go_back()
    expect(page.locator("#view-profile")).to_be_visible()
    expect(page.locator("#profile-parts")).to_have_attribute("data-launch", str(traces["matmul"].id))
    expect(page.locator("#heat")).to_have_attribute("data-drawn", re.compile("bytes"))
    box = page.locator("#heat").bounding_box()
    assert box is not None
    page.locator("#heat").click(position={"x": box["width"] - 8, "y": box["height"] - 8})
    expect(page.locator("#program-x")).to_have_value("2")
    expect(page.locator("#program-y")).to_have_value("3")


def test_without_a_profiler_the_profile_says_how_to_get_one(show) -> None:
    page = show("softmax", "&view=profile")
    expect(page.locator("#profile-summary")).to_contain_text('["tracer", "profiler"]')
    expect(page.locator("#traffic tr")).to_have_count(2)


def test_an_issue_leads_to_its_program_its_line_and_its_op(show, traces) -> None:
    page = show("unmasked")
    expect(page.locator("#issue-count")).to_have_text("3")
    page.get_by_role("tab", name="Issues").click()
    issue = page.locator(".issue").nth(2)
    expect(issue).to_contain_text("out of bounds")
    expect(issue).to_contain_text("out[10]")
    expect(page.locator("#issue-list table tbody tr")).to_have_count(3)
    issue.click()
    expect(page.locator("#program-x")).to_have_value("2")
    expect(page.locator("#ops [aria-current]")).to_contain_text("Store")
    assert f"op={traces['unmasked'].id}-2-2.0.0" in page.url


def test_a_race_leads_to_both_programs_and_the_element(show) -> None:
    page = show("race", "&view=issues")
    issue = page.locator(".issue")
    expect(issue).to_contain_text("race")
    issue.click()
    expect(page.locator("#element")).to_contain_text("out[0]")
    assert "element=out:0" in page.url
    assert highlighted(page, "out", "--issue") is not None
    page.get_by_role("tab", name="Issues").click()
    page.locator(".pair .by button").click()
    expect(page.locator("#view-kernel")).to_be_visible()
    assert "program=0,0,0" not in page.url


def test_nobody_looked_and_nothing_was_found_are_told_apart(show) -> None:
    page = show("softmax", "&view=issues")
    expect(page.locator("#issue-list")).to_contain_text("No client looked for issues")
    page = show("matmul", "&view=issues")
    expect(page.locator("#issue-list")).to_contain_text("No issue was found")
    expect(page.locator("#issue-list table tbody tr")).to_have_count(3)


def test_tensors_are_called_by_their_arguments_names(show) -> None:
    page = show("attention")
    names = page.locator("#tensors figcaption b").all_inner_texts()
    assert sorted(names) == ["k", "out", "q", "v"]


def test_controls_leave_most_of_the_screen_to_the_tensors(show) -> None:
    page = show("matmul")
    box = page.locator("#tensors").bounding_box()
    assert box is not None
    assert box["height"] > 0.5 * 800
    tall = sum(page.locator(s).bounding_box()["height"] for s in (".steps", ".selected", ".toolbar"))
    assert tall < 0.3 * 800


def test_light_and_dark_can_be_chosen_and_stay_chosen(show) -> None:
    page = show("matmul")
    back = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(back)
    page.keyboard.press("t")
    page.keyboard.press("t")
    assert page.evaluate(back) != light
    expect(page.locator("#scheme")).to_have_attribute("title", "Colours: dark")
    page.reload()
    expect(page.locator("#scheme")).to_have_attribute("title", "Colours: dark")


@pytest.mark.parametrize("name", ["profile", "issues", "cluster"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (2560, 1440)])
def test_no_view_is_cut_off(show, seen: Visit, name: str, width: int, height: int) -> None:
    seen.page.set_viewport_size({"width": width, "height": height})
    page = show("matmul")
    page.get_by_role("tab", name=name).click()
    expect(page.locator(f"#view-{name} .panel, #view-{name} .empty").first).to_be_visible()
    wait_until_at_rest(page)
    wide = page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll("main:not([hidden]) *")]
            .filter((element) => element instanceof HTMLElement)
            .filter((element) => element.scrollWidth > element.clientWidth + 1 && element.clientWidth)
            .map((element) => element.id || element.className || element.outerHTML)"""
    )
    assert wide == []


def test_without_a_tape_the_cluster_says_how_to_get_one(show) -> None:
    page = show("matmul")
    page.get_by_role("tab", name="Cluster").click()
    expect(page.locator("#cluster")).to_contain_text("GT_INSTRUCTION_LOG=gt.log")
    page.go_back()
    expect(page.locator("#view-kernel")).to_be_visible()
    assert Path(page.url.partition("#")[0]).name
