"""Take the pictures of the page for the documentation: every view, light and dark.

    python tools/screenshots.py              # writes docs/images/page-VIEW-SCHEME.png
    python tools/screenshots.py --to FOLDER  # somewhere else

Traces real kernels and a real training run, serves them, and photographs the page in Chromium.
"""

import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, Python looks only into tools/

import numpy as np  # noqa: E402
import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from PIL import Image  # noqa: E402
from playwright.sync_api import Page  # noqa: E402

import triton_viz  # noqa: E402
from benchmarks.kernels import WORKLOADS  # noqa: E402
from examples import matmul  # noqa: E402
from tests.page.helpers.browser import chromium, find_chromium, visit  # noqa: E402
from tests.page.test_page_sharded import MODEL  # noqa: E402
from tests.triton_viz.helpers import kernels  # noqa: E402
from tests.triton_viz.nki_kernels import modern  # noqa: E402
from tests.triton_viz.test_nki_kernels import CASES  # noqa: E402
from triton_viz.visualizer.interface import PageServer  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SCHEMES = ("light", "dark")
SIZE = {"width": 1280, "height": 800}
Act = Callable[[Page], None]


@triton.jit
def soften(image, out, rows, columns, TILE: tl.constexpr, EDGE: tl.constexpr):
    """Each tile reads an edge of its neighbours', so that programs overlap."""
    size: tl.constexpr = TILE - 2 * EDGE
    i = tl.program_id(0) * size - EDGE + tl.arange(0, TILE)[:, None]
    j = tl.program_id(1) * size - EDGE + tl.arange(0, TILE)[None, :]
    inside = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
    block = tl.load(image + i * columns + j, inside, 0.0)
    around = tl.sum(block) / (TILE * TILE)
    own_i = tl.program_id(0) * size + tl.arange(0, TILE)[:, None]
    own_j = tl.program_id(1) * size + tl.arange(0, TILE)[None, :]
    own = (tl.arange(0, TILE)[:, None] < size) & (tl.arange(0, TILE)[None, :] < size)
    own &= (own_i < rows) & (own_j < columns)
    tl.store(out + own_i * columns + own_j, 0.5 * block + 0.5 * around, own)


def press(*keys: str) -> Act:
    """Press keys, one after the other."""

    def act(page: Page) -> None:
        for key in keys:
            page.keyboard.press(key)

    return act


def nothing(page: Page) -> None:
    """The view as it opens."""


def trace() -> dict[str, int]:
    """Launches of several kinds; their ids by name."""
    torch.manual_seed(0)
    triton_viz.config.values = True
    ids: dict[str, int] = {}
    work = WORKLOADS["attention"]()
    triton_viz.trace(["tracer", "profiler"])(work.kernel)[work.grid](**work.arguments)
    ids["attention"] = triton_viz.launches[-1].id
    m, n, k = 72, 88, 96
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
    product = triton_viz.trace(["tracer", "profiler", "sanitizer"])(matmul.matmul.kernel)
    product[(5, 6)](a, b, c, m, n, k, TILE=16)
    ids["matmul"] = triton_viz.launches[-1].id
    x, y, out = torch.randn(1000), torch.randn(1000), torch.zeros(1000)
    unmasked = triton_viz.trace(["tracer", "sanitizer", "race_detector"])(kernels.add_unmasked)
    unmasked[(16,)](x, y, out, 1000, BLOCK=64)
    ids["unmasked"] = triton_viz.launches[-1].id
    image = torch.randn(60, 84)
    traced = triton_viz.trace(["tracer", "profiler"])(soften)
    traced[(5, 7)](image, torch.zeros(60, 84), 60, 84, TILE=16, EDGE=2)
    ids["soften"] = triton_viz.launches[-1].id
    case = next(case for case in CASES if case.kernel == "attention")
    triton_viz.trace(["tracer", "profiler"], backend="nki")(modern.attention)(*case.arguments)
    ids["chip"] = triton_viz.launches[-1].id
    return ids


