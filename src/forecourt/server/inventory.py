"""The catalog of the moment, kept in step with the store."""

import asyncio
import contextlib
import logging
import sys
from collections import deque
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

from forecourt.catalog import Catalog, Listing
from forecourt.store import Store, StoredListing, StoreError

__all__ = ["Inventory"]

_POLL_SECONDS: Final = 0.5
"""How often a worker looks for a new generation; with the time to build it, within the two seconds promised."""

_SWITCH_SECONDS: Final = 0.0005
"""How long the thread that builds a catalog keeps the interpreter from one that answers a request; Python's own 5 ms,
several times in each request, are what a caller would notice."""

_FEW: Final = 20_000
_PART: Final = 4
"""Of more changes than `_FEW` and than one in `_PART` of the stock the whole is read anew: it costs about the same, and
the changes have to be held in memory while they are worked in."""

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
        """Bring the catalog up to date if the stock has changed: by what changed, or else by reading all of it."""
        if await self._store.inventory_generation() == self._generation:
            return
        if self._generation >= 0 and await self._follow():
            return
        generation, catalog = await self._store.read_listings(self._build)
        self._exchange(generation, catalog)

    async def _follow(self) -> bool:
        """Work in what changed; False when that is not known any more, or is too much."""
        before = self._catalog
        limit = max(_FEW, len(before) // _PART)
        found = await self._store.changed_listings(self._generation, lambda rows: self._few(rows, limit))
        if found is None:
            return False
        generation, changed, removed = found
        if changed is None:
            return False
        self._exchange(generation, await asyncio.to_thread(before.followed, changed, removed))
        return True

    def _exchange(self, generation: int, catalog: Catalog) -> None:
        catalog.generation = generation
        self._generation, self._catalog = generation, catalog

    async def start(self) -> None:
        """Build the first catalog and keep watching."""
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
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
            except (StoreError, OSError):  # the latter from the file that the bodies are kept in
                # The last good catalog goes on serving; the store is asked again in a moment.
                _log.warning("the inventory could not be read; serving the last one")

    def _build(self, rows: Iterable[StoredListing]) -> Catalog:
        return Catalog.build(self._served(rows))

    def _few(self, rows: Iterable[StoredListing], limit: int) -> list[Listing] | None:
        """Return what changed, None when it is more than `limit`."""
        listings = iter(self._served(rows))
        few = list(islice(listings, limit))
        more = deque(listings, maxlen=1)  # a store's rows are to be used up
        return None if more else few

    def _served(self, rows: Iterable[StoredListing]) -> Iterable[Listing]:
        # A listing's id names its seller, so that none ever comes to be of a seller who is not served.
        return (Listing(row.listing_id, row.dealer_id, row.body) for row in rows if row.dealer_id in self._sellers)
