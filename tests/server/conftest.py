"""The demo dealer, started once for all tests that do not change it."""

from collections.abc import Iterator

import pytest
from tests.server.running import RunningAgent, running


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAgent]:
    """The packaged demo dealer over the defaults."""
    with running(tmp_path_factory.mktemp("demo")) as agent:
        yield agent
