"""How fast a feed is imported into the store, from the file on the disk to the commit, and what memory that takes.

    python -m benchmarks.import_speed                     200,000 rows
    python -m benchmarks.import_speed --rows 20000
    python -m benchmarks.import_speed --memory            a file ten times as large as the memory it may take

Each import runs in a process of its own, whose peak memory is what the system says of it (`ru_maxrss`). A feed is
imported three times: into an empty store, once more unchanged, and with a new price on every tenth row. Processor time
is counted for the process that stores the rows, and for the one that it starts to read them, start included. With
`--memory` the process may take a fixed amount of address space (`RLIMIT_AS`) beyond what it has once the modules are
loaded and the store is open, and the file is at least ten times that amount; it must be imported all the same.
What is limited is what the import adds, not the whole process. A process that it starts to read the file inherits the
limit as it stands, and so has more room: its own modules are fewer.

The files are made from a fixed seed, in the shape of a HomeNet export with features, photos and a description.
"""

import argparse
import asyncio
import csv
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

DEALER: Final = "bench-dealer"
ROOFTOP: Final = "Example Motors"
_MIB: Final = 1 << 20
_TIMES: Final = 10
_ALLOWANCE_MIB: Final = 32

_COLUMNS: Final = (
    "vin", "stock", "type", "year", "make", "model", "body", "trim", "doors", "exteriorcolor", "interiorcolor",
    "enginecylinders", "enginedisplacement", "transmission", "miles", "sellingprice", "msrp", "certified",
    "dateinstock", "description", "options", "drivetrain", "fuel_type", "citympg", "highwaympg", "imagelist",
)  # fmt: skip
_MODELS: Final = {
    "Toyota": ("Camry", "Corolla", "RAV4", "Highlander", "Tacoma"),
    "Honda": ("Civic", "Accord", "CR-V", "Pilot"),
    "Ford": ("F-150", "Escape", "Explorer", "Mustang"),
    "Hyundai": ("Elantra", "Tucson", "Santa Fe"),
    "Subaru": ("Outback", "Forester"),
}
_TRIMS: Final = ("Base", "S", "SE", "SEL", "LE", "XLE", "Limited", "EX-L", "Touring", "Sport")
_COLORS: Final = ("Black", "White", "Silver", "Gray", "Blue", "Red", "Green")
_FEATURES: Final = (
    "Heated Seats", "Sunroof", "Backup Camera", "Apple CarPlay", "Android Auto", "Blind Spot Monitor", "Leather Seats",
    "Navigation System", "Remote Start", "Third Row Seat", "Tow Package", "Power Liftgate", "Keyless Entry",
    "Adaptive Cruise Control", "Lane Departure Warning", "Bluetooth", "Alloy Wheels", "Roof Rack",
)  # fmt: skip
_LETTERS: Final = "ABCDEFGHJKLMNPRSTUVWXYZ0123456789"
_VALUES: Final = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ0123456789", (*range(1, 9), *range(1, 6), 7, 9, *range(2, 10), *range(10)), strict=True))  # fmt: skip # noqa: E501
_WEIGHTS: Final = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


def vin_of(chosen: random.Random, number: int) -> str:
    """Return a VIN of its own for each number, with a right check digit."""
    letters = [*chosen.choices(_LETTERS, k=8), "0", *chosen.choices(_LETTERS, k=2), *f"{number:06}"]
    total = sum(_VALUES[letter] * weight for letter, weight in zip(letters, _WEIGHTS, strict=True))
    letters[8] = "0123456789X"[total % 11]
    return "".join(letters)


