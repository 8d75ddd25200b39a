"""What the client's tests share: the demo dealer as a process of its own, and no card from an earlier test."""

from collections.abc import Iterator

import pytest
from tests.server_process import ServerFarm, servers

from forecourt.client import CARDS

__all__ = ["servers"]


@pytest.fixture(scope="session")
def demo(servers: ServerFarm) -> str:
    """The address of a running demo dealer."""
    return servers.get("demo").base_url


@pytest.fixture(autouse=True)
def _no_cards() -> Iterator[None]:
    # Ports come back, and with them the addresses of cards.
    CARDS.clear()
    yield
    CARDS.clear()
