"""NKI kernels in the page: tensors in HBM, buffers in SBUF and PSUM over time, instructions, engines."""

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import triton_viz
from tests.page.helpers.browser import Visit
from tests.page.helpers.pages import highlighted, line_of, marked_line, open_view, served, wait_until_drawn
from tests.triton_viz.nki_kernels import broken, classic, modern
from tests.triton_viz.test_nki_kernels import CASES, Case
from triton_viz.core.data import Access, Dot, Launch, Reduce, SbufEvent, Transfer
from triton_viz.visualizer import interface

pytestmark = pytest.mark.usefixtures("no_launches")
SPELLINGS = pytest.mark.parametrize("spelling", [classic, modern], ids=["classic", "modern"])
ALL = {case.kernel: case for case in CASES}


def run(case: Case, spelling: Any, clients: Any = "tracer") -> Launch:
    kernel = triton_viz.trace(clients, backend="nki")(getattr(spelling, case.kernel))
    kernel[case.grid](*case.arguments) if case.grid else kernel(*case.arguments)
    return triton_viz.launches[-1]


def events_of(launch: Launch) -> list[SbufEvent]:
    return [record for record in launch.at((0, 0, 0)) if isinstance(record, SbufEvent)]


def bar(page: Page, name: str) -> Any:
    return page.locator(f"#chip [data-buffer='{name}']")


def choose_type(page: Page, kind: str) -> None:
    page.locator("#ops .row", has=page.locator(".chip", has_text=re.compile(f"^{kind}$"))).first.click()


@SPELLINGS
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel)
def test_a_kernel_shows_in_the_page(case: Case, spelling: Any, seen: Visit):
    launch = run(case, spelling)
    events = events_of(launch)
    with served(seen) as address:
        page = seen.page
        open_view(page, address)
        expect(page).to_have_title(f"{case.kernel} · Triton-Viz")
        # The tensors in HBM, by their names.
        expect(page.locator("#hbm")).to_be_visible()
        wait_until_drawn(page)
        drawn = page.locator("canvas[data-tensor]").evaluate_all("all => all.map((c) => c.dataset.tensor)")
        assert drawn == [tensor.name for tensor in launch.tensors]
        # On the chip: every buffer, and the use of each memory under its capacity.
        expect(page.locator("#chip-note")).to_have_text(f"{len(events)} buffers")
        expect(page.locator("#chip .bar")).to_have_count(len(events))
        memories = sorted({event.memory for event in events}, reverse=True)
        expect(page.locator("#chip .memory-head b")).to_have_text(memories)
        for memory in memories:
            head = page.locator(f"#chip [data-memory={memory}]")
            capacity = {"SBUF": "192.0 KiB", "PSUM": "16.0 KiB"}[memory]
            expect(head).to_contain_text(capacity)
            assert head.locator(".in-use").evaluate("(path) => path.getBBox().height") > 0
            assert head.locator(".capacity").count() == 1
        # Every type of op has a row and a description.
        kinds = {type(record) for record in launch.at((0, 0, 0))} & {Dot, Reduce, Transfer}
        for kind in sorted(kinds, key=lambda kind: kind.__name__):
            choose_type(page, kind.__name__)
            expect(page.locator("#detail .chip")).to_have_text(kind.__name__)
            expect(page.locator("#detail")).to_contain_text(" engine")
        # The first load marks its elements, and the time on the chip is that of its instruction.
        choose_type(page, "Load")
        load = next(record for record in launch.at((0, 0, 0)) if isinstance(record, Access))
        assert highlighted(page, load.tensor, "--load") is not None
        expect(page.locator("#chip-now")).to_contain_text(re.compile(r"instruction \d+ of \d+"))


def test_the_time_on_the_chip_follows_the_op(seen: Visit):
    run(ALL["matmul_basic"], modern)
    with served(seen) as address:
        page = seen.page
        open_view(page, address)
        choose_type(page, "Dot")
        expect(page.locator("#detail")).to_contain_text("nc_matmul on the tensor engine")
        expect(page.locator("#chip-now")).to_have_text("instruction 3 of 5")
        # Its tiles are marked in the tensors that they were loaded from and stored to, found by the buffers.
        for tensor, colour in (("lhsT", "--load"), ("rhs", "--load"), ("out", "--store")):
            assert highlighted(page, tensor, colour) is not None
        # A product reads two tiles of SBUF and writes one of PSUM.
        for name, state in (("left", "read"), ("right", "read"), ("product", "written")):
            expect(bar(page, name)).to_have_class(re.compile(rf"\b{state}\b"))
        expect(page.locator("#chip [data-memory=PSUM] .now")).to_have_text("now 2.0 KiB")
        choose_type(page, "Transfer")
        expect(page.locator("#detail")).to_contain_text("from PSUM to SBUF")
        expect(bar(page, "product")).to_have_class(re.compile(r"\bread\b"))
        expect(bar(page, "left")).not_to_have_class(re.compile(r"\blive\b"))


