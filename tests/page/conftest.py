"""Fixtures of the page's tests: one browser for all of them, and an empty page in it for each.

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


@pytest.fixture
def seen(browser: Any) -> Iterator[Any]:
    """An empty page. At the end, fails if the page had errors or requests to other machines."""
    from tests.page.helpers.browser import visit

    with visit(browser, viewport={"width": 1280, "height": 800}) as seen:
        yield seen
        assert seen.errors == []
        assert seen.failed == []
        assert seen.outside == []
