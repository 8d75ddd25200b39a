"""Configurations of any size for the benchmarks: sellers with rooftops and profiles, and their listings in a store.

Everything comes from a fixed seed. One seller is written as `[dealer]`, several as `[[dealers]]`, each with a profile
of its own in a file, as an operator has them.
"""

import asyncio
import contextlib
import csv
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.catalog_speed import listings
from forecourt.demo import profile as demo_profile
from forecourt.lead.seller import Seller
from forecourt.server.config import Feed
from forecourt.server.importing import import_feed
from forecourt.store import open_store
from forecourt.vocabulary import Vocabulary

__all__ = [
    "LOCAL_POSTGRESQL",
    "Network",
    "feed_of",
    "import_feeds",
    "make_network",
    "postgresql_schema",
    "share_of",
    "stock_number",
]

LOCAL_POSTGRESQL: Final = "postgresql://postgres@127.0.0.1:5432/"
"""Where a PostgreSQL server is looked for unless another is named."""

_ROOFTOPS: Final = 3
"""How many rooftops each seller has."""
_COLUMNS: Final = (
    "vin", "stock", "type", "certified", "year", "make", "model", "trim", "body", "transmission", "drivetrain",
    "fuel_type", "exteriorcolor", "interiorcolor", "miles", "sellingprice", "msrp", "rooftop", "options", "description",
    "url", "imagelist",
)  # fmt: skip
_MEMBERS: Final = (
    "vin", "stock", "condition", "certified", "year", "make", "model", "trim", "body", "transmission", "driveline",
    "fuel", "exterior_color", "interior_color", "mileage", "price", "msrp", "rooftop", "features", "description",
    "vdp_url", "photos",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Network:
    """A configuration on the disk, and what is in it."""

    config: Path
    address: str
    sellers: tuple[str, ...]
    listings: int
    import_seconds: float = 0.0
    """How long it took to import all feeds, one after the other, into the empty store."""

    @property
    def folder(self) -> Path:
        """Where everything of it is kept."""
        return self.config.parent


def make_network(folder: Path, sellers: int, stock: int, address: str | None = None, more: str = "") -> Network:
    """Write the configuration, the profiles and a feed for each seller, and import the feeds: `stock` listings in all.

    `address` is the database's (None: SQLite in `folder`); `more` is TOML of further tables.
    """
    ids = tuple(f"dealer-{number:04}" for number in range(sellers))
    address = address or f"sqlite:{folder / 'data' / 'forecourt.db'}"
    network = Network(_write_configuration(folder, ids, address, more), address, ids, stock)
    write_feeds(network)
    return replace(network, import_seconds=asyncio.run(import_feeds(network)))


def rooftops_of(seller: str) -> list[str]:
    """Return the names of a seller's rooftops."""
    return [f"Example Motors {seller.removeprefix('dealer-')} {place}" for place in ("North", "South", "West")]


def profile_of(seller: str) -> dict[str, Any]:
    """Return a seller's profile: the demo dealer's rooftops under names of their own."""
    demo = demo_profile()
    places = [
        {**demo["rooftops"][number % len(demo["rooftops"])], "name": name}
        for number, name in enumerate(rooftops_of(seller))
    ]
    return {"name": f"Example Motors {seller.removeprefix('dealer-')}", "rooftops": places[:_ROOFTOPS]}


def stock_number(number: int) -> str:
    """Return the stock number of a vehicle, by its place among all."""
    return f"S{number:07}"


def share_of(sellers: int, stock: int, seller: int) -> range:
    """Return the places among all vehicles of those that a seller has."""
    each, left = divmod(stock, sellers)
    first = seller * each + min(seller, left)
    return range(first, first + each + (seller < left))


def write_feeds(network: "Network") -> None:
    """Write each seller's feed, a CSV file in the shape of a dealer system's export."""
    source = listings(network.listings)
    for number, seller in enumerate(network.sellers):
        names = rooftops_of(seller)
        with feed_of(network, seller).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_COLUMNS)
            for place in share_of(len(network.sellers), network.listings, number):
                vehicle = json.loads(next(source).body)
                vehicle |= {"stock": stock_number(place), "rooftop": names[place % _ROOFTOPS]}
                vehicle["vin"] = f"1FT{place:014}"
                vehicle["certified"] = "Yes" if vehicle["condition"] == "cpo" else "No"
                vehicle["condition"] = "New" if vehicle["condition"] == "new" else "Used"
                writer.writerow(
                    ["|".join(value) if isinstance(value, list) else value for value in map(vehicle.get, _MEMBERS)]
                )


def feed_of(network: "Network", seller: str) -> Path:
    """Return the file of a seller's feed."""
    return network.folder / "feeds" / f"{seller}.csv"


async def import_feeds(network: "Network", sellers: Sequence[str] | None = None, *, exactly: bool = True) -> float:
    """Import the feeds of these sellers (None: of all) as `forecourt import` does, and return how many seconds it took.

    Raises SystemExit when a vehicle of a feed did not come to be a listing, unless not `exactly` those are wanted.
    """
    vocabulary = Vocabulary.packaged()
    store = open_store(network.address)
    await store.open()
    try:
        began, imported, due = time.perf_counter(), 0, 0
        for number, seller in enumerate(network.sellers):
            if sellers is not None and seller not in sellers:
                continue
            feed = Feed(source=str(feed_of(network, seller)), dealer=seller)
            known = Seller.from_profile(seller, profile_of(seller))
            report = await import_feed(store, known, feed_of(network, seller), feed, vocabulary)
            imported += report.imported
            due += len(share_of(len(network.sellers), network.listings, number))
        if exactly and imported != due:
            raise SystemExit(f"of {due} vehicles {imported} were imported")
        return time.perf_counter() - began
    finally:
        await store.close()


@contextmanager
def postgresql_schema(server: str) -> Iterator[str]:
    """Give the address of an empty schema, dropped with all that is in it when the block ends."""
    import psycopg

    name = f"benchmark_{uuid.uuid4().hex}"
    with contextlib.closing(psycopg.connect(server, autocommit=True)) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        try:
            yield f"{server}?options=-csearch_path%3D{name}"
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def _write_configuration(folder: Path, ids: tuple[str, ...], address: str, more: str) -> Path:
    profiles = folder / "profiles"
    profiles.mkdir(parents=True)
    (folder / "feeds").mkdir()
    lines = [f"store = {json.dumps(address)}", 'data = "data"', more]
    for seller in ids:
        (profiles / f"{seller}.json").write_text(json.dumps(profile_of(seller)), encoding="utf-8")
        lines += [
            "[dealer]" if len(ids) == 1 else "[[dealers]]",
            f'id = "{seller}"',
            f'profile = "profiles/{seller}.json"',
        ]
    file = folder / "forecourt.toml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
