"""How fast the catalog answers, is built and follows an import, and what it weighs, next to SQL databases.

    python -m benchmarks.catalog_speed                       200,000 listings, two or three minutes
    python -m benchmarks.catalog_speed --listings 1000000    without imports into a store; some minutes
    python -m benchmarks.catalog_speed --listings 550        the demo's size
    python -m benchmarks.catalog_speed --alone               without the databases

Every listing and every question comes from a fixed seed. SQLite answers the same questions from a table with an index
on each column that is asked about; PostgreSQL does when `FORECOURT_TEST_POSTGRES` (or a server on 127.0.0.1) takes
connections. Totals are compared, so that no one is fast by being wrong. Wall time says what was waited for; the CPU
time of this process leaves out what other programs, and a database server, took.

"From commit to served" is measured with a real store and the server's own watching of it: an import ends, and the time
until a search finds what it brought is taken, while a task on the same event loop wants to run every millisecond.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import os
import random
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from forecourt.catalog import Catalog, Listing
from forecourt.model import Filters, Sort
from forecourt.server.inventory import Inventory
from forecourt.store import StoredListing, open_store

_IN_A_STORE: Final = 300_000
"""More listings than these are not imported into a store: its share would take longer than all the rest."""

MAKES = {
    make: [f"{make[:2]}{model}" for model in models.split()]
    for make, models in {
        "Toyota": "Camry Corolla RAV4 Highlander Tacoma Tundra Prius Sienna 4Runner",
        "Honda": "Civic Accord CR-V HR-V Pilot Odyssey Ridgeline Passport",
        "Ford": "F-150 Escape Explorer Edge Mustang Bronco Maverick Ranger Transit",
        "Chevrolet": "Silverado Equinox Traverse Tahoe Suburban Malibu Colorado Blazer",
        "Nissan": "Altima Rogue Sentra Pathfinder Frontier Murano Versa Leaf",
        "Hyundai": "Elantra Sonata Tucson Santa-Fe Palisade Kona Ioniq-5",
        "Kia": "Forte K5 Sportage Sorento Telluride Soul EV6",
        "Jeep": "Wrangler Cherokee Compass Gladiator Renegade",
        "Subaru": "Outback Forester Crosstrek Impreza Ascent WRX",
        "BMW": "3-Series 5-Series X1 X3 X5 i4 iX",
        "Mercedes-Benz": "C-Class E-Class GLC GLE EQB Sprinter",
        "Volkswagen": "Jetta Tiguan Atlas Taos ID.4 Golf",
        "Mazda": "CX-5 CX-30 CX-50 CX-90 Mazda3",
        "Tesla": "Model-3 Model-Y Model-S Model-X",
        "Volvo": "XC40 XC60 XC90 S60 V60",
    }.items()
}
TRIMS = ["Base", "S", "SE", "SEL", "LE", "XLE", "Limited", "EX", "EX-L", "Touring", "Sport", "Premium", "Lariat"]
BODIES = ["suv", "sedan", "truck", "coupe", "hatchback", "wagon", "minivan", "convertible"]
COLORS = [
    f"{shade} {color}".strip()
    for shade in ("", "Crystal", "Midnight", "Lunar", "Platinum")
    for color in ("Black", "White Pearl", "Silver", "Gray", "Blue", "Red", "Green")
]
FUELS = ["gas", "gas", "gas", "gas", "hybrid", "diesel", "phev", "bev"]
WORDS = [
    f"{start}{end}"
    for start in ("cl", "el", "per", "lo", "ro", "su", "ta", "ve", "com", "pri")
    for end in ("an", "ear", "ect", "ner", "low", "ster", "der", "port", "ition", "mary", "ble", "ness", "ment")
]
FEATURES = [f"{kind} {part}" for kind in ("Heated", "Power", "Smart", "Rear", "Premium", "Adaptive", "Dual", "Auto")
            for part in ("Seats", "Mirrors", "Camera", "Audio", "Lights", "Cruise", "Liftgate", "Climate")]  # fmt: skip
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def listings(count: int, seed: int = 2026) -> Iterator[Listing]:
    """Yield `count` listings of twenty rooftops and four sellers, about a thousand bytes each."""
    chance = random.Random(seed)
    makes = list(MAKES)
    for number in range(count):
        make = makes[min(int(chance.expovariate(0.25)), len(makes) - 1)]
        condition = chance.choice(["new", "used", "used", "cpo"])
        year = 2026 - (0 if condition == "new" else min(int(chance.expovariate(0.25)), 20))
        rooftop = chance.randrange(20)
        features = chance.sample(FEATURES, 8)
        fuel = chance.choice(FUELS)
        vehicle: dict[str, Any] = {
            "vin": f"{chance.randrange(36**4):04X}{number:013d}"[:17],
            "stock": f"{condition[0].upper()}{number:07d}",
            "vehicle_id": f"veh_{number:08x}",
            "dealer_id": f"dealer-{rooftop % 4}",
            "rooftop": f"Example Motors {rooftop}",
            "status": chance.choice(["available", "available", "available", "intransit", "pending"]),
            "condition": condition,
            "year": year,
            "make": make,
            "model": chance.choice(MAKES[make]),
            "trim": chance.choice(TRIMS),
            "body": chance.choice(BODIES),
            "transmission": chance.choice(["automatic", "automatic", "cvt", "manual"]),
            "driveline": chance.choice(["awd", "fwd", "rwd", "4wd"]),
            "fuel": fuel,
            "exterior_color": chance.choice(COLORS),
            "interior_color": chance.choice(COLORS[:14]) + chance.choice([" Leather", " Cloth"]),
            "mileage": chance.randrange(60) if condition == "new" else (2026 - year) * 9000 + chance.randrange(20000),
            "features": features,
            "feature_codes": [feature.lower().replace(" ", "_") for feature in features],
            "description": " ".join(chance.choices(WORDS, k=30)),
            "vdp_url": f"https://www.example.com/inventory/{number}",
            "photos": [f"https://cdn.example.com/{number}/{photo}.jpg" for photo in range(4)],
            "updated_at": (EPOCH + timedelta(seconds=chance.randrange(10**7))).isoformat(),
        }
        if chance.random() > 0.03:
            vehicle["price"] = int(chance.lognormvariate(10.2, 0.5))
            vehicle["msrp"] = vehicle["price"] + chance.randrange(4000)
        if fuel in ("bev", "phev"):
            vehicle["electric_range_mi"] = chance.randrange(20, 400)
            vehicle["dc_fast_charge"] = fuel == "bev"
            vehicle["charge_port"] = chance.choice(["nacs", "ccs"])
        body = json.dumps(vehicle, separators=(",", ":")).encode()
        yield Listing(f"lst_{number:010d}", f"dealer-{rooftop % 4}", body)


def questions(count: int, seed: int = 7) -> list[tuple[Filters, Sort]]:
    """Return searches as shoppers make them: one to four filters, most often by price."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        make = chance.choice(list(MAKES))
        conditions: list[Callable[[dict[str, Any]], None]] = [
            lambda parts, make=make: parts["terms"].update(make=(make,)),  # type: ignore[misc]
            lambda parts, make=make: parts["terms"].update(  # type: ignore[misc]
                make=(make,), model=(chance.choice(MAKES[make]),)
            ),
            lambda parts: parts["at_most"].update(price=chance.randrange(12_000, 60_000, 500)),
            lambda parts: parts["at_least"].update(year=chance.randrange(2015, 2026)),
            lambda parts: parts["at_most"].update(mileage=chance.randrange(10_000, 90_000, 5000)),
            lambda parts: parts["terms"].update(body=chance.sample(BODIES, chance.randint(1, 2))),
            lambda parts: parts["terms"].update(condition=(chance.choice(["new", "used", "cpo"]),)),
            lambda parts: parts["terms"].update(fuel=(chance.choice(["hybrid", "bev", "diesel"]),)),
            lambda parts: parts["terms"].update(driveline=("AWD",)),
        ]
        parts: dict[str, Any] = {"terms": {}, "at_least": {}, "at_most": {}}
        for condition in chance.sample(conditions, chance.randint(1, 4)):
            condition(parts)
        field = chance.choice(["price", "price", "price", "mileage", "year", "updated_at"])
        made.append((Filters(**parts), Sort(field, chance.random() < 0.4)))
    return made


