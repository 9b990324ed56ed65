"""Fixtures of the page's tests: one browser and one context for all of them, and an empty page for each.

What a page stores is its origin's, which has a port of its own.

Playwright is imported when it is needed: it is of an extra, and files that import it are skipped without it.
"""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One browser for all tests of the page."""
    from tests.page.helpers.browser import chromium_or_skip

    with chromium_or_skip() as browser:
        yield browser


@pytest.fixture(scope="package")
def context(browser: Any) -> Any:
    """One context for all pages. A page of the same host that stays open keeps the process that draws them.

    Otherwise the browser starts one or two for every page, which takes longer than most tests.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.route("**/*", lambda route: route.fulfill(body=""))
    page.goto("http://127.0.0.1/")
    return context


@pytest.fixture
def seen(context: Any) -> Iterator[Any]:
    """An empty page. At the end, fails if the page had errors or requests to other machines."""
    from tests.page.helpers.browser import visit

    with visit(context) as seen:
        yield seen
        assert seen.errors == []
        assert seen.failed == []
        assert seen.outside == []
