"""What waits for what while leads are decided on PostgreSQL (docstrings of `LeadTransaction` and `postgresql.lead`)."""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.store.postgresql_server import PATIENCE, POSTGRESQL, connections, locks, until
from tests.store.sample import NOW, booking, lead, take_once
from tests.store.worker import hold_a_lead_open

from forecourt.store import LeadTransaction, NewLead, Store, StoreError, open_store

HOUR = timedelta(hours=1)
SPAN = (NOW + HOUR, NOW + 2 * HOUR)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with POSTGRESQL.fresh(tmp_path) as found:
        yield found


def keep(*leads: NewLead) -> Callable[[LeadTransaction], None]:
    def work(transaction: LeadTransaction) -> None:
        for each in leads:
            transaction.add(each)

    return work


def ask_key(transaction: LeadTransaction) -> Any:
    return transaction.recall("scope-1", "key-1", NOW)


def ask_twin(transaction: LeadTransaction) -> Any:
    return transaction.twin("dealer-a", {"person-1"}, "none", NOW - HOUR)


def ask_busy(transaction: LeadTransaction) -> Any:
    return transaction.busy("dealer-a", "North", "sales", *SPAN)


def ask_twin_and_busy(transaction: LeadTransaction) -> Any:
    return ask_twin(transaction), ask_busy(transaction)


@pytest.mark.parametrize(
    ("question", "change"),
    [
        (ask_key, keep(lead(key="key-1", person_keys={"person-2"}))),
        (ask_twin, keep(lead())),
        (ask_twin, keep(lead(key="key-2"))),
        (ask_busy, keep(lead(person_keys={"person-2"}, booking=booking(SPAN[0])))),
        (ask_twin_and_busy, keep(lead(person_keys={"person-2"}, booking=booking(SPAN[0])))),
        (ask_twin_and_busy, lambda transaction: (ask_busy(transaction), transaction.add(lead(key="key-3")))),
    ],
)
def test_what_would_change_an_answer_waits_until_the_transaction_that_asked_ends(
    store: Store,
    address: str,
    runner: asyncio.Runner,
    question: Callable[[LeadTransaction], Any],
    change: Callable[[LeadTransaction], Any],
) -> None:
    def ask_twice(transaction: LeadTransaction) -> tuple[Any, Any]:
        first = question(transaction)
        asked.set()
        until(lambda: connections(address, waiting=True) == 1)
        return first, question(transaction)

    asked = threading.Event()

    async def both() -> tuple[Any, Any]:
        asking = asyncio.create_task(store.decide_lead(ask_twice))
        await asyncio.to_thread(asked.wait, PATIENCE)
        changing = asyncio.create_task(store.decide_lead(change))
        answers = await asking
        await changing
        return answers

    first, second = runner.run(both())
    assert first == second
    assert locks(address) == 0


def test_leads_of_different_persons_do_not_wait_for_each_other(
    store: Store, address: str, runner: asyncio.Runner
) -> None:
    """Of one seller, without an appointment: all are inside their transactions at the same moment."""
    together = threading.Barrier(4, timeout=PATIENCE)

    def work(person: str, key: str | None) -> Callable[[LeadTransaction], None]:
        def run(transaction: LeadTransaction) -> None:
            if key is None:
                transaction.twin("dealer-a", {person}, "none", NOW)
            else:
                transaction.recall("scope-1", key, NOW)
            transaction.add(lead(person_keys={person}, **({} if key is None else {"key": key})))
            together.wait()

        return run

    async def all_at_once() -> None:
        works = [work("p1", None), work("p2", None), work("p3", "k3"), work("p4", "k4")]
        await asyncio.gather(*(store.decide_lead(each) for each in works))

    runner.run(all_at_once())
    assert len(runner.run(store.leads(None, 10))) == 4


