"""The page: what it costs to look at a launch, as its grid grows."""

import contextlib
import threading
from collections.abc import Callable

from benchmarks.harness import Benchmark, Job, afterwards, benchmark, cost_at_most

FEW = 1_000
TIMES = 20
"""One answer takes less than a millisecond."""


def _trace(programs: int) -> int:
    """A traced vector add of so many programs; the result is the launch's id."""
    import torch

    import triton_viz
    from benchmarks.kernels import vector_add

    x, y, out = (torch.ones(programs * 16 - 5) for _ in range(3))
    triton_viz.trace("tracer")(vector_add)[(programs,)](x, y, out, len(x), BLOCK=16)
    afterwards(triton_viz.clear)
    return triton_viz.launches[-1].id


def _first_answer(programs: int) -> Job:
    """Request one program after the other, as clicks on the map do."""
    from triton_viz.visualizer.interface import create_app

    launch = _trace(programs)
    client = create_app().test_client()
    chosen = [programs * number // TIMES for number in range(TIMES)]

    def run() -> None:
        for number in chosen:
            answer = client.get(f"/api/data?launch={launch}&program={number},0,0")
            assert len(answer.data) < 10_000

    return run


def _tiles(programs: int) -> Job:
    """Ask for the whole of a tensor as 500 by 500 cells, for one program after the other."""
    from triton_viz.visualizer.interface import create_app

    launch = _trace(programs)
    client = create_app().test_client()
    columns = max(512, 2 ** ((programs * 16).bit_length() // 2))
    bins = -(-columns // 500)
    window = f"columns={columns}&across=500&down=500&bin_x={bins}&bin_y={bins}"

    def run() -> None:
        for number in range(TIMES):
            chosen = (
                f"program={programs * number // TIMES},0,0&op={launch}-0-{programs * number // TIMES}.0.0"
            )
            assert client.get(f"/api/tensor?launch={launch}&tensor=x&{window}&{chosen}").status_code == 200

    return run


def _drawn(sizes: tuple[int, ...]) -> list[Job]:
    """Step to the next op and back in a real browser, until all tensors are drawn; a job for each size."""
    from tests.page.helpers.browser import chromium, find_chromium, visit
    from triton_viz.visualizer.interface import PageServer

    if not find_chromium():
        raise RuntimeError("there is no Chromium here: install it, or set CHROMIUM to one")
    traced = {programs: _trace(programs) for programs in sizes}
    stack = contextlib.ExitStack()
    afterwards(stack.close)
    server = PageServer(0)
    thread = threading.Thread(target=server.run)
    thread.start()
    stack.callback(thread.join, 10)
    stack.callback(server.stop)
    browser = stack.enter_context(chromium())

    def job(programs: int) -> Job:
        launch = traced[programs]
        page = stack.enter_context(visit(browser, viewport={"width": 1280, "height": 800})).page
        page.goto(f"{server.address}#launch={launch}&program={programs // 2},0,0")
        page.wait_for_selector("canvas[data-drawn]")

        def step(key: str, number: int) -> None:
            page.keyboard.press(key)
            page.wait_for_function(
                """(op) => [...document.querySelectorAll("canvas[data-tensor]")]
                    .every((canvas) => (canvas.dataset.drawn ?? "").includes(op))""",
                arg=f" {launch}-{number}-",
            )

        def run() -> None:
            for _ in range(3):
                step("j", 1)
                step("k", 0)

        return run

    return [job(programs) for programs in sizes]


def _flat(name: str, what: str, prepare: Callable[[int], Job], programs: int) -> Benchmark:
    def jobs() -> tuple[Job, Job]:
        return prepare(programs), prepare(FEW)

    jobs.__name__ = name
    return benchmark(f"{what}, {programs:,} programs", f"{FEW:,} programs", cost_at_most(2))(jobs)


tv_payload_100k = _flat("tv_payload_100k", "the page's first answer", _first_answer, 100_000)
tv_payload = _flat("tv_payload", "the page's first answer", _first_answer, 1_000_000)
tv_payload_tile_100k = _flat("tv_payload_tile_100k", "a tensor's tile", _tiles, 100_000)
tv_payload_tile = _flat("tv_payload_tile", "a tensor's tile", _tiles, 1_000_000)


@benchmark("from a key to three tensors drawn, 1,000,000 programs", f"{FEW:,} programs", cost_at_most(2))
def tv_payload_drawn() -> tuple[Job, Job]:
    many, few = _drawn((1_000_000, FEW))
    return many, few