def record_tape(folder: Path) -> Path:
    """The instruction log of a model that is trained on two workers, its tensors split over both."""
    log = folder / "gt.log"
    environment = {**os.environ, "GT_INSTRUCTION_LOG": str(log), "PYTHONPATH": str(ROOT)}
    program = MODEL.format(start='gt.init(workers=2, engine="numpy", shard_threshold=64)', steps=8)
    subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment
    )
    return log


def views(ids: dict[str, int]) -> dict[str, tuple[str, Act]]:
    """Each picture's address, and what to do there."""
    matmul, attention, unmasked, chip = (ids[name] for name in ("matmul", "attention", "unmasked", "chip"))
    at = f"#launch={matmul}&program=2,3,0"

    def late(page: Page) -> None:
        box = page.locator("#timeline").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] - 30, box["y"] + 110)
        for _ in range(4):
            page.mouse.wheel(0, -100)
        page.wait_for_timeout(200)
        for part in range(30, 90):
            page.mouse.click(box["x"] + box["width"] * part / 100, box["y"] + 110)
            if "took about" in page.locator("#instruction").inner_text():
                break

    return {
        "kernel": (at, press("i", "j", "j")),
        "values": (f"{at}&element=a:3400", press("v")),
        "coverage": (f"#launch={ids['soften']}&program=2,3,0", press("a")),
        "solid": (f"#launch={attention}&program=2,1,0", press("j", "3")),
        "profile": (f"#view=profile&launch={matmul}", nothing),
        "issues": (f"#view=issues&launch={unmasked}", nothing),
        "chip": (f"#launch={chip}", press(*["j"] * 14)),
        "engines": (f"#view=profile&launch={chip}", nothing),
        "cluster": ("#view=cluster", late),
        "help": (at, press("?")),
    }


def main() -> None:
    """Write every picture."""
    parser = argparse.ArgumentParser(description="Take pictures of the page.")
    parser.add_argument("--to", type=Path, default=IMAGES, metavar="FOLDER")
    folder: Path = parser.parse_args().to
    if not find_chromium():
        sys.exit("There is no Chromium here. Install it, or set CHROMIUM to a Chrome or Chromium program.")
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        log = record_tape(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        shown = views(trace())
        server = PageServer(0, tape_path=log)
        thread = threading.Thread(target=server.run)
        thread.start()
        stack.callback(thread.join, 10)
        stack.callback(server.stop)
        browser = stack.enter_context(chromium())
        for scheme in SCHEMES:
            for name, (route, act) in shown.items():
                with visit(browser, viewport=SIZE, color_scheme=scheme) as seen:
                    seen.page.goto(server.address + route)
                    seen.page.wait_for_timeout(1000)
                    act(seen.page)
                    seen.page.wait_for_timeout(1500)
                    seen.page.mouse.move(0, 0)
                    path = folder / f"page-{name}-{scheme}.png"
                    path.write_bytes(smaller(seen.page.screenshot()))
                    print(f"{path.name}: {path.stat().st_size // 1000} kB {' '.join(seen.errors)}")


def smaller(png: bytes) -> bytes:
    """A screenshot reduced to 256 colours, the most frequent ones unchanged: a third of the size."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    colours, which, counts = np.unique(
        np.asarray(image).reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    frequent = colours[np.argsort(-counts)[:32]]
    # MAXCOVERAGE keeps the colours of small areas, such as a legend's.
    others = image.quantize(224, method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = np.concatenate([frequent, np.reshape(others, (-1, 3))]).astype(np.int32)
    nearest = [np.argmin(np.square(palette - colour).sum(axis=1)) for colour in colours]
    reduced = Image.frombytes("P", image.size, np.array(nearest, np.uint8)[which].tobytes())
    reduced.putpalette(palette.astype(np.uint8).tobytes())
    out = io.BytesIO()
    reduced.save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main()
