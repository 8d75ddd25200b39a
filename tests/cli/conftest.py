"""The demo dealer that the buyer's commands shop at."""

import pytest
from tests.server_process import ServerFarm, servers

__all__ = ["servers"]


@pytest.fixture(scope="session")
def demo(servers: ServerFarm) -> str:
    """The address of a running demo dealer."""
    return servers.get("demo").base_url
