"""The profile, the issues and the layout of the page: contents, and targets of clicks."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.page.helpers.browser import Visit
from tests.page.helpers.pages import colours, highlighted, line_of, wait_until_at_rest
from tests.page.helpers.traces import address, show, traces

__all__ = ["address", "show", "traces"]  # fixtures


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


def test_a_launch_that_was_not_checked_differs_from_one_without_issues(show) -> None:
    page = show("softmax", "&view=issues")
    expect(page.locator("#issue-list")).to_contain_text("No client checked this launch")
    page = show("matmul", "&view=issues")
    expect(page.locator("#issue-list")).to_contain_text("No issue was found")
    expect(page.locator("#issue-list table tbody tr")).to_have_count(3)


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