def rows_of(count: int, words: int) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the feed; descriptions have so many words."""
    chosen = random.Random(7)
    trims = []
    for make, models in _MODELS.items():
        for model in models:
            for trim in _TRIMS:
                cylinders = chosen.choice((4, 4, 6, 8))
                trims.append((
                    make, model, chosen.choice(("4dr Car", "SUV", "Crew Cab Pickup")), trim, chosen.choice((2, 4)),
                    cylinders, f"{cylinders / 2:.1f}L", chosen.choice(("Automatic", "CVT", "6-Speed Manual")),
                    ",".join(chosen.sample(_FEATURES, 8)), chosen.choice(("AWD", "Front Wheel Drive", "4WD")),
                    chosen.choice(("Gasoline Fuel", "Hybrid", "Gasoline")), chosen.randrange(18, 35),
                    chosen.randrange(25, 45),
                ))  # fmt: skip
    vocabulary = [
        f"{word}{end}" for word in ("one", "clean", "low", "well", "great") for end in ("ly", "est", "er", "")
    ]
    for number in range(count):
        make, model, body, trim, doors, cylinders, size, gears, options, drive, fuel, city, highway = chosen.choice(
            trims
        )
        is_new = number % 3 == 0
        price = chosen.randrange(9_000, 70_000)
        vin = vin_of(chosen, number)
        pictures = "|".join(f"https://photos.example.com/{vin}/{at}.jpg" for at in range(6))
        yield (
            vin, f"S{number:06}", "New" if is_new else "Used", chosen.randrange(2024, 2026), make, model, body, trim,
            doors, chosen.choice(_COLORS), chosen.choice(_COLORS), cylinders, size, gears,
            chosen.randrange(3, 30) if is_new else chosen.randrange(5_000, 90_000), price, price + 1_500, "No",
            f"{chosen.randrange(1, 9)}/{chosen.randrange(1, 28)}/2025",
            " ".join(chosen.choices(vocabulary, k=words)) + ", see it today", options, drive, fuel, city, highway,
            pictures,
        )  # fmt: skip


def write_feed(path: Path, count: int, *, words: int = 30, raised: int = 0) -> None:
    """Write a feed; `raised` is added to the price of every tenth row."""
    price = _COLUMNS.index("sellingprice")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for number, row in enumerate(rows_of(count, words)):
            changed = (
                row if number % 10 or not raised else (*row[:price], int(str(row[price])) + raised, *row[price + 1 :])
            )
            writer.writerow(changed)


def _held() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _used(whose: int) -> float:
    """Return the processor time of this process, or of those that it started and that have ended, in seconds."""
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


def run_once(source: str, address: str, allowance_mib: int) -> None:
    """Import one file in this process and print what it took as JSON; `allowance_mib` 0 is without a limit."""
    from forecourt.lead.seller import Seller
    from forecourt.server.config import Feed
    from forecourt.server.importing import import_feed
    from forecourt.store import open_store
    from forecourt.vocabulary import Vocabulary

    seller = Seller.from_profile(DEALER, {"name": ROOFTOP, "rooftops": [{"name": ROOFTOP}]})

    async def work() -> dict[str, Any]:
        store = open_store(address)
        await store.open()
        limited = 0
        if allowance_mib:
            limited = _held() + allowance_mib * _MIB
            resource.setrlimit(resource.RLIMIT_AS, (limited, limited))
        used = _used(resource.RUSAGE_SELF), _used(resource.RUSAGE_CHILDREN)
        begun = time.perf_counter()
        report = await import_feed(store, seller, Path(source), Feed(source=source), Vocabulary.packaged())
        seconds = time.perf_counter() - begun
        own, workers = _used(resource.RUSAGE_SELF) - used[0], _used(resource.RUSAGE_CHILDREN) - used[1]
        await store.close()
        return {
            "rows": report.rows,
            "imported": report.imported,
            "added": report.added,
            "changed": report.changed,
            "unchanged": report.unchanged,
            "seconds": seconds,
            "own_seconds": own,
            "worker_seconds": workers,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "child_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
            "limit_mib": limited / _MIB,
        }

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(asyncio.run(work()) | {"before_mib": before}))


def measured(source: Path, address: str, allowance_mib: int = 0) -> dict[str, Any]:
    """Import one file in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.import_speed", "--once", str(source), address, str(allowance_mib)]
    # One arena: the allocator reserves address space per thread that it never uses, and the limit counts it.
    environment = os.environ | ({"MALLOC_ARENA_MAX": "1"} if allowance_mib else {})
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def speed(folder: Path, rows: int, address: str) -> None:
    """Measure the three imports."""
    first, second = folder / "first.csv", folder / "second.csv"
    write_feed(first, rows)
    write_feed(second, rows, raised=100)
    print(f"{rows} rows, {first.stat().st_size / _MIB:.0f} MiB, {address.split(':', 1)[0]}")
    for name, source in (("empty store", first), ("unchanged", first), ("a tenth changed", second)):
        found = measured(source, address)
        print(
            f"{name:<16} {found['rows'] / found['seconds']:>8,.0f} rows/s  {found['seconds']:6.1f} s  "
            f"CPU per row: worker {found['worker_seconds'] / found['rows'] * 1e6:.0f} \u00b5s, "
            f"main process {found['own_seconds'] / found['rows'] * 1e6:.0f} \u00b5s  "
            f"peak {found['peak_mib']:.0f} MiB ({found['before_mib']:.0f} before), "
            f"its worker {found['child_mib']:.0f} MiB  "
            f"added {found['added']}, changed {found['changed']}, unchanged {found['unchanged']}"
        )


def memory(folder: Path, address: str) -> None:
    """Import a file ten times as large as the memory that may be taken for it."""
    source = folder / "large.csv"
    words, count = 700, 1000
    write_feed(source, count, words=words)
    count = count * _TIMES * _ALLOWANCE_MIB * _MIB // source.stat().st_size + 1000
    write_feed(source, count, words=words)
    size = source.stat().st_size / _MIB
    assert size >= _TIMES * _ALLOWANCE_MIB
    found = measured(source, address, _ALLOWANCE_MIB)
    assert found["imported"] == count
    print(
        f"{size:.0f} MiB ({count} rows) with {_ALLOWANCE_MIB} MiB of address space to take: imported in "
        f"{found['seconds']:.1f} s, peak {found['peak_mib']:.0f} MiB ({found['before_mib']:.0f} before)"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--store", help="the address of an empty database (default: SQLite in a temporary folder)")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--once", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.once:
        source, address, allowance = chosen.once
        run_once(source, address, int(allowance))
        return
    with tempfile.TemporaryDirectory(prefix="forecourt-bench-") as folder:
        address = chosen.store or f"sqlite:{Path(folder) / 'forecourt.db'}"
        if chosen.memory:
            memory(Path(folder), address)
        else:
            speed(Path(folder), chosen.rows, address)


if __name__ == "__main__":
    main()
