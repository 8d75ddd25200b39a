"""The catalog of the moment, kept in step with the store."""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterable
from typing import Final

from forecourt.catalog import Catalog, Listing
from forecourt.store import Store, StoredListing, StoreError

__all__ = ["Inventory"]

_POLL_SECONDS: Final = 1.0
"""How often a worker looks for a new generation; with the time to build it, within the two seconds promised."""

_log = logging.getLogger("forecourt.inventory")


class Inventory:
    """Holds the newest catalog and exchanges it whole when any process has changed the stock.

    Only listings of `sellers` are in it: a store may still hold those of one that is no longer served.
    """

    def __init__(self, store: Store, sellers: Collection[str]) -> None:
        self._store = store
        self._sellers = frozenset(sellers)
        self._catalog = Catalog.build(())
        self._generation = -1
        self._watching: asyncio.Task[None] | None = None

    def catalog(self) -> Catalog:
        """Return the catalog of the moment. A request takes it once and keeps to it."""
        return self._catalog

    async def refresh(self) -> None:
        """Build a new catalog if the stock has changed since the last one."""
        if await self._store.inventory_generation() == self._generation:
            return
        self._generation, catalog = await self._store.read_listings(self._build)
        catalog.generation = self._generation
        self._catalog = catalog

    async def start(self) -> None:
        """Build the first catalog and keep watching."""
        await self.refresh()
        self._watching = asyncio.create_task(self._watch(), name="forecourt-inventory")

    async def stop(self) -> None:
        """Stop watching."""
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
            self._watching = None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            try:
                await self.refresh()
            except StoreError:
                # The last good catalog goes on serving; the store is asked again in a moment.
                _log.warning("the inventory could not be read; serving the last one")

    def _build(self, rows: Iterable[StoredListing]) -> Catalog:
        return Catalog.build(
            Listing(row.listing_id, row.dealer_id, row.body) for row in rows if row.dealer_id in self._sellers
        )