COLUMNS = [
    *["make", "model", "trim", "condition", "transmission", "fuel", "driveline", "body", "exterior_color"],
    *["interior_color", "rooftop", "status", "year", "price", "mileage", "electric_range_mi", "updated_at"],
]
COUNTED = COLUMNS[:13]


def condition_sql(filters: Filters, mark: str) -> tuple[str, list[Any]]:
    """Return a question as an SQL condition with its values."""
    parts = ["true"]
    values: list[Any] = []
    for member, texts in filters.terms.items():
        parts.append(f"{member} in ({', '.join([mark] * len(texts))})")
        values += [text.lower() for text in texts]
    for operator, bounds in ((">=", filters.at_least), ("<=", filters.at_most)):
        for member, bound in bounds.items():
            parts.append(f"{member} {operator} {mark}")
            values.append(bound)
    return " and ".join(parts), values


class Database:
    """A table of the same listings behind any driver that speaks DB-API."""

    def __init__(self, name: str, connection: Any, mark: str, body: str) -> None:
        self.name, self.connection, self.mark, self.body = name, connection, mark, body

    def insert(self, cursor: Any, batch: Sequence[tuple[Any, ...]]) -> None:
        marks = ", ".join([self.mark] * (len(COLUMNS) + 2))
        cursor.executemany(f"insert into catalog_speed values ({marks})", batch)

    def fill(self, stock: Sequence[Listing]) -> None:
        cursor = self.connection.cursor()
        kinds = ["text"] * 12 + ["integer"] * 4 + ["text"]
        columns = ", ".join(f"{column} {kind}" for column, kind in zip(COLUMNS, kinds, strict=True))
        cursor.execute(f"create temporary table catalog_speed (id text primary key, listing {self.body}, {columns})")
        batch: list[tuple[Any, ...]] = []
        for listing in stock:
            vehicle = json.loads(listing.body)
            values = [vehicle.get(column) for column in COLUMNS]
            batch.append((listing.listing_id, listing.body, *[v.lower() if isinstance(v, str) else v for v in values]))
            if len(batch) == 5000:
                self.insert(cursor, batch)
                batch.clear()
        self.insert(cursor, batch)
        for column in COLUMNS:
            cursor.execute(f"create index catalog_speed_{column} on catalog_speed ({column}, id)")
        cursor.execute("analyze")

    def search(self, filters: Filters, sort: Sort) -> int:
        where, values = condition_sql(filters, self.mark)
        way = "desc" if sort.descending else "asc"
        cursor = self.connection.cursor()
        cursor.execute(f"select count(*) from catalog_speed where {where}", values)
        total: int = cursor.fetchone()[0]
        order = f"{sort.field} is null, {sort.field} {way}, id"
        cursor.execute(f"select listing from catalog_speed where {where} order by {order} limit 20", values)
        cursor.fetchall()
        return total

    def facets(self, filters: Filters) -> None:
        where, values = condition_sql(filters, self.mark)
        cursor = self.connection.cursor()
        for column in COUNTED:
            cursor.execute(f"select {column}, count(*) from catalog_speed where {where} group by 1 order by 2", values)
            cursor.fetchall()
        cursor.execute(f"select min(price), max(price), min(mileage), max(mileage) from catalog_speed where {where}",
                       values)  # fmt: skip
        cursor.fetchall()


