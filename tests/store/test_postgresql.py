"""What is PostgreSQL's own: how it is reached, servers that go away and come back, and how imports are written."""

import asyncio
import importlib.util
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.store.paused import import_during
from tests.store.postgresql_server import (
    PATIENCE,
    POSTGRESQL,
    OwnServer,
    connections,
    hang_up,
    own_server,
    unavailable,
    until,
)
from tests.store.sample import NOW, lead, listing, take_once

from forecourt.model import VehicleReference
from forecourt.store import PAST_KEPT, InventoryChange, LeadTransaction, Store, StoredListing, StoreError, open_store
from forecourt.store.statements import migrations


@pytest.fixture(autouse=True)
def driver() -> None:
    """What all of these need."""
    if importlib.util.find_spec("psycopg") is None:
        unavailable("psycopg is not installed")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with POSTGRESQL.fresh(tmp_path) as found:
        yield found


@pytest.fixture
def own() -> Iterator[OwnServer]:
    """A running server of our own, which a test may stop."""
    server = own_server()
    if server is None:
        unavailable("PostgreSQL's binaries are not installed")
    try:
        server.start()
        yield server
    finally:
        server.remove()


# How it is reached


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "PostgreSQL", "postgresql+psycopg"])
def test_both_schemes_of_postgresql_open_it(scheme: str) -> None:
    assert type(open_store(f"{scheme}://someone@db.example.com/forecourt")).__name__ == "PostgreSQLStore"


@pytest.mark.parametrize("rest", ["://someone:hunter2@[db", "://someone:hunter2@db/x?nosuch=1", ":hunter2", ""])
def test_an_address_that_cannot_be_read_is_refused_without_repeating_it(rest: str) -> None:
    with pytest.raises(ValueError, match="postgresql://user@host") as raised:
        open_store(f"postgresql{rest}")
    assert raised.value.__context__ is None
    assert "hunter2" not in str(raised.value)


