"""Fixtures of the tests of gt."""

from tests.gt.helpers.hot_server import cache, hot  # noqa: F401 - fixtures
from tests.gt.helpers.seeds import log, two_workers  # noqa: F401 - fixtures
from tests.gt.helpers.servers import empty, running  # noqa: F401 - fixtures
