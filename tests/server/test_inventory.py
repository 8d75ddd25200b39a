"""The catalog follows the store, whichever process changed it."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import RunningAgent, running, search

from forecourt.catalog import Catalog
from forecourt.demo import DEALER_ID
from forecourt.model import Filters, Sort, listing_id
from forecourt.server import inventory as inventory_module
from forecourt.server.inventory import _POLL_SECONDS, Inventory
from forecourt.store import Store, StoredListing, StoreError, open_store
from forecourt.store.sqlite import SQLiteStore


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


class Watched(SQLiteStore):
    """A store that notes how often all of the stock is read, and can lose touch with its file."""

    whole_reads = 0
    failure: Exception | None = None

    async def read_listings(
        self, take: Callable[[Iterable[StoredListing]], Any], dealer_id: str | None = None
    ) -> tuple[int, Any]:
        self.whole_reads += dealer_id is None
        return await super().read_listings(take, dealer_id)

    async def changed_listings(
        self, since: int, take: Callable[[Iterable[StoredListing]], Any]
    ) -> tuple[int, Any, Sequence[str]] | None:
        if self.failure is not None:
            raise self.failure
        return await super().changed_listings(since, take)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def store(tmp_path: Path, runner: asyncio.Runner) -> Iterator[Watched]:
    found = Watched(f"sqlite:{tmp_path / 'forecourt.db'}")
    runner.run(found.open())
    yield found
    runner.run(found.close())


def imported(runner: asyncio.Runner, store: Store, dealer_id: str, prices: dict[str, int]) -> None:
    """Make vehicles with these prices a seller's stock."""
    rows = [
        StoredListing(
            listing_id(dealer_id, name), dealer_id, "Example Motors", None, name, None,
            json.dumps({"vehicle_id": name, "status": "available", "price": price}).encode(),
        )
        for name, price in prices.items()
    ]  # fmt: skip
    runner.run(store.replace_listings(dealer_id, None, rows, datetime.now(UTC)))


def prices(catalog: Catalog) -> dict[str, int]:
    """Return what a search by price shows, cheapest first."""
    page = catalog.search(Filters(), Sort("price"), limit=100)
    return {(vehicle := json.loads(body))["vehicle_id"]: vehicle["price"] for body in page.listings}


def test_after_an_import_only_what_it_changed_is_read(runner: asyncio.Runner, store: Watched) -> None:
    imported(runner, store, "north", {"a": 3, "b": 1, "c": 2})
    imported(runner, store, "south", {"d": 9})
    inventory = Inventory(store, ["north"])
    runner.run(inventory.refresh())
    before = inventory.catalog()
    assert prices(before) == {"b": 1, "c": 2, "a": 3}

    imported(runner, store, "north", {"a": 0, "c": 2, "e": 5})
    imported(runner, store, "south", {"d": 8, "f": 7})
    runner.run(inventory.refresh())
    after = inventory.catalog()
    assert prices(after) == {"a": 0, "c": 2, "e": 5}
    assert after.generation == runner.run(store.inventory_generation()) > before.generation
    assert store.whole_reads == 1
    assert prices(before) == {"b": 1, "c": 2, "a": 3}

    runner.run(inventory.refresh())
    assert inventory.catalog() is after


def test_more_changes_than_are_worth_working_in_have_the_whole_stock_read(
    runner: asyncio.Runner, store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory_module, "_FEW", 2)
    imported(runner, store, "north", {"a": 1})
    inventory = Inventory(store, ["north"])
    runner.run(inventory.refresh())
    for reads, names in ((1, "abc"), (2, "abcdef"), (2, "abcdefgh")):
        imported(runner, store, "north", dict.fromkeys(names, 1))
        runner.run(inventory.refresh())
        assert set(prices(inventory.catalog())) == set(names)
        assert store.whole_reads == reads


def test_a_store_that_went_back_to_an_earlier_stock_is_read_whole(
    runner: asyncio.Runner, store: Watched, tmp_path: Path
) -> None:
    for price in (1, 2, 3):
        imported(runner, store, "north", {"a": price})
    inventory = Inventory(store, ["north"])
    runner.run(inventory.refresh())
    restored = Watched(f"sqlite:{tmp_path / 'backup.db'}")
    runner.run(restored.open())
    imported(runner, restored, "north", {"b": 4})
    inventory._store = restored
    runner.run(inventory.refresh())
    assert prices(inventory.catalog()) == {"b": 4}
    assert restored.whole_reads == 1
    runner.run(restored.close())


@pytest.mark.parametrize("failure", [StoreError("away"), OSError(28, "No space left on device")])
def test_a_refresh_that_fails_is_tried_again(runner: asyncio.Runner, store: Watched, failure: Exception) -> None:
    imported(runner, store, "north", {"a": 1})
    inventory = Inventory(store, ["north"])

    async def work() -> None:
        await inventory.start()
        store.failure = failure
        rows = [StoredListing(listing_id("north", "b"), "north", "R", None, "b", None, b'{"status":"pending"}')]
        await store.replace_listings("north", None, rows, datetime.now(UTC))
        await asyncio.sleep(_POLL_SECONDS * 1.5)
        assert prices(inventory.catalog()) == {"a": 1}
        store.failure = None
        async with asyncio.timeout(20):
            while listing_id("north", "b") not in inventory.catalog():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await inventory.stop()

    runner.run(work())
