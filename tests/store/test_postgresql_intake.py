"""The quick way of new leads into PostgreSQL: one statement that is their commit, or nothing done."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.postgresql_server import POSTGRESQL, hang_up
from tests.store.sample import NOW, lead, take_once

from forecourt.store import Foreseen, LeadTransaction, NewDelivery, Store, StoreError, open_store
from forecourt.store.comparable import time_text
from forecourt.store.postgresql.intake import Intake
from forecourt.store.postgresql.session import conninfo_of
from forecourt.store.statements import queries


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with POSTGRESQL.fresh(tmp_path) as found:
        yield found


def new(key: str, **changes: Any) -> tuple[Any, Foreseen]:
    return take_once(key, **changes), Foreseen("scope-1", key, NOW)


def taken(runner: asyncio.Runner, address: str, *groups: list[tuple[Any, Foreseen]]) -> list[list[Any] | None]:
    """Take groups one after the other on one intake."""

    async def take() -> list[list[Any] | None]:
        intake = Intake(conninfo_of(address), queries("postgresql")["add_new"])
        try:
            return [await intake.take(group) for group in groups]
        finally:
            await intake.close()

    return runner.run(take())


def count(address: str, table: str) -> int:
    found: int = POSTGRESQL.execute(address, f"SELECT count(*) FROM {table}")[0][0]
    return found


def test_new_leads_are_written_with_all_that_belongs_to_them(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    deliveries = [NewDelivery("dlv_1", "crm", "adf", None), NewDelivery("dlv_2", "hook", "event", b"\0\xff")]
    changes: dict[str, Any] = {
        "deliveries": deliveries,
        "person_keys": {"a", "b"},
        "listing_id": "dealer-a/1",
        "caller": "agent-\u00fc",
        "snapshot": b'{"year":2020}',
        "business": b"\0sealed\xff",
        "vehicle_key": "listing:1",
    }
    (outcomes, none) = taken(
        runner, address, [new("key-1", lead_id="lead_1", **changes), new("key\0-2", lead_id="lead_2")], []
    )
    assert outcomes == [lead("lead_1").receipt, lead("lead_2").receipt]
    assert none == []
    kept = {row.lead_id: row for row in runner.run(store.leads(None, 10))}
    assert kept.keys() == {"lead_1", "lead_2"}
    first = kept["lead_1"]
    assert (first.business, first.grant, first.receipt) == (b"\0sealed\xff", lead().grant, lead("lead_1").receipt)
    assert (first.dealer_id, first.rooftop, first.listing_id, first.received_at, first.status) == (
        "dealer-a", "North", "dealer-a/1", time_text(NOW), "received",
    )  # fmt: skip
    assert first.snapshot == b'{"year":2020}'
    assert {table: count(address, table) for table in ("consent_grant", "lead_person", "idempotency", "delivery")} == {
        "consent_grant": 2, "lead_person": 3, "idempotency": 2, "delivery": 2,
    }  # fmt: skip
    contents = POSTGRESQL.execute(address, "SELECT content FROM delivery ORDER BY delivery_id")
    assert [row[0] for row in contents] == [None, b"\0\xff"]
    for key in ("key-1", "key\0-2"):
        assert runner.run(store.recall("scope-1", key, NOW)) is not None


def test_a_known_key_leaves_everything_as_it_was_even_one_that_has_expired(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    first, known, expired, fresh = taken(
        runner,
        address,
        [new("key-1"), new("key-2", expires_at=NOW)],
        [new("key-3"), new("key-1")],
        [new("key-3"), new("key-2")],
        [new("key-3")],
    )
    assert first
    assert known is expired is None
    assert fresh
    assert count(address, "lead") == count(address, "idempotency") == 3
    again = runner.run(store.decide_lead(*new("key-1")))
    assert again == first[0]


def test_one_that_cannot_be_decided_or_written_so_leaves_everything_as_it_was(
    store: Store,
    address: str,
    runner: asyncio.Runner,
) -> None:
    def refuse(transaction: LeadTransaction) -> None:
        transaction.add(lead(key="key-5"))
        raise LookupError

    bad = [
        new("key-1", lead_id="lead_0"),
        new("key-2", rooftop="\ud800"),
        new("key-3", rooftop="a\0b"),
        new("key-4", deliveries=[NewDelivery("dlv_1", "crm", "adf", None)] * 2),
        (refuse, Foreseen("scope-1", "key-5", NOW)),
    ]
    outcomes = taken(runner, address, [new("key-0", lead_id="lead_0")], *([new("key-9"), each] for each in bad))
    assert outcomes[0]
    assert outcomes[1:] == [None] * 5
    assert count(address, "lead") == 1


def test_a_lock_that_is_not_to_be_had_is_told_and_the_connection_goes_on(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    async def hold() -> None:
        release, held = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait(transaction: LeadTransaction) -> None:
            transaction.recall("scope-1", "held-by-another", NOW)
            loop.call_soon_threadsafe(held.set)
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result(10)

        holding = asyncio.create_task(store.decide_lead(wait))
        await held.wait()
        hasty = address.replace("options=", "options=-clock_timeout%3D200ms%20", 1)
        intake = Intake(conninfo_of(hasty), queries("postgresql")["add_new"])
        own: dict[str, Any] = {"dealer_id": "dealer-of-the-hasty", "person_keys": {"hasty"}}
        with pytest.raises(StoreError):
            await intake.take([new("free", **own), new("held-by-another", **own)])
        assert await intake.take([new("free", **own)])
        release.set()
        await holding
        assert await intake.take([new("held-by-another", **own)])
        await intake.close()

    runner.run(hold())
    assert count(address, "lead") == 2


def test_a_lost_connection_sends_its_leads_the_long_way_and_the_next_ones_go_on(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    async def lose() -> list[Any]:
        answers = [await store.decide_lead(*new("key-0"))]
        hang_up(address)
        answers += await asyncio.gather(*(store.decide_lead(*new(f"key-{number}")) for number in range(1, 5)))
        return answers + await asyncio.gather(*(store.decide_lead(*new(f"key-{number}")) for number in range(5, 9)))

    answers = runner.run(lose())
    assert {*answers} == {row.receipt for row in runner.run(store.leads(None, 20))}
    assert len({*answers}) == 9


def test_a_server_that_took_new_leads_but_was_lost_before_it_said_so_has_them_once(
    store: Store, address: str, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Intake._write

    async def losing(self: Intake, values: dict[str, str]) -> None:
        await write(self, values)
        hang_up(address)
        # On the connection that has just committed them.
        await self._free[-1].execute("SELECT 1")

    monkeypatch.setattr(Intake, "_write", losing)

    async def take() -> list[Any]:
        return await asyncio.gather(*(store.decide_lead(*new(f"key-{number}")) for number in range(4)))

    answers = runner.run(take())
    assert {*answers} == {row.receipt for row in runner.run(store.leads(None, 10))}
    assert len({*answers}) == 4


def test_where_the_driver_cannot_wait_with_the_event_loop_all_leads_go_the_long_way(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    asked = 0

    async def impossible(*_: object, **__: object) -> None:
        nonlocal asked
        asked += 1
        raise psycopg.InterfaceError("no such loop")

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", impossible)

    async def take() -> None:
        store = open_store(address)
        await store.open()
        answers = [await store.decide_lead(*new(f"key-{number}")) for number in range(3)]
        assert {*answers} == {row.receipt for row in await store.leads(None, 10)}
        await store.close()

    asyncio.run(take())
    assert asked == 1


def test_one_that_is_given_up_in_the_middle_leaves_no_connection_to_the_next(
    store: Store,
    address: str,
    runner: asyncio.Runner,
) -> None:
    async def give_up() -> None:
        intake = Intake(conninfo_of(address), "SELECT pg_sleep(10), %(leads)s, %(locks)s")
        task = asyncio.create_task(intake.take([new("key-1")]))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert intake._free == []
        await intake.close()

    runner.run(give_up())