def test_without_the_driver_the_extra_is_named_and_everything_else_works() -> None:
    script = (
        "import sys\n"
        "sys.modules['psycopg'] = None\n"
        "from forecourt.store import open_store\n"
        "open_store('sqlite:forecourt.db')\n"
        "try: open_store('postgresql://db.example.com/forecourt')\n"
        "except ValueError as error: assert 'forecourt[postgres]' in str(error)\n"
        "else: raise SystemExit('was opened')\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


def test_the_driver_is_loaded_for_this_store_only() -> None:
    script = (
        "import sys\n"
        "from forecourt.store import open_store\n"
        "open_store('sqlite:forecourt.db')\n"
        "raise SystemExit('psycopg' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


def test_a_server_that_is_not_there_is_a_store_error_without_the_password(runner: asyncio.Runner) -> None:
    store = open_store("postgresql://someone:hunter2@127.0.0.1:1/forecourt")
    with pytest.raises(StoreError) as raised:
        runner.run(store.open())
    assert "hunter2" not in f"{raised.value!r} {raised.value.__cause__!r}"
    assert raised.value.__context__ is None


# Settings


def test_every_commit_is_durable_and_every_wait_bounded_whatever_the_address_says(
    address: str, runner: asyncio.Runner
) -> None:
    from forecourt.store.postgresql import PostgreSQLStore

    store = PostgreSQLStore(address.replace("options=", "options=-csynchronous_commit%3Doff%20"))
    with closing(store._connect()) as connection:
        for name, value in {
            "synchronous_commit": "on",
            "statement_timeout": "15s",
            "lock_timeout": "5s",
            "idle_in_transaction_session_timeout": "4s",
            "client_encoding": "UTF8",
        }.items():
            assert connection.execute(f"SHOW {name}".encode()).fetchone() == (value,)


def test_an_operator_may_choose_other_waits(address: str) -> None:
    from forecourt.store.postgresql import PostgreSQLStore

    store = PostgreSQLStore(address.replace("options=", "options=-clock_timeout%3D9s%20"))
    with closing(store._connect()) as connection:
        assert connection.execute("SHOW lock_timeout").fetchone() == ("9s",)


def test_migrating_again_applies_nothing(address: str) -> None:
    from forecourt.store.postgresql import PostgreSQLStore, migrate

    with closing(PostgreSQLStore(address)._connect()) as connection:
        assert migrate(connection)[0] == "0001_inventory_and_leads"
        assert migrate(connection) == []


def test_times_are_given_as_the_other_stores_give_them(store: Store, runner: asyncio.Runner, tmp_path: Path) -> None:
    other = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
    runner.run(other.open())
    new = lead("lead_1", received_at=NOW + timedelta(microseconds=50))
    for each in (store, other):
        runner.run(each.decide_lead(lambda transaction: transaction.add(new)))
    assert runner.run(store.lead("lead_1")) == runner.run(other.lead("lead_1"))
    runner.run(other.close())


def test_a_key_and_an_identifier_may_hold_any_character(store: Store, runner: asyncio.Runner) -> None:
    runner.run(
        store.replace_listings("dealer-a", None, [StoredListing("a", "dealer-a", "N", "V\0", "1", "S", b"\0")], NOW)
    )
    runner.run(store.replace_listings("dealer-a", None, [], NOW))
    assert runner.run(store.has_departed(["dealer-a"], VehicleReference(vin="v")))
    assert not runner.run(store.has_departed(["dealer-a"], VehicleReference(stock="\0")))
    receipt = runner.run(store.decide_lead(take_once("a\0b")))
    assert runner.run(store.decide_lead(take_once("a\0b"))) == receipt
    assert runner.run(store.recall("scope-1", "ab", NOW)) is None


# Imports


def test_a_listing_found_unchanged_that_is_forgotten_before_the_end_makes_the_import_fail_whole(
    store: Store, runner: asyncio.Runner
) -> None:
    rows = [listing(f"{number:05}") for number in range(1500)]
    runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    others = [([listing("1", price=1)], timedelta(0)), ([listing("1", price=2)], 2 * PAST_KEPT)]
    with pytest.raises(StoreError, match="NotNullViolation"):
        runner.run(import_during(store, rows, others))
    assert [row.body for row in runner.run(store.read_listings(list))[1]] == [listing("1", price=2).body]
    assert runner.run(store.replace_listings("dealer-a", None, rows, NOW)).imported == 1500


def test_a_database_of_before_there_were_digests_knows_what_has_not_changed(
    address: str, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    import forecourt.store.postgresql as module

    older = migrations("postgresql")[:2]
    rows = [listing("1"), listing("2", rooftop="Süd")]
    with closing(module.PostgreSQLStore(address)._connect()) as connection, monkeypatch.context() as patch:
        patch.setattr(module, "migrations", lambda _: older)
        assert len(module.migrate(connection)) == 2
        for row in rows:
            connection.execute(
                "INSERT INTO listing (listing_id, dealer_id, rooftop, body) VALUES (%s, %s, %s, %s)",
                (row.listing_id, row.dealer_id, row.rooftop, row.body),
            )
    found = open_store(address)
    runner.run(found.open())
    change = runner.run(found.replace_listings("dealer-a", None, rows, NOW))
    runner.run(found.close())
    assert change == InventoryChange(imported=2, changed=0, unchanged=2, removed=0)


def test_rows_that_do_not_differ_are_not_written(store: Store, address: str, runner: asyncio.Runner) -> None:
    def versions() -> list[tuple[Any, ...]]:
        return list(POSTGRESQL.execute(address, "SELECT listing_id, xmin::text, xmax::text FROM listing ORDER BY 1"))

    runner.run(store.replace_listings("dealer-a", None, [listing("1"), listing("2")], NOW))
    before = versions()
    runner.run(store.replace_listings("dealer-a", None, [listing("1"), listing("2", price=1)], NOW))
    after = versions()
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_listings_with_an_identifier_in_common_may_depart_together(store: Store, runner: asyncio.Runner) -> None:
    rows = [listing("1", vin="VIN1"), listing("2", vin="VIN1")]
    runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    assert runner.run(store.replace_listings("dealer-a", None, [], NOW)).removed == 2


def test_two_imports_of_one_seller_are_decided_one_after_the_other(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    first_looks, second_waits = threading.Event(), threading.Event()

    def look(change: InventoryChange) -> None:
        first_looks.set()
        assert second_waits.wait(PATIENCE)

    async def both() -> list[InventoryChange]:
        first = asyncio.create_task(store.replace_listings("dealer-a", None, [listing("1")], NOW, look))
        await asyncio.to_thread(first_looks.wait, PATIENCE)
        second = asyncio.create_task(store.replace_listings("dealer-a", None, [listing("1"), listing("2")], NOW))
        await asyncio.to_thread(until, lambda: connections(address, waiting=True) == 1)
        second_waits.set()
        return [await first, await second]

    assert runner.run(both())[1] == InventoryChange(imported=2, changed=0, unchanged=1, removed=0)


# Servers that go away


def test_a_store_whose_connections_were_all_ended_works_at_once(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    async def use() -> None:
        await asyncio.gather(*(store.decide_lead(take_once(f"key-{number}")) for number in range(20)))
        await asyncio.gather(*(store.recall("scope-1", f"key-{number}", NOW) for number in range(20)))
        await store.replace_listings("dealer-a", None, [listing("1")], NOW)
        await store.check()

    runner.run(use())
    assert connections(address) > 1
    for _ in range(2):
        hang_up(address)
        runner.run(use())
    assert len(runner.run(store.leads(None, 100))) == 20


def test_a_connection_lost_inside_a_transaction_is_a_store_error_and_keeps_nothing(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    def work(transaction: LeadTransaction) -> None:
        transaction.add(lead(key="key-1"))
        hang_up(address)

    for _ in range(3):
        with pytest.raises(StoreError):
            runner.run(store.decide_lead(work))
        assert runner.run(store.leads(None, 10)) == []
    runner.run(store.decide_lead(take_once("key-1")))
    assert connections(address) <= 16


def test_a_server_that_crashed_is_a_store_error_until_it_is_back_and_has_every_lead(
    own: OwnServer, runner: asyncio.Runner
) -> None:
    store = open_store(own.address)
    runner.run(store.open())
    first = runner.run(store.decide_lead(take_once("key-1")))
    runner.run(store.replace_listings("dealer-a", None, [listing("1")], NOW))
    own.stop()
    for refused in (
        lambda: store.decide_lead(take_once("key-2")),
        lambda: store.recall("scope-1", "key-1", NOW),
        lambda: store.replace_listings("dealer-a", None, [], NOW),
        lambda: store.read_listings(list),
        store.check,
    ):
        with pytest.raises(StoreError):
            runner.run(refused())
    own.start()
    runner.run(store.check())
    assert runner.run(store.decide_lead(take_once("key-1"))) == first
    assert len(runner.run(store.read_listings(list))[1]) == 1
    assert [row.receipt for row in runner.run(store.leads(None, 10))] == [first]
    runner.run(store.close())


def test_a_database_that_may_not_be_written_does_not_pass_the_check(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    separate = open_store(address.replace("options=", "options=-cdefault_transaction_read_only%3Don%20"))
    with pytest.raises(StoreError):
        runner.run(separate.open())
    lanes = store.__dict__["_lanes"]
    connect = lanes["leads"]._connect
    lanes["leads"]._connect = separate.__dict__["_connect"]
    for refused in (store.check(), store.decide_lead(take_once("key-1"))):
        with pytest.raises(StoreError, match="it takes no writes"):
            runner.run(refused)
    lanes["leads"]._connect = connect
    hang_up(address)
    runner.run(store.check())


# Too much at once


def test_work_beyond_what_may_wait_is_refused_and_the_rest_is_done(
    address: str, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forecourt.store.postgresql import session

    monkeypatch.setattr(session, "_QUEUE", 8)
    store = open_store(address)
    runner.run(store.open())

    async def flood() -> list[bytes | BaseException]:
        work = [store.decide_lead(take_once(f"key-{number}")) for number in range(200)]
        return list(await asyncio.gather(*work, return_exceptions=True))

    answers = runner.run(flood())
    done = {answer for answer in answers if isinstance(answer, bytes)}
    assert all(isinstance(answer, bytes | StoreError) for answer in answers)
    assert 8 <= len(done) < 200
    assert {row.receipt for row in runner.run(store.leads(None, 1000))} == done
    runner.run(store.close())


def test_work_that_waited_too_long_for_a_thread_is_not_begun(address: str) -> None:
    from forecourt.store.postgresql.session import Lane, connector

    ran: list[int] = []

    async def wait_in_vain() -> None:
        lane = Lane("test", 1, 0.05, connector(address))
        first = asyncio.create_task(lane.run(lambda: time.sleep(0.2)))
        await asyncio.sleep(0)
        with pytest.raises(StoreError, match="busy"):
            await lane.run(lambda: ran.append(1))
        await first
        await lane.run(lambda: ran.append(2))
        await lane.close()

    asyncio.run(wait_in_vain())
    assert ran == [2]
