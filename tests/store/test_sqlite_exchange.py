"""How an import replaces a stock in SQLite: what it writes, when, and what is left of one that died."""

import asyncio
import json
import multiprocessing
import random
import sqlite3
import stat
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.store import worker
from tests.store.paused import import_during
from tests.store.sample import NOW, listing, take_once

from forecourt.store import PAST_KEPT, InventoryChange, PastListing, Store, StoredListing, open_store
from forecourt.store import sqlite as sqlite_store
from forecourt.store import sqlite_exchange as module
from forecourt.store.staging import BYTES
from forecourt.store.statements import migrations

PATIENCE = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "forecourt.db"


@pytest.fixture
def store(path: Path, runner: asyncio.Runner) -> Iterator[Store]:
    found = open_store(f"sqlite:{path}")
    runner.run(found.open())
    yield found
    runner.run(found.close())


def stock(count: int, price: int = 1) -> list[StoredListing]:
    return [listing(f"{number:05}", price=price) for number in range(count)]


def bodies(runner: asyncio.Runner, store: Store) -> list[bytes]:
    return runner.run(store.read_listings(lambda rows: [row.body for row in rows]))[1]


def only(path: Path, statement: str) -> int:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        found: int = connection.execute(statement).fetchone()[0]
        return found


def audit(path: Path) -> None:
    """Every edition belongs to one listing or one past listing, and each of these has one."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        pointing = connection.execute("SELECT edition FROM listing UNION ALL SELECT edition FROM past_listing")
        editions = connection.execute("SELECT edition FROM edition ORDER BY edition")
        assert sorted(pointing) == editions.fetchall()
        assert connection.execute("SELECT count(*) FROM loose_edition").fetchone() == (0,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_edition_is_written_once_and_belongs_to_one_listing_for_as_long_as_that_is_remembered(
    store: Store, path: Path, runner: asyncio.Runner
) -> None:
    chance = random.Random(5)
    for hour in range(20):
        rows = [listing(str(chance.randrange(40)), price=chance.randrange(3)) for _ in range(30)]
        moment = NOW + timedelta(hours=hour) * chance.choice([0, 1])
        runner.run(store.replace_listings("dealer-a", None, rows, moment))
        audit(path)
    runner.run(store.replace_listings("dealer-a", None, [], NOW + timedelta(hours=30)))
    runner.run(store.replace_listings("dealer-a", None, stock(1), NOW + timedelta(hours=31)))
    assert only(path, "SELECT count(*) FROM edition") == 1, "the past that is over is gone"


def test_a_stock_that_has_not_changed_is_not_written(store: Store, path: Path, runner: asyncio.Runner) -> None:
    runner.run(store.replace_listings("dealer-a", None, stock(3000), NOW))
    written: list[int] = []

    def rows() -> Iterator[StoredListing]:
        yield from stock(3000)
        written.append(only(path, "SELECT count(*) FROM edition"))

    change = runner.run(store.replace_listings("dealer-a", None, rows(), NOW))
    assert change == InventoryChange(imported=3000, changed=0, unchanged=3000, removed=0)
    assert written == [3000]


def test_leads_do_not_wait_while_the_feed_is_read_and_bodies_are_written_before_the_lock_is_taken(
    store: Store, path: Path, runner: asyncio.Runner
) -> None:
    seen: list[int] = []
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)) as other:

        def rows() -> Iterator[StoredListing]:
            for number, row in enumerate(stock(5000)):
                if number % 500 == 0:
                    other.execute("BEGIN IMMEDIATE")
                    other.execute("ROLLBACK")
                yield row

        def check(change: InventoryChange) -> None:
            seen.append(only(path, "SELECT count(*) FROM edition"))

        runner.run(store.replace_listings("dealer-a", None, rows(), NOW, check))
    assert seen == [5000]


def test_neither_memory_nor_the_log_grows_with_the_stock(store: Store, path: Path, runner: asyncio.Runner) -> None:
    log = path.with_name(f"{path.name}-wal")
    largest = 0
    # A connection that stays open keeps the log from being deleted.
    runner.run(store.check())

    def rows(count: int) -> Iterator[StoredListing]:
        nonlocal largest
        for number in range(count):
            yield replace(listing(f"{number:05}"), body=b"%d%s" % (number, b"x" * 8000))
            largest = max(largest, log.stat().st_size if number % 500 == 0 else 0)

    tracemalloc.start()
    try:
        runner.run(store.replace_listings("dealer-a", None, rows(5000), NOW))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * BYTES, "of 40 MB"
    assert largest < 16 << 20
    assert log.stat().st_size < 16 << 20


def test_what_an_import_has_written_so_far_is_not_swept_up_by_another(
    store: Store, path: Path, runner: asyncio.Runner
) -> None:
    rows = stock(2500)
    change = runner.run(import_during(store, rows, [(stock(50, price=2), timedelta(0)), ([], timedelta(hours=2))]))
    assert change == InventoryChange(imported=2500, changed=0, unchanged=0, removed=0)
    assert bodies(runner, store) == [row.body for row in rows]
    # What the two others left is swept up by whoever comes next.
    runner.run(store.replace_listings("dealer-a", None, rows, NOW + timedelta(hours=3)))
    audit(path)


@pytest.mark.parametrize("later", [timedelta(0), 2 * PAST_KEPT])
def test_a_listing_found_unchanged_that_another_import_changes_meanwhile_is_changed_back(
    store: Store, path: Path, runner: asyncio.Runner, later: timedelta
) -> None:
    rows = stock(2500)
    runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    before = runner.run(store.inventory_generation())
    # At the pause two thousand rows have been found unchanged; the rest is in a batch that is not compared yet.
    meanwhile = [(stock(2400, price=2), timedelta(0)), (stock(2400, price=3), later)]
    change = runner.run(import_during(store, rows, meanwhile))
    assert change == InventoryChange(imported=2500, changed=2400, unchanged=0, removed=0)
    assert bodies(runner, store) == [row.body for row in rows]
    assert runner.run(store.inventory_generation()) == before + 3
    found = runner.run(store.read_listings(list))[1]
    assert {(row.vehicle_id, row.stock) for row in found} == {(row.vehicle_id, f"s{row.vehicle_id}") for row in rows}
    runner.run(store.replace_listings("dealer-a", None, rows, NOW + later))
    audit(path)


def test_another_import_that_brings_the_same_first_leaves_nothing_twice(
    store: Store, path: Path, runner: asyncio.Runner
) -> None:
    rows = stock(2500)
    change = runner.run(import_during(store, rows, [(rows[:2000], timedelta(0))]))
    assert change == InventoryChange(imported=2500, changed=0, unchanged=2000, removed=0)
    runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    audit(path)


@pytest.mark.parametrize("others", range(1, module._TRIES + 1))
def test_imports_that_come_between_the_snapshot_and_the_lock_are_taken_into_account(
    store: Store, path: Path, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    old = stock(1200)
    runner.run(store.replace_listings("dealer-a", None, old, NOW))
    before = runner.run(store.inventory_generation())
    find_unused = module._Exchange._find_unused
    prices = iter(range(10, 10 + others))
    nested = False

    async def import_another(price: int) -> None:
        other = open_store(f"sqlite:{path}")
        await other.open()
        await other.replace_listings("dealer-a", None, [*stock(800, price), listing("another")], NOW)
        await other.close()

    def come_between(exchange: module._Exchange) -> None:
        nonlocal nested
        find_unused(exchange)
        price = None if nested else next(prices, None)
        if price is not None:
            nested = True
            asyncio.run(import_another(price))
            nested = False

    monkeypatch.setattr(module._Exchange, "_find_unused", come_between)
    rows = [*old[:1000], *stock(1300)[1200:]]
    change = runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    assert next(prices, None) is None
    assert change == InventoryChange(imported=1100, changed=800, unchanged=0, removed=1)
    assert bodies(runner, store) == [row.body for row in rows]
    assert runner.run(store.inventory_generation()) == before + others + 1
    monkeypatch.undo()
    runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    audit(path)


def test_an_import_that_is_killed_leaves_its_editions_to_the_next_one_which_deletes_them(
    store: Store, path: Path, tmp_path: Path, runner: asyncio.Runner
) -> None:
    rows = stock(100)
    runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    begun = tmp_path / "begun"
    process = multiprocessing.get_context("spawn").Process(
        target=worker.import_and_wait, args=(f"sqlite:{path}", str(begun)), daemon=True
    )
    process.start()
    until = time.monotonic() + PATIENCE
    while not begun.exists():
        assert process.is_alive()
        assert time.monotonic() < until
        time.sleep(0.005)
    # It runs: nothing of it is touched.
    runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    written = only(path, "SELECT count(*) FROM edition")
    assert written >= 100 + 2000
    process.kill()
    process.join()
    process.close()
    assert bodies(runner, store) == [row.body for row in rows]
    runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    audit(path)
    assert only(path, "SELECT count(*) FROM edition") == 100


@pytest.mark.parametrize("refused", ["feed", "check"])
def test_an_import_that_is_refused_leaves_nothing_behind(
    store: Store, path: Path, runner: asyncio.Runner, refused: str
) -> None:
    def rows() -> Iterator[StoredListing]:
        yield from stock(2500)
        if refused == "feed":
            raise LookupError

    def check(change: InventoryChange) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        runner.run(store.replace_listings("dealer-a", None, rows(), NOW, check))
    assert only(path, "SELECT count(*) FROM edition") == 0
    audit(path)
    runner.run(store.decide_lead(take_once("key-1")))


def test_the_file_whose_lock_tells_who_imports_is_empty_and_for_its_owner_only(
    store: Store, path: Path, runner: asyncio.Runner
) -> None:
    runner.run(store.replace_listings("dealer-a", None, stock(10), NOW))
    file = path.with_name("forecourt.db-imports")
    assert file.stat().st_size == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.unlink()
    assert runner.run(store.replace_listings("dealer-a", None, [], NOW)).removed == 10


def test_a_database_of_before_there_were_editions_keeps_its_stock_and_its_past(
    path: Path, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = migrations("sqlite")[:2]
    rows = [listing("1", vin="VIN1"), listing("2", rooftop="South")]
    gone = listing("3")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection, monkeypatch.context() as patch:
        patch.setattr(sqlite_store, "migrations", lambda _: older)
        assert len(sqlite_store.migrate(connection)) == 2
        for row in rows:
            values = (row.listing_id, row.dealer_id, row.rooftop, row.vin and row.vin.lower(), row.vehicle_id)
            connection.execute(
                "INSERT INTO listing VALUES (?, ?, ?, ?, ?, ?, ?, 4)", (*values, f"s{row.vehicle_id}", row.body)
            )
        connection.execute(
            "INSERT INTO past_listing VALUES (?, ?, 2, 5, ?, '2026-05-04T19:00:00.000000Z')",
            (gone.listing_id, gone.dealer_id, gone.body),
        )
        connection.execute("UPDATE inventory SET generation = 5, history_from = 1")
    store = open_store(f"sqlite:{path}")
    runner.run(store.open())
    audit(path)
    generation, found = runner.run(store.read_listings(list))
    assert generation == 5
    assert [(row.listing_id, row.vin, row.stock, row.body, row.generation) for row in found] == [
        ("dealer-a/1", "vin1", "s1", rows[0].body, 4),
        ("dealer-a/2", None, "s2", rows[1].body, 4),
    ]
    past = runner.run(store.past_listings(4, 5, 10, list))
    assert past == [PastListing("dealer-a/3", "dealer-a", gone.body)]
    change = runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    assert change == InventoryChange(imported=2, changed=0, unchanged=2, removed=0)
    assert json.loads(bodies(runner, store)[1])["rooftop"] == "South"
    runner.run(store.close())
