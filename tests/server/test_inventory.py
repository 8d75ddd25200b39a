"""The catalog follows the store, whichever process changed it."""

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from tests.server.running import RunningAgent, running, search

from forecourt.demo import DEALER_ID
from forecourt.server.inventory import _POLL_SECONDS
from forecourt.store import StoredListing, open_store


def total(agent: RunningAgent) -> int:
    """Return how many vehicles a search finds."""
    found: int = agent.call(search())["result"]["message"]["parts"][0]["data"]["data"]["total"]
    return found


def replace(database: Path, keep: int) -> None:
    """Make the first listings of the stock all of it, as another process would."""

    async def work() -> None:
        store = open_store(f"sqlite:{database}")
        await store.open()
        try:
            _, rows = await store.read_listings(_whole)
            await store.replace_listings(DEALER_ID, None, rows[:keep], datetime.now(UTC))
        finally:
            await store.close()

    asyncio.run(work())


def _whole(rows: Iterable[StoredListing]) -> list[StoredListing]:
    return list(rows)


def test_a_change_of_the_stock_by_somebody_else_is_served_soon(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        assert total(agent) > 7
        for keep in (7, 0):
            replace(agent.database, keep)
            end = time.monotonic() + 20
            while total(agent) != keep:
                assert time.monotonic() < end
                time.sleep(0.05)
        assert agent.get("/readyz").json()["listings"] == 0


def test_it_is_looked_for_often_enough_to_be_served_within_two_seconds() -> None:
    assert _POLL_SECONDS <= 1.0


def test_without_its_store_the_last_stock_goes_on_being_served(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        before = total(agent)
        agent.run(agent.app.deployment.store.close())
        time.sleep(_POLL_SECONDS * 1.5)
        assert total(agent) == before > 0
