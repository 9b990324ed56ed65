"""A real browser for the page's tests: Chromium, driven by Playwright, watched for errors."""

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    Route,
    sync_playwright,
)

from tests.programs import TIMEOUT

NAMES = ("chromium", "chromium-browser", "google-chrome")

# Background activity of the browser, which tests must not depend on or wait for.
ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One process that draws, for all pages of a host (see the fixture `context`).
    "--process-per-site",
    "--renderer-process-limit=1",
)


@dataclasses.dataclass
class Visit:
    """A page in the browser, and the errors in it."""

    page: Page
    errors: list[str] = dataclasses.field(default_factory=list)
    """Messages of the console, and uncaught exceptions."""
    failed: list[str] = dataclasses.field(default_factory=list)
    """Addresses of failed requests, with the errors."""
    outside: list[str] = dataclasses.field(default_factory=list)
    """Addresses that are not on this machine. They are blocked."""

    def take_failures(self, count: int) -> list[str]:
        """Check that exactly these requests failed, and remove their errors, also those in the console."""
        # The browser reports both asynchronously, possibly after the page shows the error.
        for _ in range(int(TIMEOUT / 0.02)):
            if min(len(self.failed), len(self.errors)) >= count:
                break
            self.page.wait_for_timeout(20)
        failed, errors = list(self.failed), list(self.errors)
        self.failed.clear()
        self.errors.clear()
        assert (len(failed), len(errors)) == (count, count), (failed, errors)
        return failed


def find_chromium() -> str | None:
    """Chromium's path: $CHROMIUM, or the first one that is installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A new browser, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def chromium_or_skip() -> contextlib.AbstractContextManager[Browser]:
    """`chromium` for a test, which is skipped if no browser is installed; on CI that is a failure."""
    if not find_chromium():
        reason = f"no browser: none of {', '.join(NAMES)} is installed, and $CHROMIUM is not set"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return chromium()


@contextlib.contextmanager
def visit(browser: Browser | BrowserContext, **options: Any) -> Iterator[Visit]:
    """An empty page, in a context of its own if a browser is given. `options` are those of Playwright's
    new_page."""
    page = browser.new_page(**options)
    page.set_default_timeout(TIMEOUT * 1000)
    try:
        yield _watch(page)
    finally:
        page.close()


def _watch(page: Page) -> Visit:
    seen = Visit(page)

    def console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            seen.errors.append(message.text)

    def fetch(route: Route, request: Request) -> None:
        if urlsplit(request.url).hostname == "127.0.0.1":
            route.continue_()
        else:
            seen.outside.append(request.url)
            route.abort()

    def response(answer: Response) -> None:
        if not answer.ok:
            seen.failed.append(f"{answer.url}: {answer.status}")

    def failed(request: Request) -> None:
        # Leaving or reloading a page aborts its pending requests, which is not a failure.
        if request.failure != "net::ERR_ABORTED":
            seen.failed.append(f"{request.url}: {request.failure}")

    page.on("console", console)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("requestfailed", failed)
    page.on("response", response)
    page.route("**/*", fetch)
    return seen
