"""The cluster's view of training that is sharded over workers, from a log and from a running server."""

import json
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.gt.helpers.servers import Cluster, Process, cluster
from tests.page.helpers.browser import Visit, visit
from tests.page.helpers.pages import has_colour, served, wait_until_at_rest
from tests.programs import ROOT, TIMEOUT, run_python

pytestmark = pytest.mark.usefixtures("no_launches")

MODEL = """
import gt, numpy as np
{start}
model = gt.nn.Sequential(gt.nn.Linear(8, 16), gt.nn.ReLU(), gt.nn.Linear(16, 2))
optimizer = gt.optim.SGD(model.parameters(), lr=0.1)
x, y = gt.tensor(np.ones((33, 8), "f4")), gt.tensor(np.ones((33, 2), "f4"))
for step in range({steps}):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    loss.item()
print(gt.debug.show(x))
"""
HOT = """\
{time:8.3f}s | #9001 | WORKER_RECV  | WORKER worker_0 | WorkerHotPathStart |       0B | sequence=5f0c2a success=True
{end:8.3f}s | #9002 | WORKER_RECV  | WORKER worker_0 | WorkerHotPathEnd   |       0B | sequence=5f0c2a complete=True
{end:8.3f}s | #9003 | WORKER_RECV  | WORKER worker_1 | WorkerHotPathStart |       0B | sequence=5f0c2a success=True
{last:8.3f}s | #9004 | WORKER_RECV  | WORKER worker_1 | WorkerHotPathEnd   |       0B | sequence=5f0c2a complete=False
"""  # noqa: E501 - as the log writes it


LONGEST = """(colour) => {
    const canvas = document.querySelector("#timeline");
    const context = canvas.cloneNode().getContext("2d", { willReadFrequently: true });
    document.body.style.outlineColor = `var(${colour})`;
    context.fillStyle = getComputedStyle(document.body).outlineColor;
    context.fillRect(0, 0, 1, 1);
    const [wanted] = new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer);
    context.clearRect(0, 0, 1, 1);
    context.drawImage(canvas, 0, 0);
    const { data, width } = context.getImageData(0, 0, canvas.width, canvas.height);
    const pixels = new Uint32Array(data.buffer);
    let best = [0, 0, 0];
    for (let at = 0, run = 0; at < pixels.length; at++) {
        run = pixels[at] === wanted ? run + 1 : 0;
        if (run > best[0]) best = [run, (at % width) - run / 2, Math.floor(at / width) + 3];
    }
    return best;
}"""
"""The longest run of a colour on the timeline: its length and its middle."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tape of a model that is trained with its tensors split over two worker processes."""
    path = tmp_path_factory.mktemp("tape") / "gt.log"
    program = MODEL.format(start='gt.init(workers=2, engine="numpy", shard_threshold=64)', steps=6)
    environment = {"GT_INSTRUCTION_LOG": str(path), "PYTHONPATH": str(ROOT)}
    shown = run_python("-c", program, cwd=path.parent, environment=environment).stdout
    assert "split along axis 0 over 2 workers" in shown
    return path


def open_cluster(page: Page, address: str) -> Locator:
    page.goto(f"{address}#view=cluster")
    canvas = page.locator("#timeline")
    expect(canvas).to_have_attribute("data-drawn", re.compile(r"\d+ "))
    return canvas


@pytest.fixture
def tape(log: Path, seen: Visit) -> Iterator[Page]:
    with served(seen, tape=log) as address:
        open_cluster(seen.page, address)
        yield seen.page


def test_every_process_has_a_lane(tape: Page):
    lanes = "c1, dispatcher, worker_0, worker_1"
    expect(tape.locator("#timeline")).to_have_attribute("aria-label", re.compile(f"lanes for {lanes};"))
    expect(tape.locator(".tape-name")).not_to_contain_text("could not be read")


def test_a_tensor_says_where_each_of_its_parts_is(tape: Page):
    row = tape.locator("#cluster-held tr", has_text="33x8").first
    expect(row).to_contain_text("sharded(0)")
    expect(row.locator(".badge")).to_have_text(["worker_0 [0:17, :]", "worker_1 [17:33, :]"])
    # Small tensors are on one worker.
    small = tape.locator("#cluster-held tr", has_text="replicated").first
    expect(small.locator(".badge").first).to_have_text(re.compile(r"^worker_\d$"))


def test_what_goes_between_workers_is_counted_and_drawn(tape: Page, log: Path):
    said = log.read_text()
    numbers = {
        line.rpartition("number=")[2]
        for line in said.splitlines()
        if "WORKER_SEND" in line and "AllRed" in line
    }
    row = tape.locator("#cluster-collectives tr", has_text="AllReduce")
    expect(row.locator("td").nth(1)).to_have_text(f"{len(numbers)}×")
    expect(row).to_contain_text("partial(sum) → replicated")
    assert has_colour(tape, "#timeline", "--atomic")


