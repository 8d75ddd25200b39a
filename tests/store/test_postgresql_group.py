"""Leads that come together on PostgreSQL: one transaction, and each its own outcome."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.postgresql_server import POSTGRESQL, hang_up
from tests.store.sample import NOW, booking, lead, take_once

from forecourt.store import Foreseen, LeadTransaction, NewDelivery, NewLead, Store, StoreError, open_store
from forecourt.store.postgresql import group as module


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with POSTGRESQL.fresh(tmp_path) as found:
        yield found


async def keyed(store: Store, key: str, work: Callable[[LeadTransaction], Any] | None = None, **changes: Any) -> Any:
    return await store.decide_lead(work or take_once(key, **changes), Foreseen("scope-1", key, NOW))


async def together(*asked: Any) -> list[Any]:
    return list(await asyncio.gather(*asked, return_exceptions=True))


def keep(*leads: NewLead) -> Callable[[LeadTransaction], int]:
    def work(transaction: LeadTransaction) -> int:
        for each in leads:
            transaction.add(each)
        return len(leads)

    return work


def transactions(address: str) -> set[Any]:
    """Return the transactions that leads were written in, whose numbers PostgreSQL keeps beside the rows."""
    return {found[0] for found in POSTGRESQL.execute(address, "SELECT xmin::text FROM lead")}


def test_leads_that_come_together_share_a_transaction_and_are_all_there(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    sent = [NewDelivery(f"dlv_{n}_{m}", f"t{m}", "event", b"{}" if m else None) for n in range(40) for m in range(2)]
    changes: list[dict[str, Any]] = [
        {"lead_id": f"lead_{n}", "person_keys": {f"a{n}", f"b{n}"}, "deliveries": sent[2 * n : 2 * n + 2]}
        for n in range(40)
    ]
    answers = runner.run(together(*(keyed(store, f"key-{n}", **changes[n]) for n in range(40))))
    assert answers == [lead(f"lead_{n}").receipt for n in range(40)]
    assert len(transactions(address)) <= 4
    kept = {row.lead_id: row for row in runner.run(store.leads(None, 100))}
    assert kept.keys() == {f"lead_{n}" for n in range(40)}
    assert {row.grant for row in kept.values()} == {lead().grant}
    assert len(runner.run(store.deliveries(list(kept)))) == 80
    for table, count in (("lead_person", 80), ("idempotency", 40)):
        assert POSTGRESQL.execute(address, f"SELECT count(*) FROM {table}")[0][0] == count
    assert runner.run(together(*(keyed(store, f"key-{n}") for n in range(40)))) == answers


def test_equal_keys_that_come_together_make_one_lead_each(store: Store, runner: asyncio.Runner) -> None:
    answers = runner.run(together(*(keyed(store, f"key-{number % 3}") for number in range(60))))
    assert len(set(answers)) == 3
    assert answers[:3] * 20 == answers
    assert len(runner.run(store.leads(None, 100))) == 3


def test_one_that_fails_leaves_the_others_whole(store: Store, runner: asyncio.Runner) -> None:
    def refuse(transaction: LeadTransaction) -> None:
        transaction.add(lead("lead_refused"))
        raise LookupError("refused")

    runner.run(keyed(store, "key-first", lead_id="lead_first"))
    good = [keyed(store, f"key-{number}", lead_id=f"lead_{number}") for number in range(6)]
    bad = [
        keyed(store, "bad-1", keep(lead("lead_b"), lead("lead_first"))),
        keyed(store, "bad-2", refuse),
        keyed(store, "bad-3", rooftop="a\0b"),
        keyed(store, "bad-4", rooftop="\ud800"),
        keyed(store, "bad-5", keep(lead(booking=booking(NOW)))),
        keyed(store, "bad-6", lambda transaction: transaction.twin("dealer-a", {"person-1"}, "none", NOW)),
    ]
    answers = runner.run(together(*good[:3], *bad, *good[3:]))
    kinds = [type(answer) for answer in answers[3:9]]
    assert kinds == [StoreError, LookupError, StoreError, UnicodeEncodeError, StoreError, StoreError]
    assert [answer for answer in answers if isinstance(answer, bytes)] == [lead(f"lead_{n}").receipt for n in range(6)]
    kept = {row.lead_id for row in runner.run(store.leads(None, 100))}
    assert kept == {"lead_first", *(f"lead_{number}" for number in range(6))}


def test_keys_asked_for_by_two_processes_in_opposite_orders_never_deadlock(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    async def both() -> list[Any]:
        other = open_store(address)
        await other.open()
        try:
            numbers = [*range(60)]
            ahead = [keyed(store, f"key-{n}", person_keys={f"p{n % 7}", f"p{n % 5}"}) for n in numbers]
            back = [keyed(other, f"key-{n}", person_keys={f"p{n % 5}", f"p{n % 7}"}) for n in reversed(numbers)]
            alone = [
                store.decide_lead(take_once(f"key-{n}", booking=booking(None, status="proposed"))) for n in numbers
            ]
            found = await together(*ahead, *back, *alone)
        finally:
            await other.close()
        return found

    for _ in range(3):
        answers = runner.run(both())
        assert {type(answer) for answer in answers} == {bytes}
        assert answers[:60] == answers[119:59:-1] == answers[120:]
        assert len(runner.run(store.leads(None, 1000))) == 60


def test_a_key_that_another_process_holds_keeps_the_others_for_a_while_only(
    address: str, runner: asyncio.Runner
) -> None:
    impatient = open_store(address.replace("options=", "options=-clock_timeout%3D200ms%20", 1))
    runner.run(impatient.open())

    async def hold() -> list[Any]:
        holder = open_store(address)
        await holder.open()
        release, held = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait(transaction: LeadTransaction) -> None:
            transaction.recall("scope-1", "held-3", NOW)
            loop.call_soon_threadsafe(held.set)
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result(10)

        holding = asyncio.create_task(holder.decide_lead(wait))
        await held.wait()
        # Locks are a whole database's: other tests' leads must not be of the same seller and person.
        own: dict[str, Any] = {"dealer_id": "dealer-of-the-impatient", "person_keys": {"impatient"}}
        answers = await together(*(keyed(impatient, f"held-{number}", **own) for number in range(8)))
        release.set()
        await holding
        await holder.close()
        return answers

    answers = runner.run(hold())
    assert [isinstance(answer, StoreError) for answer in answers] == [number == 3 for number in range(8)]
    assert len(runner.run(impatient.leads(None, 100))) == 7
    runner.run(impatient.close())


def test_a_connection_lost_in_the_middle_of_a_group_fails_it_whole(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    def lose(transaction: LeadTransaction) -> bytes:
        hang_up(address)
        return take_once("key-1")(transaction)

    # A known key among them, so that they go the long way.
    known = runner.run(keyed(store, "key-2"))
    works = [keyed(store, "key-0"), keyed(store, "key-1", lose), keyed(store, "key-2")]
    answers = runner.run(together(*works))
    assert {type(answer) for answer in answers} == {StoreError}
    assert [row.receipt for row in runner.run(store.leads(None, 10))] == [known]
    assert len({*runner.run(together(*(keyed(store, f"key-{number}") for number in range(3))))}) == 3


def test_a_lead_without_a_key_waits_for_its_twin_that_is_just_being_written(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    def twin_or_new(transaction: LeadTransaction) -> bytes:
        new = lead()
        first = transaction.twin("dealer-a", {"person-1"}, "none", NOW)
        if first is None:
            transaction.add(new)
        return first or new.receipt

    async def both() -> list[Any]:
        other = open_store(address)
        await other.open()
        try:
            asked = [keyed(store, f"key-{number}") for number in range(8)]
            return await together(*asked, *(other.decide_lead(twin_or_new) for _ in range(8)))
        finally:
            await other.close()

    for _ in range(5):
        answers = runner.run(both())
        # Whoever came first, those without a key are one lead, if any.
        assert len({*answers[8:]} - {*answers[:8]}) <= 1
        assert {type(answer) for answer in answers} == {bytes}


@pytest.mark.parametrize("groups", [1, 2])
def test_a_lead_that_comes_as_the_last_group_ends_is_not_forgotten(
    store: Store, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    monkeypatch.setattr(module, "_AT_A_TIME", groups)

    async def ask(caller: int) -> None:
        for number in range(10):
            await keyed(store, f"key-{caller}-{number}")

    async def all_of_them() -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(ask(caller) for caller in range(5)))

    runner.run(all_of_them())
    assert len(runner.run(store.leads(None, 100))) == 50


def test_leads_that_wait_are_taken_before_the_store_closes(address: str, runner: asyncio.Runner) -> None:
    async def leave() -> list[Any]:
        found = open_store(address)
        await found.open()
        asked = [asyncio.create_task(keyed(found, f"key-{number}")) for number in range(200)]
        await asyncio.sleep(0)
        await found.close()
        return await together(*asked)

    assert {type(answer) for answer in runner.run(leave())} == {bytes}