class Copied(Database):
    """PostgreSQL, filled in the way that it is fastest with."""

    def insert(self, cursor: Any, batch: Sequence[tuple[Any, ...]]) -> None:
        with cursor.copy("copy catalog_speed from stdin") as copy:
            for row in batch:
                copy.write_row(row)


def databases() -> Iterator[Database | str]:
    """Yield SQLite, and PostgreSQL where one is to be had, else why it is not."""
    yield Database("SQLite", sqlite3.connect(""), "?", "blob")
    try:
        import psycopg  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        yield "PostgreSQL is left out: psycopg is not installed"
        return
    address = os.environ.get("FORECOURT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
    try:
        connection = psycopg.connect(address, connect_timeout=2)
    except psycopg.Error:
        yield "PostgreSQL is left out: no server answers at FORECOURT_TEST_POSTGRES or on 127.0.0.1"
        return
    yield Copied("PostgreSQL", connection, "%s", "bytea")


def measure(ask: Callable[[Any], Any], asked: Sequence[Any], budget: float = 8.0) -> str:
    """Return the median and the 99th percentile of asking every question, and the median of this process's own time.

    The latter leaves out what other programs on the machine and, with a server, the server took.
    """
    taken: list[float] = []
    worked: list[float] = []
    until = time.perf_counter() + budget
    for each in asked:
        busy, started = time.process_time(), time.perf_counter()
        ask(each)
        taken.append(time.perf_counter() - started)
        worked.append(time.process_time() - busy)
        if time.perf_counter() > until:
            break
    taken.sort()
    worked.sort()
    return (
        f"p50 {taken[len(taken) // 2] * 1000:8.3f} ms   p99 {taken[len(taken) * 99 // 100] * 1000:8.3f} ms"
        f"   CPU p50 {worked[len(worked) // 2] * 1000:8.3f} ms   ({len(taken)} questions)"
    )


def pace() -> float:
    """Return how long one step of a plain loop takes here and now, in nanoseconds: the yardstick for the rest."""
    started = time.process_time()
    total = 0
    for number in range(1_000_000):
        total += number
    return (time.process_time() - started) * 1000


def resident(kind: str = "VmRSS") -> float:
    """Return this process's resident memory in MiB: all of it, or only what no file backs ("RssAnon")."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(kind))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def held(before: tuple[float, float]) -> str:
    """Return what this process has come to hold since `before`."""
    return f"{resident() - before[0]:.0f} MiB, of it {resident('RssAnon') - before[1]:.0f} MiB not file-backed"


def import_of(size: int, stock: dict[str, Listing], chance: random.Random) -> tuple[list[Listing], list[str]]:
    """Return an import that changes so many listings: mostly prices, some new, some gone; `stock` is as after it."""
    changed: list[Listing] = []
    removed: list[str] = []
    for listing_id in chance.sample(sorted(stock), min(size, len(stock) // 2)):
        listing, lot = stock[listing_id], chance.random()
        if lot < 0.15:
            removed.append(listing_id)
            del stock[listing_id]
            continue
        vehicle = {**json.loads(listing.body), "price": chance.randrange(5000, 90_000)}
        if lot < 0.3:
            mark = f"{chance.randrange(10**9):09}"
            listing_id = f"{listing_id}-{mark}"
            vehicle |= {"vin": f"N{mark}", "stock": f"N{mark}", "vehicle_id": f"new-{mark}"}
        body = json.dumps(vehicle, separators=(",", ":")).encode()
        stock[listing_id] = Listing(listing_id, listing.dealer_id, body)
        changed.append(stock[listing_id])
    return changed, removed


def follow(catalog: Catalog, stock: Sequence[Listing], seed: int = 5) -> None:
    """Measure making the next catalog from this one."""
    for size in (100, 2000, 20_000):
        changed, removed = import_of(size, {each.listing_id: each for each in stock}, random.Random(seed))
        taken = []
        for _ in range(3):
            busy, started = time.process_time(), time.perf_counter()
            catalog.followed(changed, removed)
            taken.append((time.perf_counter() - started, time.process_time() - busy))
        wall, work = (sorted(each)[1] for each in zip(*taken, strict=True))
        count = len(changed) + len(removed)
        print(f"{'Catalog':12} follows {count:6,} changes in {wall:6.3f} s, {work:6.3f} s of CPU", flush=True)


def stored(stock: Iterator[Listing]) -> Iterator[StoredListing]:
    """Yield listings as a store takes them, all of one seller."""
    for listing in stock:
        vehicle = json.loads(listing.body)
        vin, vehicle_id, stock_number = vehicle["vin"], vehicle["vehicle_id"], vehicle["stock"]
        yield StoredListing(
            listing.listing_id, "dealer-0", vehicle["rooftop"], vin, vehicle_id, stock_number, listing.body
        )


async def serve(listed: Sequence[Listing], seed: int = 6) -> None:
    """Measure how soon after an import's commit its listings are served, and what the event loop has to wait."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:{Path(folder) / 'catalog_speed.db'}")
        await store.open()
        stock = {each.listing_id: each for each in listed}
        await store.replace_listings("dealer-0", None, stored(iter(stock.values())), datetime.now(UTC))
        inventory = Inventory(store, ["dealer-0"])
        busy, started = time.process_time(), time.perf_counter()
        await inventory.start()
        print(
            f"{'Worker':12} starts in {time.perf_counter() - started:.1f} s, {time.process_time() - busy:.1f} s of CPU"
        )
        lags: list[float] = []
        ticking = asyncio.create_task(tick(lags))
        try:
            for size in (0, 100, 2000, 20_000):
                import_of(size, stock, random.Random(seed + size))
                before = inventory.catalog()
                if size:
                    await store.replace_listings("dealer-0", None, stored(iter(stock.values())), datetime.now(UTC))
                committed = time.perf_counter()
                lags.clear()
                while inventory.catalog() is before and (size or time.perf_counter() < committed + 1):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
                served = time.perf_counter() - committed
                waits = sorted(lags)
                late, latest = waits[len(waits) * 99 // 100] * 1000, waits[-1] * 1000
                said = f"serves {size:6,} changes {served:.2f} s after the commit" if size else "idle for a second"
                print(f"{'Worker':12} {said}; the loop waits p99 {late:.1f} ms, at most {latest:.1f} ms", flush=True)
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
            await inventory.stop()
            await store.close()


async def tick(lags: list[float]) -> None:
    """Note, every millisecond, how much later than that the event loop came round."""
    while True:
        started = time.perf_counter()
        await asyncio.sleep(0.001)
        lags.append(time.perf_counter() - started - 0.001)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the catalog next to SQL databases.")
    parser.add_argument("--listings", type=int, default=200_000)
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--database-seconds", type=float, default=4.0, help="for each kind of question to a database")
    parser.add_argument("--alone", action="store_true", help="leave the databases out")
    chosen = parser.parse_args()
    asked = questions(chosen.questions)
    gc.collect()
    before = resident(), resident("RssAnon")
    catalog = Catalog.build(listings(chosen.listings))
    gc.collect()
    print(f"one step of a plain loop takes {pace():.0f} ns here")
    weight = f"{held(before)}, at most {resident('VmHWM') - before[0]:.0f} MiB while building"
    print(f"memory     {weight}", flush=True)
    catalog.facets(Filters())
    print(f"{'Catalog':12} search  {measure(lambda q: catalog.search(q[0], q[1], limit=20), asked)}")
    print(f"{'Catalog':12} facets  {measure(lambda q: catalog.facets(q[0]), asked)}")
    words = [
        Filters(text=text) for text in ("toy", "c", "cl", "honda suv", "mercedes benz black", "2024 awd pr s")
    ] * 50
    print(f"{'Catalog':12} words   {measure(lambda q: catalog.search(q, Sort('price'), limit=20), words)}")
    print(f"memory now {held(before)}, after {2 * len(asked) + len(words):,} questions", flush=True)
    stock = list(listings(chosen.listings))
    gc.collect()
    busy, started = time.process_time(), time.perf_counter()
    Catalog.build(stock)
    built, busy = time.perf_counter() - started, time.process_time() - busy
    size = sum(len(listing.body) for listing in stock) / 2**20
    print(f"{'Catalog':12} of {len(catalog):,} listings, {size:,.0f} MiB, built in {built:.1f} s, {busy:.1f} s of CPU")
    follow(catalog, stock)
    if chosen.listings <= _IN_A_STORE:
        asyncio.run(serve(stock))
    for database in () if chosen.alone else databases():
        if isinstance(database, str):
            print(database)
            continue
        started = time.perf_counter()
        database.fill(stock)
        print(f"{database.name:12} filled in {time.perf_counter() - started:.1f} s", flush=True)
        for filters, sort in asked[:5]:
            assert database.search(filters, sort) == catalog.search(filters, sort, limit=20).total
        seconds = chosen.database_seconds
        print(f"{database.name:12} search  {measure(lambda q, d=database: d.search(*q), asked, seconds)}")  # type: ignore[misc]
        print(f"{database.name:12} facets  {measure(lambda q, d=database: d.facets(q[0]), asked, seconds)}")  # type: ignore[misc]


if __name__ == "__main__":
    main()
