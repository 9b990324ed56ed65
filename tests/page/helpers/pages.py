"""Helpers for the page's tests: serving it, opening it in a real browser, and reading pixels."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page.helpers.browser import Visit
from tests.programs import TIMEOUT
from triton_viz.core.data import Launch
from triton_viz.visualizer import interface

TIMES = "\N{MULTIPLICATION SIGN}"
expect.set_options(timeout=TIMEOUT * 1000)


@contextlib.contextmanager
def served(visit: Visit | None = None, port: int = 0, tape: Path | None = None) -> Iterator[str]:
    """Serves the page while inside; returns its address. Visits leave the page before the server ends."""
    server = interface.PageServer(port, tape_path=tape)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.address
        if visit is not None:
            # Otherwise its pending requests would fail.
            visit.page.goto("about:blank")
    finally:
        server.stop()
        thread.join(timeout=TIMEOUT)
        assert not thread.is_alive()


def open_view(page: Page, address: str) -> None:
    """Go to an address of a kernel, and wait until it is shown."""
    page.goto(address)
    expect(page.locator("#ops [aria-current]")).to_have_count(1)
    wait_until_at_rest(page)


def wait_until_at_rest(page: Page) -> None:
    """Wait until the page has received and drawn all answers."""
    # For several frames: one for the layout of new content, one for panels that react to their new sizes.
    # (Not with wait_for_function: it takes a promise for true.)
    page.evaluate(
        """async (patience) => {
            const until = performance.now() + patience;
            for (let calm = 0; calm < 3; ) {
                await new Promise(requestAnimationFrame);
                const waiting = Number(document.documentElement.dataset.waiting ?? 0);
                calm = waiting ? 0 : calm + 1;
                if (performance.now() > until) throw new Error(`the page still waits for ${waiting} answers`);
            }
        }""",
        TIMEOUT * 1000,
    )


def wait_until_drawn(page: Page, mode: str = "") -> None:
    """Wait until every tensor shows the op in the address (in this mode, if one is given)."""
    wait_until_at_rest(page)
    page.wait_for_function(
        """(mode) => {
            const op = new URLSearchParams(location.hash.slice(1)).get("op") ?? "";
            const canvases = [...document.querySelectorAll("canvas[data-tensor]")];
            return canvases.length && canvases.every((canvas) => {
                const [shown, drawn] = (canvas.dataset.drawn ?? "").split(" ");
                return drawn === op && (!mode || shown === mode);
            });
        }""",
        arg=mode,
    )


def marked_line(page: Page) -> str:
    """The text of the source line that is marked."""
    return page.locator("#source [aria-current] code").inner_text().strip()


def line_of(launch: Launch, text: str) -> str:
    """The number of the source line that begins with this text."""
    (found,) = [n for n, line in enumerate(launch.source.splitlines()) if line.strip().startswith(text)]
    return str(launch.first_line + found)


def marked_op(page: Page) -> list[str]:
    """The cells of the marked row of the list of ops."""
    return page.locator("#ops [aria-current] span").all_inner_texts()


def choose_op(page: Page, number: int) -> None:
    """Choose an op by its number, from 0, with the slider of ops."""
    page.locator("#time").fill(str(number))
    page.locator("#time").blur()
    expect(page.locator(f"#ops [data-op='{number}']")).to_have_attribute("aria-current", "true")
    wait_until_at_rest(page)


def highlighted(page: Page, tensor: str, colour: str) -> tuple[float, float, float, float] | None:
    """The bounding box of this colour of style.css on a canvas: left, top, right, bottom, relative to its
    size."""
    wait_until_drawn(page)
    return page.locator(f"canvas[data-tensor={tensor}]").evaluate(
        """(canvas, name) => {
            const paint = canvas.cloneNode().getContext("2d", { willReadFrequently: true });
            document.body.style.outlineColor = `var(${name})`;
            paint.fillStyle = getComputedStyle(document.body).outlineColor;
            paint.fillRect(0, 0, 1, 1);
            const wanted = paint.getImageData(0, 0, 1, 1).data.join();
            paint.clearRect(0, 0, 1, 1);
            paint.drawImage(canvas, 0, 0);
            const { data, width, height } = paint.getImageData(0, 0, canvas.width, canvas.height);
            let box = null;
            for (let y = 0; y < height; y++)
                for (let x = 0; x < width; x++) {
                    const at = 4 * (y * width + x);
                    if (data.slice(at, at + 4).join() !== wanted) continue;
                    box ??= [x, y, x, y];
                    box = [Math.min(box[0], x), box[1], Math.max(box[2], x), y];
                }
            return box && [box[0] / width, box[1] / height, (box[2] + 1) / width, (box[3] + 1) / height];
        }""",
        colour,
    )


def has_colour(page: Page, selector: str, colour: str) -> bool:
    """Whether a canvas shows this colour of style.css anywhere."""
    wait_until_at_rest(page)
    return page.locator(selector).evaluate(
        """(canvas, name) => {
            const paint = canvas.cloneNode().getContext("2d", { willReadFrequently: true });
            document.body.style.outlineColor = `var(${name})`;
            paint.fillStyle = getComputedStyle(document.body).outlineColor;
            paint.fillRect(0, 0, 1, 1);
            const [wanted] = new Uint32Array(paint.getImageData(0, 0, 1, 1).data.buffer);
            paint.clearRect(0, 0, 1, 1);
            paint.drawImage(canvas, 0, 0);
            const { data } = paint.getImageData(0, 0, canvas.width, canvas.height);
            return new Uint32Array(data.buffer).includes(wanted);
        }""",
        colour,
    )


def tile(rows: tuple[int, int], cols: tuple[int, int], height: int, width: int) -> object:
    """The box of rows and columns of a matrix, relative to its size; up to the line between cells."""
    return pytest.approx((cols[0] / width, rows[0] / height, cols[1] / width, rows[1] / height), abs=0.01)


def colours(page: Page, selector: str) -> int:
    """The number of different colours on a canvas."""
    wait_until_at_rest(page)
    return page.locator(selector).evaluate(
        """(canvas) => {
            const copy = canvas.cloneNode().getContext("2d", { willReadFrequently: true });
            copy.drawImage(canvas, 0, 0);
            const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )


def image(page: Page, selector: str) -> str:
    """Everything that a canvas shows, to compare with what it shows later."""
    wait_until_at_rest(page)
    return page.locator(selector).evaluate("canvas => canvas.toDataURL()")
