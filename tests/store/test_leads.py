"""Leads in every store: kept whole, once, and only then acknowledged (docstrings of `Store` and `LeadTransaction`)."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.store.database import Database
from tests.store.sample import NOW, booking, lead, take_once, take_slot

from forecourt.store import (
    LeadRecord,
    LeadTransaction,
    NewLead,
    Remembered,
    Secret,
    Store,
    StoreError,
    open_store,
)

HOUR = timedelta(hours=1)


def keep(*leads: NewLead) -> Callable[[LeadTransaction], None]:
    def work(transaction: LeadTransaction) -> None:
        for each in leads:
            transaction.add(each)

    return work


def ask(runner: asyncio.Runner, store: Store, question: Callable[[LeadTransaction], Any]) -> Any:
    return runner.run(store.decide_lead(question))


def _busy(
    dealer_id: str, rooftop: str, department: str, start: datetime, end: datetime
) -> Callable[[LeadTransaction], int]:
    return lambda transaction: transaction.busy(dealer_id, rooftop, department, start, end)


async def _together(calls: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    return await asyncio.gather(*calls, return_exceptions=True)


def test_an_acknowledged_lead_is_there_after_reopening_with_everything_that_belongs_to_it(
    address: str, runner: asyncio.Runner
) -> None:
    first, second = open_store(address), open_store(address)
    new = lead("lead_1", key="key-1", listing_id="dealer-a/1", caller="c", booking=booking(NOW + HOUR))
    runner.run(first.open())
    runner.run(first.decide_lead(keep(new)))
    runner.run(first.close())
    runner.run(second.open())
    found = runner.run(second.lead("lead_1"))
    assert found is not None
    assert datetime.fromisoformat(found.received_at) == NOW
    assert found == LeadRecord(
        "lead_1", "dealer-a", "North", "dealer-a/1", "received", found.received_at, new.business, new.grant,
        new.receipt, booking=new.booking,
    )  # fmt: skip
    assert runner.run(second.recall("scope-1", "key-1", NOW)) == Remembered("f-1", new.receipt)
    assert ask(runner, second, lambda t: t.busy("dealer-a", "North", "sales", NOW + HOUR, NOW + 2 * HOUR)) == 1
    runner.run(second.close())


def test_what_the_work_returns_comes_back_and_it_is_not_run_twice(store: Store, runner: asyncio.Runner) -> None:
    ran: list[int] = []

    def work(transaction: LeadTransaction) -> int:
        ran.append(1)
        transaction.add(lead("lead_1"))
        return 42

    assert ask(runner, store, work) == 42
    assert ran == [1]


def test_what_the_work_raises_comes_out_and_undoes_only_that_work(store: Store, runner: asyncio.Runner) -> None:
    class RefusedError(Exception):
        pass

    def work(number: int) -> Callable[[LeadTransaction], int]:
        def run(transaction: LeadTransaction) -> int:
            transaction.add(lead(f"lead_{number}", key=f"key-{number}", booking=booking(NOW + HOUR)))
            if number % 2:
                raise RefusedError(number)
            return number

        return run

    answers = runner.run(_together([store.decide_lead(work(number)) for number in range(40)]))
    for number, answer in enumerate(answers):
        kept = runner.run(store.lead(f"lead_{number}")) is not None
        key_kept = runner.run(store.recall("scope-1", f"key-{number}", NOW)) is not None
        if number % 2:
            assert isinstance(answer, RefusedError)
            assert answer.args == (number,)
            assert not kept
            assert not key_kept
        else:
            assert answer == number
            assert kept
            assert key_kept
    assert ask(runner, store, lambda t: t.busy("dealer-a", "North", "sales", NOW, NOW + 2 * HOUR)) == 20


def test_a_failing_statement_is_a_store_error_and_undoes_only_its_own_work(
    store: Store, runner: asyncio.Runner
) -> None:
    ask(runner, store, keep(lead("lead_0")))

    def work(number: int) -> Callable[[LeadTransaction], None]:
        # Every third work keeps one lead more and then the first one again, whose id is taken.
        return keep(lead(f"lead_{number}"), *([] if number % 3 else [lead("lead_0")]))

    answers = runner.run(_together([store.decide_lead(work(number)) for number in range(1, 31)]))
    for number, answer in enumerate(answers, 1):
        assert isinstance(answer, StoreError) == (number % 3 == 0)
        assert (runner.run(store.lead(f"lead_{number}")) is None) == (number % 3 == 0)


def test_a_store_error_says_nothing_of_the_lead(store: Store, runner: asyncio.Runner) -> None:
    marked = lead("lead_marked", business=b'{"first_name":"Marked"}', key="key-marked")
    ask(runner, store, keep(marked))
    with pytest.raises(StoreError) as raised:
        ask(runner, store, keep(marked))
    assert raised.value.__cause__ is not None
    assert "marked" not in f"{raised.value!r} {raised.value.__cause__!r}".lower()


def test_sixty_four_tasks_with_one_key_make_one_lead_and_get_one_answer(store: Store, runner: asyncio.Runner) -> None:
    answers = runner.run(_together([store.decide_lead(take_once("key-1")) for _ in range(64)]))
    assert len(set(answers)) == 1
    assert [row.receipt for row in runner.run(store.leads(None, 100))] == [answers[0]]


def test_a_slot_is_never_given_beyond_its_capacity(store: Store, runner: asyncio.Runner) -> None:
    answers = runner.run(_together([store.decide_lead(take_slot(NOW + HOUR, 3)) for _ in range(40)]))
    assert answers.count(True) == 3
    assert answers.count(False) == 37


@pytest.mark.parametrize(
    ("start", "end", "count"),
    [
        (0, 60, 1),
        (30, 90, 1),
        (-30, 1, 1),
        (10, 20, 1),
        (-60, 0, 0),
        (60, 120, 0),
    ],
)
def test_busy_counts_confirmed_appointments_that_overlap_the_half_open_span(
    store: Store, runner: asyncio.Runner, start: int, end: int, count: int
) -> None:
    ask(runner, store, keep(lead(booking=booking(NOW, 60))))
    ask(runner, store, keep(lead(booking=booking(NOW, 60, "requested"))))
    ask(runner, store, keep(lead(booking=booking(None, status="proposed"))))
    span = (NOW + timedelta(minutes=start), NOW + timedelta(minutes=end))
    assert ask(runner, store, lambda t: t.busy("dealer-a", "North", "sales", *span)) == count


def test_busy_counts_one_department_of_one_rooftop_of_one_seller(store: Store, runner: asyncio.Runner) -> None:
    ask(runner, store, keep(lead(booking=booking(NOW)), lead(booking=booking(NOW))))
    span = (NOW, NOW + HOUR)
    assert ask(runner, store, lambda t: t.busy("dealer-a", "North", "sales", *span)) == 2
    for elsewhere in (("dealer-b", "North", "sales"), ("dealer-a", "South", "sales"), ("dealer-a", "North", "service")):
        assert ask(runner, store, _busy(*elsewhere, *span)) == 0


def test_times_are_compared_as_instants_whatever_their_zone(store: Store, runner: asyncio.Runner) -> None:
    west, east = timezone(-7 * HOUR), timezone(9 * HOUR)
    new = lead(key="k", booking=booking(NOW.astimezone(west)), received_at=NOW.astimezone(east))
    ask(runner, store, keep(new))
    assert ask(runner, store, lambda t: t.busy("dealer-a", "North", "sales", NOW.astimezone(east), NOW + HOUR)) == 1
    assert runner.run(store.recall("scope-1", "k", (NOW + timedelta(days=30, seconds=-1)).astimezone(west)))
    assert ask(runner, store, lambda t: t.twin("dealer-a", {"person-1"}, "none", NOW.astimezone(west)))


def test_a_key_is_recalled_in_its_scope_until_it_expires(store: Store, runner: asyncio.Runner) -> None:
    new = lead(key="key-1", expires_at=NOW + HOUR)
    ask(runner, store, keep(new))
    known = Remembered("f-1", new.receipt)
    just_before = NOW + HOUR - timedelta(microseconds=1)
    assert runner.run(store.recall("scope-1", "key-1", just_before)) == known
    assert ask(runner, store, lambda t: t.recall("scope-1", "key-1", just_before)) == known
    assert runner.run(store.recall("scope-1", "key-1", NOW + HOUR)) is None
    assert ask(runner, store, lambda t: t.recall("scope-1", "key-1", NOW + HOUR)) is None
    assert runner.run(store.recall("scope-2", "key-1", NOW)) is None
    assert runner.run(store.recall("scope-1", "KEY-1", NOW)) is None


def test_a_key_is_recalled_in_each_of_many_scopes_that_know_it(store: Store, runner: asyncio.Runner) -> None:
    odd = json.dumps(["dealer-é", 'agent "1"'])
    kept = {
        scope: lead(f"lead_{number}", key="key-1", scope=scope, expires_at=NOW + HOUR * number)
        for number, scope in enumerate(("scope-1", odd, "scope-3", "not-asked"), start=1)
    }
    ask(runner, store, keep(*kept.values(), lead("lead_9", key="key-2", scope="scope-4", expires_at=NOW + 9 * HOUR)))
    asked = [*(f"other-{number}" for number in range(3000)), "scope-4", "scope-3", odd, "scope-1"]

    def found(key: str, now: datetime) -> dict[str, Remembered]:
        return dict(runner.run(store.recall_among(asked, key, now)))

    expected = {scope: Remembered("f-1", kept[scope].receipt) for scope in ("scope-1", odd, "scope-3")}
    assert found("key-1", NOW) == expected
    del expected["scope-1"]
    assert found("key-1", NOW + HOUR) == expected, "what has expired is not known"
    assert found("KEY-1", NOW) == {}
    assert runner.run(store.recall_among([], "key-1", NOW)) == {}


def test_an_expired_key_can_be_used_again(store: Store, runner: asyncio.Runner) -> None:
    ask(runner, store, keep(lead(key="key-1", expires_at=NOW + HOUR)))
    again = lead(key="key-1", fingerprint="f-2", received_at=NOW + 2 * HOUR, expires_at=NOW + 9 * HOUR)
    ask(runner, store, keep(again))
    assert runner.run(store.recall("scope-1", "key-1", NOW + 3 * HOUR)) == Remembered("f-2", again.receipt)
    assert len(runner.run(store.leads(None, 10))) == 2


def test_work_sees_what_was_decided_just_before_it_in_the_same_moment(store: Store, runner: asyncio.Runner) -> None:
    def twin_or_new(transaction: LeadTransaction) -> bytes:
        first = transaction.twin("dealer-a", {"person-1"}, "none", NOW - HOUR)
        if first is None:
            transaction.add(new := lead())
            return new.receipt
        return first

    answers = runner.run(_together([store.decide_lead(twin_or_new) for _ in range(30)]))
    assert len(set(answers)) == 1
    assert len(runner.run(store.leads(None, 100))) == 1


def test_a_twin_is_the_earliest_lead_of_any_of_the_persons_about_the_same_vehicle(
    store: Store, runner: asyncio.Runner
) -> None:
    early = lead(person_keys={"person-z"}, received_at=NOW)
    late = lead(person_keys={"person-a", "person-b"}, received_at=NOW + HOUR)
    ask(runner, store, keep(late, early))

    def twin(*persons: str, vehicle: str = "none", since: datetime = NOW, dealer: str = "dealer-a") -> bytes | None:
        found: bytes | None = ask(runner, store, lambda t: t.twin(dealer, set(persons), vehicle, since))
        return found

    assert twin("person-a", "person-z") == early.receipt
    assert twin("person-b") == late.receipt
    assert twin("person-a", "person-z", since=NOW + timedelta(microseconds=1)) == late.receipt
    assert twin("person-a", "person-z", since=NOW + 2 * HOUR) is None
    assert twin("person-a", vehicle="listing:other") is None
    assert twin("person-a", dealer="dealer-b") is None
    assert twin("person-c") is None
    assert twin() is None


@pytest.mark.parametrize("statement", ["UPDATE consent_grant SET body = 'x'", "UPDATE consent_grant SET lead_id = 'y'"])
def test_a_grant_is_never_altered_not_even_past_the_store(
    store: Store, runner: asyncio.Runner, database: Database, address: str, statement: str
) -> None:
    new = lead("lead_1", grant=b'{ "consent_text" : "Yes \xc3\xbc",  "scope": ["lead_submission"] }')
    ask(runner, store, keep(new))
    with pytest.raises(Exception, match="never altered"):
        database.execute(address, statement)
    found = runner.run(store.lead("lead_1"))
    assert found is not None
    assert found.grant == new.grant


def test_leads_are_listed_newest_first_and_at_most_the_limit(store: Store, runner: asyncio.Runner) -> None:
    for number in range(6):
        at = NOW + HOUR * (number // 2)
        dealer = "dealer-b" if number == 5 else "dealer-a"
        ask(runner, store, keep(lead(f"lead_{number}", received_at=at, dealer_id=dealer)))

    def listed(dealer_id: str | None, limit: int) -> list[str]:
        return [row.lead_id for row in runner.run(store.leads(dealer_id, limit))]

    assert listed(None, 3) == ["lead_5", "lead_4", "lead_3"]
    assert listed("dealer-a", 10) == ["lead_4", "lead_3", "lead_2", "lead_1", "lead_0"]
    assert listed("dealer-c", 10) == []
    assert runner.run(store.lead("lead_9")) is None


def test_any_text_is_kept_as_it_is(store: Store, runner: asyncio.Runner) -> None:
    text = "O'Brien; DROP TABLE lead;-- %s :x ?1 \u00fc \U0001f697"
    business = json.dumps({"message": text + "\0"}).encode()
    ask(runner, store, keep(lead("lead_1", key=text, scope=text, rooftop=text, business=business)))
    found = runner.run(store.lead("lead_1"))
    assert found is not None
    assert (found.rooftop, found.business) == (text, business)
    assert runner.run(store.recall(text, text, NOW)) is not None


def test_the_first_caller_makes_the_secret_and_everyone_gets_it(store: Store, runner: asyncio.Runner) -> None:
    made: list[int] = []

    def make() -> Secret:
        made.append(1)
        return Secret(f"k{len(made)}", bytes(range(32)))

    answers = runner.run(_together([store.secrets("cursor", make, NOW) for _ in range(10)]))
    assert made == [1]
    assert all(list(answer) == [Secret("k1", bytes(range(32)))] for answer in answers)
    other = runner.run(store.secrets("webhook", lambda: Secret("w", b"2"), NOW))
    assert list(other) == [Secret("w", b"2")]


def test_a_cancelled_caller_does_not_half_cancel_its_work(store: Store, runner: asyncio.Runner) -> None:
    async def cancel_at_once() -> None:
        task = asyncio.create_task(store.decide_lead(take_once("key-1")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    runner.run(cancel_at_once())
    answer = runner.run(store.decide_lead(take_once("key-1")))
    assert [row.receipt for row in runner.run(store.leads(None, 10))] == [answer]
