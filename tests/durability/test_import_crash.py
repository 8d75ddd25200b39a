"""Killing an import at any moment leaves the old stock or the new one, never a mixture (FEEDS.md, point 11)."""

import asyncio
import json
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.durability.importer import PRICES, VEHICLES, import_without_end, write_feeds
from tests.store.conftest import DATABASES

from forecourt.store import open_store

KILLS = 50 if os.environ.get("FORECOURT_LONG") else 5
PATIENCE = 60


@contextmanager
def importing(address: str, folder: Path) -> Iterator[None]:
    """Import without end in another process, which is killed (SIGKILL) at the end; begin after the first import."""
    begun = folder / "begun"
    begun.unlink(missing_ok=True)
    context = multiprocessing.get_context("spawn")
    started = context.Process(target=import_without_end, args=(address, str(folder), str(begun)), daemon=True)
    started.start()
    try:
        until = time.monotonic() + PATIENCE
        while not begun.exists() or not begun.read_bytes():
            assert started.is_alive()
            assert time.monotonic() < until
            time.sleep(0.005)
        yield
    finally:
        started.kill()
        started.join()
        started.close()


@pytest.mark.parametrize("kind", DATABASES)
def test_an_import_that_is_killed_leaves_one_feed_whole(kind: str, tmp_path: Path) -> None:
    write_feeds(tmp_path)

    async def prices(address: str) -> Counter[int]:
        store = open_store(address)
        await store.open()
        _, found = await store.read_listings(lambda rows: Counter(json.loads(row.body)["price"] for row in rows))
        await store.close()
        return found

    with DATABASES[kind].fresh(tmp_path) as address:
        for _ in range(KILLS):
            with importing(address, tmp_path):
                time.sleep(random.uniform(0, 0.6))
            found = asyncio.run(prices(address))
            assert found in [Counter({price: VEHICLES}) for price in PRICES]
