"""Take the pictures of the page for the documentation: every view, light and dark.

    python tools/screenshots.py              # writes docs/images/page-VIEW-SCHEME.png
    python tools/screenshots.py --to FOLDER  # somewhere else

Traces real kernels and a real training run, serves them, and photographs the page in Chromium.
"""

import argparse
import contextlib
import os
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, Python looks only into tools/

import torch  # noqa: E402
from playwright.sync_api import Page  # noqa: E402

import triton_viz  # noqa: E402
from benchmarks.kernels import WORKLOADS  # noqa: E402
from examples import matmul  # noqa: E402
from tests import kernels  # noqa: E402
from tests.browser import chromium, find_chromium, visit  # noqa: E402
from tests.test_timeline import TRAINING  # noqa: E402
from triton_viz.visualizer.interface import PageServer  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SCHEMES = ("light", "dark")
SIZE = {"width": 1280, "height": 800}
Act = Callable[[Page], None]


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
    return ids


def record_tape(folder: Path) -> Path:
    """The instruction log of a model that is trained on two workers."""
    log = folder / "gt.log"
    environment = {**os.environ, "GT_INSTRUCTION_LOG": str(log), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", TRAINING], check=True, cwd=folder, env=environment)
    return log


def views(ids: dict[str, int]) -> dict[str, tuple[str, Act]]:
    """Each picture's address, and what to do there."""
    matmul, attention, unmasked = (ids[name] for name in ("matmul", "attention", "unmasked"))
    at = f"#launch={matmul}&program=2,3,0"

    def late(page: Page) -> None:
        box = page.locator("#timeline").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] - 30, box["y"] + 110)
        for _ in range(4):
            page.mouse.wheel(0, -100)
        page.wait_for_timeout(200)
        page.mouse.click(box["x"] + box["width"] * 0.35, box["y"] + 110)

    return {
        "kernel": (at, press("i", "j", "j")),
        "values": (f"{at}&element=a:3400", press("v")),
        "coverage": (f"#launch={attention}&program=2,1,0", press("a")),
        "solid": (f"#launch={attention}&program=2,1,0", press("j", "3")),
        "profile": (f"#view=profile&launch={matmul}", nothing),
        "issues": (f"#view=issues&launch={unmasked}", nothing),
        "cluster": ("#view=cluster", late),
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
            for name, (place, act) in shown.items():
                with visit(browser, viewport=SIZE, color_scheme=scheme) as seen:
                    seen.page.goto(server.address + place)
                    seen.page.wait_for_timeout(500)
                    act(seen.page)
                    seen.page.wait_for_timeout(500)
                    seen.page.mouse.move(0, 0)
                    path = folder / f"page-{name}-{scheme}.png"
                    path.write_bytes(smaller(seen.page.screenshot()))
                    print(f"{path.name}: {path.stat().st_size // 1000} kB {' '.join(seen.errors)}")


def smaller(png: bytes) -> bytes:
    """A screenshot packed as tightly as zlib can: Chromium does not try."""
    chunks, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += 12 + length
    packed = zlib.compress(zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT")), 9)
    kept = [chunk for chunk in chunks if chunk[0] not in (b"IDAT", b"IEND")]
    kept += [(b"IDAT", packed), (b"IEND", b"")]
    return png[:8] + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in kept
    )


if __name__ == "__main__":
    main()