def test_an_exchange_tells_of_itself(tape: Page):
    canvas = tape.locator("#timeline")
    run, x, y = tape.evaluate(LONGEST, "--atomic")
    for _ in range(20):
        if run > 12:
            break
        canvas.hover(position={"x": x, "y": y})
        tape.mouse.wheel(0, -100)
        run, x, y = tape.evaluate(LONGEST, "--atomic")
    canvas.click(position={"x": x, "y": y})
    expect(tape.locator("#instruction pre")).to_contain_text("from=")
    expect(tape.locator("#instruction")).to_contain_text("the dispatcher")


def test_hot_paths_are_bands_behind_what_was_run(log: Path, seen: Visit, tmp_path: Path):
    lines = log.read_text().splitlines(keepends=True)
    last = float(lines[-1].split("s |")[0])
    marked = tmp_path / "hot.log"
    marked.write_text("".join(lines) + HOT.format(time=last - 0.05, end=last - 0.02, last=last))
    with served(seen, tape=marked) as address:
        open_cluster(seen.page, address)
        assert has_colour(seen.page, "#timeline", "--hot")
        assert has_colour(seen.page, "#timeline", "--issue")  # an incomplete execution
        hot = seen.page.locator("#cluster-hot")
        expect(hot).to_contain_text("5f0c2a")
        expect(hot.locator("tr", has_text="5f0c2a").locator("td")).to_have_text(
            ["5f0c2a", "worker_0, worker_1", "2×", "1×", re.compile("s$")]
        )


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """A server that shards tensors over two workers."""
    found = Cluster()
    try:
        found.start_server("--shard-threshold", "64")
        found.start_worker()
        found.start_worker()
        yield found
    finally:
        found.stop()


def train(on: Cluster, steps: int = 3) -> None:
    program = MODEL.format(start=f"gt.connect({on.address!r})", steps=steps)
    run_python("-c", program, environment={"PYTHONPATH": str(ROOT)})


def start_page(on: Cluster) -> tuple[Process, str]:
    command = ("-m", "gt.timeline", "-p", str(on.port), "--page-port", "0", "--no-browser")
    process = on.run(*command)
    said = process.says("live at ")
    address = re.search(r"http://\S+/", said)
    assert address is not None
    return process, address[0]


def get(url: str, **headers: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_running_server_is_shown_as_it_runs(running: Cluster, seen: Visit):
    train(running)
    process, address = start_page(running)
    page = seen.page
    canvas = open_cluster(page, address)
    expect(page.locator(".tape-name")).to_contain_text(f"GT server at {running.address}")
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "true")
    shares = page.locator("#cluster-shares tbody tr")
    before = shares.count()
    assert before >= 1
    # The page shows a new client without reloading.
    train(running)
    expect(shares).to_have_count(before + 1)
    expect(canvas).to_have_attribute("aria-label", re.compile(r"worker_0, worker_1;"))
    expect(page.locator("#cluster-collectives")).to_contain_text("AllReduce")
    # Each client has its share; clients that only observe are not listed.
    parts = [float(text.split()[0]) for text in shares.locator("td:last-child").all_inner_texts()]
    assert sum(parts) == pytest.approx(100, abs=2)
    page.get_by_role("button", name="Follow").click()
    wait_until_at_rest(page)
    assert process.interrupt() == 0


def test_the_live_page_answers_only_what_it_should(running: Cluster):
    process, address = start_page(running)
    for path in ("../pyproject.toml", "assets/../../errors.py", "api/data", "api/op_code?uuid=1", "..%2fx"):
        status, problem = get(address + path)
        assert (status, "There is nothing at" in problem["error"]) == (404, True)
    status, problem = get(f"{address}api/tape?start=-1")
    assert (status, problem["error"]) == (400, "start must be an integer, not '-1'.")
    status, problem = get(address, Host="evil.example:80")
    assert (status, "only" in problem["error"]) == (403, True)
    assert get(f"{address}api/tape?start={10**12}")[0] == 200
    process.popen.send_signal(signal.SIGINT)
    assert process.ends() == 0


def test_a_server_that_is_not_there_is_said():
    failed = run_python("-m", "gt.timeline", "-p", "1", "--no-browser", fails=True)
    assert "gt.timeline: " in failed.stderr
    assert "127.0.0.1:1" in failed.stderr


def test_a_server_that_ends_leaves_what_was_seen(context: Any):
    with cluster(workers=1) as ending, visit(context) as seen:
        train(ending, steps=1)
        _, address = start_page(ending)
        open_cluster(seen.page, address)
        assert ending.server is not None
        ending.server.kill()
        expect(seen.page.locator("#instruction")).to_contain_text("does not answer any more")
        expect(seen.page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")
        expect(seen.page.locator("#cluster-shares")).to_contain_text("c1")
        # Opened again, the view is empty and shows the next step.
        seen.page.reload()
        expect(seen.page.locator("#message-title")).to_have_text("The cluster cannot be shown")
        expect(seen.page.locator("#message-text")).to_contain_text("does not answer any more")