def test_a_buffer_tells_of_itself_and_leads_to_its_line(seen: Visit):
    launch = run(ALL["attention"], modern)
    line = line_of(launch, "scores = nl.ndarray")
    with served(seen) as address:
        page = seen.page
        open_view(page, address)
        bar(page, "scores").first.hover()
        tip = page.locator("#tip")
        expect(tip).to_contain_text("scores 128 × 256 float32 in SBUF")
        expect(tip).to_contain_text("1.0 KiB in each of 128 partitions")
        expect(tip).to_contain_text(f"allocated at modern.py, line {line}")
        bar(page, "scores").first.click()
        # The line of its allocation has no op: the line is marked, and the op of the first use is selected.
        expect(page.locator("#source .pointed")).to_have_attribute("data-line", line)
        expect(page.locator("#source .pointed")).to_be_in_viewport()
        assert marked_line(page).startswith("nisa.tensor_scalar(part, product")
        (start,) = {event.start for event in events_of(launch)[:10] if event.name == "scores"}
        expect(page.locator("#chip")).to_have_attribute("data-time", str(start))
        # From the keyboard, a row's name selects its buffers in turn.
        name = page.get_by_role("button", name=f"scores line {line}")
        name.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        expect(page.locator("#chip")).not_to_have_attribute("data-time", str(start))


@SPELLINGS
def test_a_products_tiles_are_those_that_its_buffers_hold(spelling: Any):
    launch = run(ALL["attention"], spelling)
    ops = interface.create_app().test_client().get("/api/data").get_json()["visualization_data"]
    tensor = {op["uuid"]: op.get("tensor", "") for op in ops} | {"": ""}
    named = [
        tuple(tensor[op[side]] for side in ("left_op", "right_op", "result_op"))
        for op in ops
        if "left_op" in op
    ]
    # First the product of queries and keys, then that of its result and values. If one buffer holds several
    # parts of the values, the page does not claim which part is read.
    assert named[0][:2] == ("q", "k")
    assert {one[:2] for one in named[1:]} == {("q", "k"), ("", "v" if spelling is modern else "")}
    assert {one[2] for one in named} == {"out"}
    assert len(named) == sum(isinstance(record, Dot) for record in launch.at((0, 0, 0)))


def test_programs_of_a_grid_have_their_own_buffers(seen: Visit):
    launch = run(ALL["tensor_add"], classic)
    last = [event for event in launch.at((2, 1, 0)) if isinstance(event, SbufEvent)]
    with served(seen) as address:
        page = seen.page
        open_view(page, f"{address}#program=2,1,0")
        expect(page.locator("#chip .bar")).to_have_count(len(last))
        timeline = interface.create_app().test_client().get("/api/sbuf?program=2,1,0").get_json()
        (memory,) = timeline["memories"]
        expect(page.locator("#chip .memory-head .peak")).to_contain_text(f"{memory['peak'] / 1024:.1f} KiB")


def test_what_is_over_capacity_is_drawn_above_the_line(seen: Visit):
    kernel = triton_viz.trace(["tracer", "sanitizer"], backend="nki")(broken.matmul_blocked)
    kernel(np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
    (launch,) = triton_viz.launches
    with served(seen) as address:
        page = seen.page
        open_view(page, address)
        expect(page.locator("#chip [data-memory=PSUM] .over")).to_contain_text("over capacity")
        use, line = (
            page.locator(f"#chip [data-memory=PSUM] {part}").bounding_box()
            for part in (".in-use", ".capacity")
        )
        assert use is not None
        assert line is not None
        assert use["y"] < line["y"]
        page.get_by_role("tab", name="Issues").click()
        issue = page.locator("#issue-list .issue")
        expect(issue).to_contain_text("over capacity")
        wrong = next(n for n, text in enumerate(launch.source.splitlines()) if text.endswith("# wrong"))
        expect(issue).to_contain_text(f"line {launch.first_line + wrong}")


def test_the_profile_says_what_engines_and_memories_did(seen: Visit):
    run(ALL["matmul_tiled"], modern, ["tracer", "profiler"])
    with served(seen) as address:
        page = seen.page
        open_view(page, address)
        page.get_by_role("tab", name="Profile").click()
        engines = page.locator(".panel", has=page.get_by_role("heading", name="Engines"))
        expect(engines.locator("tbody tr")).to_have_count(3)
        said = re.search(r"bound by (the \w+ engine): about (.+?) at best", engines.inner_text())
        assert said is not None
        summary = page.locator("#profile-summary")
        for one in said.groups():  # the engines give the larger lower bound here, and the cards agree
            expect(summary).to_contain_text(one)
        memories = page.locator(".panel", has=page.get_by_role("heading", name="Memories"))
        expect(memories.locator("tbody").first.locator("td:first-child")).to_have_text(
            ["HBM", "SBUF", "PSUM"]
        )
        expect(memories).to_contain_text("PSUM → SBUF")


def test_a_trace_file_of_a_kernel_shows_its_buffers(tmp_path: Any):
    run(ALL["softmax"], modern)
    path = tmp_path / "softmax.tvz"
    triton_viz.save(path)
    triton_viz.clear()
    triton_viz.load(path)
    found = interface.create_app().test_client().get("/api/sbuf").get_json()
    assert found["total"] == len(found["events"]) > 0
    assert {event["path"][0]["file"] for event in found["events"]} == {"modern.py"}


def test_a_kernel_without_buffers_has_no_such_panel(seen: Visit):
    from examples import vector_add

    vector_add.run()
    with served(seen) as address:
        open_view(seen.page, address)
        expect(seen.page.locator("#chip")).to_be_hidden()
        expect(seen.page.locator("#hbm")).to_be_hidden()
    found = interface.create_app().test_client().get("/api/sbuf").get_json()
    assert found == {"memories": [], "events": [], "total": 0, "instructions": 0}
