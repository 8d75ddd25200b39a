"""Imports one of two feeds after the other until it is killed; run by its name in a process of its own."""

import asyncio
import itertools
import os
from pathlib import Path
from typing import Final

from forecourt.lead.seller import Seller
from forecourt.server.config import Feed
from forecourt.server.importing import import_feed
from forecourt.store import open_store
from forecourt.vocabulary import Vocabulary

__all__ = ["DEALER", "PRICES", "VEHICLES", "import_without_end", "seller", "write_feeds"]

DEALER: Final = "example"
PRICES: Final = (10_000, 20_000)
VEHICLES: Final = 1500
"""In each feed; half of them are in both."""


def seller() -> Seller:
    """Return whose stock it is."""
    return Seller.from_profile(DEALER, {"name": "Example", "rooftops": [{"name": "Main"}]})


def write_feeds(folder: Path) -> list[Path]:
    """Write the two feeds, which share half of their vehicles, at different prices."""
    paths = []
    for at, price in enumerate(PRICES):
        numbers = range(at * VEHICLES // 2, at * VEHICLES // 2 + VEHICLES)
        rows = "".join(f"S{number:05},Used,Honda,Civic,{price},{'x' * 200}\n" for number in numbers)
        paths.append(folder / f"{price}.csv")
        paths[-1].write_text(f"stock,type,make,model,price,description\n{rows}")
    return paths


def import_without_end(address: str, folder: str, begun: str) -> None:
    """Import the feeds in turn until killed; write a line to a file after each."""
    descriptor = os.open(begun, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def run() -> None:
        store = open_store(address)
        await store.open()
        for price in itertools.cycle(PRICES):
            path = Path(folder) / f"{price}.csv"
            feed = Feed(source=str(path))
            await import_feed(store, seller(), path, feed, Vocabulary.packaged())
            # The kernel has it after this call, whatever becomes of the process.
            os.write(descriptor, b"imported\n")

    asyncio.run(run())
