"""Fixtures of the tests of gt."""

import pytest

from tests.gt.helpers.hot_server import COMPILER_TIMEOUT, cache, hot  # noqa: F401 - fixtures
from tests.gt.helpers.seeds import log, two_workers  # noqa: F401 - fixtures
from tests.gt.helpers.servers import empty, running  # noqa: F401 - fixtures


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests that wait for a compiler take as long as it does."""
    for item in items:
        if "cache" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(COMPILER_TIMEOUT))
