"""An import during which others come."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from tests.store.sample import NOW

from forecourt.store import InventoryChange, Store, StoredListing

__all__ = ["import_during"]

PATIENCE: Final = 60


class _Paused:
    """A feed that stops before its last row until it is told to go on."""

    def __init__(self, rows: Sequence[StoredListing]) -> None:
        self._rows = rows
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __iter__(self) -> Iterator[StoredListing]:
        yield from self._rows[:-1]
        self.reached.set()
        assert self.go_on.wait(PATIENCE)
        yield self._rows[-1]


async def import_during(
    store: Store, rows: Sequence[StoredListing], meanwhile: Sequence[tuple[Sequence[StoredListing], timedelta]]
) -> InventoryChange:
    """Import `rows`, and before the last of them is read import the others, each at a time so much later."""
    feed = _Paused(rows)
    task = asyncio.create_task(store.replace_listings("dealer-a", None, feed, NOW))
    try:
        assert await asyncio.to_thread(feed.reached.wait, PATIENCE)
        for others, later in meanwhile:
            await store.replace_listings("dealer-a", None, others, NOW + later)
    finally:
        feed.go_on.set()
    return await task
