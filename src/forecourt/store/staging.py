"""How much of a stock an import holds in memory while it looks at it."""

from collections.abc import Iterable, Iterator
from typing import Final

from forecourt.store import StoredListing

__all__ = ["BYTES", "ROWS", "batches"]

ROWS: Final = 1000
BYTES: Final = 1 << 20
"""How much is in memory, and written in one transaction: so many listings, or bodies of so many bytes."""


def batches(listings: Iterable[StoredListing]) -> Iterator[dict[str, StoredListing]]:
    """Yield the listings by their ids, `ROWS` or `BYTES` at once; of several with one id in a batch the last."""
    batch: dict[str, StoredListing] = {}
    size = 0
    for listing in listings:
        batch[listing.listing_id] = listing
        size += len(listing.body)
        if len(batch) >= ROWS or size >= BYTES:
            yield batch
            batch, size = {}, 0
    if batch:
        yield batch