def test_one_person_with_and_without_a_key_for_one_calendar_never_deadlocks(
    store: Store, runner: asyncio.Runner
) -> None:
    def keyed(number: int) -> Callable[[LeadTransaction], Any]:
        def run(transaction: LeadTransaction) -> None:
            transaction.recall("scope-1", f"key-{number}", NOW)
            ask_busy(transaction)
            transaction.add(lead(key=f"key-{number}", booking=booking(SPAN[0])))

        return run

    def unkeyed(transaction: LeadTransaction) -> None:
        ask_twin_and_busy(transaction)
        transaction.add(lead(booking=booking(SPAN[0])))

    async def all_at_once() -> list[Any]:
        works = [work for number in range(40) for work in (keyed(number), unkeyed)]
        return await asyncio.gather(*(store.decide_lead(each) for each in works), return_exceptions=True)

    assert runner.run(all_at_once()) == [None] * 80
    assert runner.run(store.decide_lead(ask_busy)) == 80


def test_a_deadlock_that_the_work_itself_makes_fails_one_and_keeps_the_other(
    store: Store, runner: asyncio.Runner
) -> None:
    both_in = threading.Barrier(2, timeout=PATIENCE)

    def work(first: str, second: str) -> Callable[[LeadTransaction], str]:
        def run(transaction: LeadTransaction) -> str:
            transaction.recall("scope-1", first, NOW)
            both_in.wait()
            transaction.recall("scope-1", second, NOW)
            transaction.add(lead(f"lead_{first}", key=first))
            return first

        return run

    async def both() -> list[Any]:
        calls = [store.decide_lead(work("a", "b")), store.decide_lead(work("b", "a"))]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    answers = runner.run(both())
    assert sum(isinstance(each, StoreError) for each in answers) == 1
    assert [row.lead_id for row in runner.run(store.leads(None, 10))] == [
        f"lead_{each}" for each in answers if isinstance(each, str)
    ]


def test_work_that_goes_on_after_a_failed_statement_keeps_nothing(store: Store, runner: asyncio.Runner) -> None:
    runner.run(store.decide_lead(keep(lead("lead_1"))))

    def work(transaction: LeadTransaction) -> str:
        transaction.add(lead("lead_2"))
        try:
            transaction.add(lead("lead_1"))
        except Exception:
            return "never mind"
        return "not refused"

    with pytest.raises(StoreError):
        runner.run(store.decide_lead(work))
    assert [row.lead_id for row in runner.run(store.leads(None, 10))] == ["lead_1"]


def test_killing_a_process_inside_a_transaction_leaves_nothing_and_no_lock(
    store: Store, address: str, runner: asyncio.Runner, tmp_path: Path
) -> None:
    inside = tmp_path / "inside"
    process = multiprocessing.get_context("spawn").Process(target=hold_a_lead_open, args=(address, str(inside)))
    process.start()
    until(inside.exists)
    assert locks(address) > 0
    process.kill()
    process.join()
    process.close()
    until(lambda: locks(address) == 0)
    assert runner.run(store.leads(None, 10)) == []
    assert runner.run(store.recall("scope-1", "key-1", NOW)) is None
    receipt = runner.run(store.decide_lead(take_once("key-1")))
    assert [row.receipt for row in runner.run(store.leads(None, 10))] == [receipt]


@pytest.mark.parametrize("ask", [ask_key, ask_twin, ask_busy, ask_twin_and_busy, keep(lead())])
def test_a_decision_that_stands_still_is_ended_by_the_server_which_gives_its_locks_up(
    ask: Callable[[LeadTransaction], Any], address: str, runner: asyncio.Runner
) -> None:
    # The process lives and its connection does too, so that nothing but the server's clock can tell.
    store = open_store(address.replace("options=", "options=-cidle_in_transaction_session_timeout%3D100ms%20"))
    runner.run(store.open())
    asked = threading.Event()
    go_on = threading.Event()

    def work(transaction: LeadTransaction) -> None:
        ask(transaction)
        asked.set()
        assert go_on.wait(PATIENCE)

    async def story() -> None:
        task = asyncio.create_task(store.decide_lead(work))
        assert await asyncio.to_thread(asked.wait, PATIENCE)
        await asyncio.to_thread(until, lambda: locks(address) == 0)
        go_on.set()
        with pytest.raises(StoreError):
            await task

    try:
        runner.run(story())
        assert not runner.run(store.leads(None, 10))
    finally:
        go_on.set()
        runner.run(store.close())
