"""Deliveries, changes of status and forgetting, on every store (docstrings of `Outbox`)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.store.database import Database
from tests.store.sample import NOW, booking, lead

from forecourt.store import (
    Booking,
    Delivery,
    LeadFields,
    LeadRecord,
    LeadTransaction,
    NewDelivery,
    NewLead,
    NewStatus,
    Outcome,
    Purge,
    Purged,
    StatusChange,
    Store,
    open_store,
)

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def keep(store: Store, runner: asyncio.Runner, *leads: NewLead) -> None:
    def work(transaction: LeadTransaction) -> None:
        for each in leads:
            transaction.add(each)

    runner.run(store.decide_lead(work))


def parcel(number: int, target: str = "crm", kind: str = "adf", content: bytes | None = None) -> NewDelivery:
    return NewDelivery(f"dlv_{number:03}", target, kind, content)


def claim(
    store: Store, runner: asyncio.Runner, after: timedelta = timedelta(), holder: str = "w-1", **options: Any
) -> Sequence[Delivery]:
    now = NOW + after
    return runner.run(store.claim_deliveries(holder, now, now + MINUTE, options.pop("limit", 100), **options))


def only(store: Store, runner: asyncio.Runner, lead_id: str = "lead_1") -> Delivery:
    (found,) = runner.run(store.deliveries([lead_id]))
    return found


def one_lead(store: Store, runner: asyncio.Runner, **changes: Any) -> None:
    keep(store, runner, lead("lead_1", **{"deliveries": [parcel(1)], **changes}))


def test_a_lead_brings_its_deliveries_which_wait_from_its_arrival_on(store: Store, runner: asyncio.Runner) -> None:
    new = [parcel(1), parcel(2, "hook", "event", b"{}")]
    keep(store, runner, lead("lead_1", deliveries=new), lead("lead_2", deliveries=[parcel(3)]), lead("lead_3"))
    found = runner.run(store.deliveries(["lead_1"]))
    assert [(each.delivery_id, each.target, each.kind, each.content) for each in found] == [
        ("dlv_001", "crm", "adf", None),
        ("dlv_002", "hook", "event", b"{}"),
    ]
    assert {(each.status, each.attempts, each.turn, each.since, each.next_at) for each in found} == {
        ("waiting", 0, 0, NOW, NOW)
    }
    assert {(each.settled_at, each.reason, each.holder) for each in found} == {(None, None, None)}
    everything = runner.run(store.deliveries(["lead_1", "lead_2", "lead_3", "lead_4"]))
    assert [each.lead_id for each in everything] == ["lead_1", "lead_1", "lead_2"]
    assert runner.run(store.deliveries([])) == []
    assert runner.run(store.next_delivery_at()) == NOW
    assert runner.run(store.delivery_counts()) == {"waiting": 3, "parked": 0}


def test_a_lead_that_is_undone_leaves_no_delivery(store: Store, runner: asyncio.Runner) -> None:
    def work(transaction: LeadTransaction) -> None:
        transaction.add(lead("lead_1", deliveries=[parcel(1)]))
        raise LookupError

    with pytest.raises(LookupError):
        runner.run(store.decide_lead(work))
    assert runner.run(store.deliveries(["lead_1"])) == []
    assert runner.run(store.next_delivery_at()) is None


def test_what_is_claimed_is_nobody_elses_until_the_holders_time_is_over(store: Store, runner: asyncio.Runner) -> None:
    one_lead(store, runner)
    assert claim(store, runner, -SECOND) == []
    (held,) = claim(store, runner)
    assert (held.delivery_id, held.holder, held.attempts, held.next_at) == ("dlv_001", "w-1", 1, NOW + MINUTE)
    assert runner.run(store.next_delivery_at()) == NOW + MINUTE
    assert claim(store, runner, MINUTE - SECOND, "w-2") == []
    (taken,) = claim(store, runner, MINUTE, "w-2")
    assert (taken.holder, taken.attempts) == ("w-2", 2), "an attempt whose process died is one too"


def test_the_longest_due_are_claimed_first_up_to_the_limit_and_targets_can_be_left_out(
    store: Store, runner: asyncio.Runner
) -> None:
    late, early = lead("lead_1", deliveries=[parcel(1)], received_at=NOW - HOUR), lead("lead_2", deliveries=[parcel(2)])
    other = lead("lead_3", deliveries=[parcel(3, "slow"), parcel(4, "other")], received_at=NOW - DAY)
    keep(store, runner, early, late, other)

    def ids(**options: Any) -> list[str]:
        return [each.delivery_id for each in claim(store, runner, **options)]

    assert ids(limit=1, without=["slow", "other"]) == ["dlv_001"]
    assert ids(limit=2, without=["slow"]) == ["dlv_004", "dlv_002"]
    assert ids(limit=0) == []
    assert ids() == ["dlv_003"]


def test_two_that_claim_at_once_never_get_the_same(address: str, store: Store, runner: asyncio.Runner) -> None:
    keep(store, runner, *(lead(f"lead_{number}", deliveries=[parcel(number)]) for number in range(60)))

    async def race() -> list[str]:
        others = [open_store(address) for _ in range(3)]
        for other in others:
            await other.open()
        stores = [store, *others]
        asked = [
            each.claim_deliveries(f"{n}-{m}", NOW, NOW + MINUTE, 7) for n, each in enumerate(stores) for m in range(5)
        ]
        found = [delivery for part in await asyncio.gather(*asked) for delivery in part]
        for other in others:
            await other.close()
        return [each.delivery_id for each in found]

    taken = runner.run(race())
    assert len(set(taken)) == len(taken)
    rest = [each.delivery_id for each in claim(store, runner)]
    assert sorted(taken + rest) == [f"dlv_{number:03}" for number in range(60)]


def test_a_holder_may_hold_on_for_as_long_as_it_is_the_holder(store: Store, runner: asyncio.Runner) -> None:
    one_lead(store, runner)
    (held,) = claim(store, runner)
    assert runner.run(store.hold_delivery(held, NOW + 2 * MINUTE))
    assert claim(store, runner, MINUTE, "w-2") == []
    (taken,) = claim(store, runner, 2 * MINUTE, "w-2")
    assert not runner.run(store.hold_delivery(held, NOW + HOUR))
    assert runner.run(store.hold_delivery(taken, NOW + HOUR))


def test_a_success_is_recorded_once(store: Store, runner: asyncio.Runner) -> None:
    one_lead(store, runner)
    (held,) = claim(store, runner)
    assert runner.run(store.settle_delivery(held, Outcome("delivered", NOW + SECOND)))
    found = only(store, runner)
    assert (found.status, found.settled_at, found.holder, found.reason) == ("delivered", NOW + SECOND, None, None)
    assert not runner.run(store.settle_delivery(held, Outcome("delivered", NOW + MINUTE)))
    assert not runner.run(store.settle_delivery(held, Outcome("parked", NOW + MINUTE)))
    assert claim(store, runner, DAY) == []
    assert runner.run(store.next_delivery_at()) is None
    assert runner.run(store.delivery_counts()) == {"waiting": 0, "parked": 0}


def test_a_failure_waits_for_its_next_time_and_the_last_one_is_parked(store: Store, runner: asyncio.Runner) -> None:
    one_lead(store, runner)
    (held,) = claim(store, runner)
    assert runner.run(store.settle_delivery(held, Outcome("waiting", NOW, NOW + HOUR, "cannot be reached")))
    found = only(store, runner)
    assert (found.status, found.next_at, found.reason, found.settled_at) == (
        "waiting", NOW + HOUR, "cannot be reached", None,
    )  # fmt: skip
    assert claim(store, runner, HOUR - SECOND) == []
    (held,) = claim(store, runner, HOUR)
    assert runner.run(store.settle_delivery(held, Outcome("parked", NOW + HOUR, None, "refused")))
    found = only(store, runner)
    assert (found.status, found.attempts, found.reason, found.settled_at) == ("parked", 2, "refused", NOW + HOUR)
    assert claim(store, runner, DAY) == []
    assert runner.run(store.delivery_counts()) == {"waiting": 0, "parked": 1}


def test_of_a_holder_whose_time_is_over_only_a_success_counts(store: Store, runner: asyncio.Runner) -> None:
    one_lead(store, runner)
    (late,) = claim(store, runner)
    (held,) = claim(store, runner, MINUTE, "w-2")
    assert not runner.run(store.settle_delivery(late, Outcome("parked", NOW + MINUTE, None, "refused")))
    assert only(store, runner).holder == "w-2"
    assert runner.run(store.settle_delivery(late, Outcome("delivered", NOW + MINUTE)))
    assert not runner.run(store.settle_delivery(held, Outcome("waiting", NOW + MINUTE, NOW + HOUR, "lost")))
    assert only(store, runner).status == "delivered"


def test_a_delivery_that_is_asked_for_again_keeps_its_id_and_begins_its_next_turn(
    store: Store, runner: asyncio.Runner
) -> None:
    one_lead(store, runner)
    (held,) = claim(store, runner)
    runner.run(store.settle_delivery(held, Outcome("parked", NOW, None, "refused")))
    assert runner.run(store.resend_deliveries("lead_1", NOW + HOUR)) == 1
    assert only(store, runner) == replace(held, attempts=0, turn=1, since=NOW + HOUR, next_at=NOW + HOUR, holder=None)
    (again,) = claim(store, runner, HOUR)
    assert (again.delivery_id, again.turn) == ("dlv_001", 1)
    assert not runner.run(store.settle_delivery(held, Outcome("delivered", NOW + HOUR))), "that was the turn before"
    assert runner.run(store.settle_delivery(again, Outcome("delivered", NOW + HOUR)))


def test_one_that_was_never_tried_is_only_made_due(store: Store, runner: asyncio.Runner) -> None:
    one_lead(store, runner)
    assert runner.run(store.resend_deliveries("lead_1", NOW - HOUR)) == 1
    assert (only(store, runner).turn, only(store, runner).next_at) == (0, NOW - HOUR)
    assert runner.run(store.resend_deliveries("lead_2", NOW)) == 0


def test_events_that_have_arrived_are_sent_again_only_when_their_target_is_named(
    store: Store, runner: asyncio.Runner
) -> None:
    deliveries = [parcel(1), parcel(2, "hook", "event", b"{}"), parcel(3, "hook", "event", b"{}")]
    one_lead(store, runner, deliveries=deliveries)
    for held in claim(store, runner)[:2]:
        runner.run(store.settle_delivery(held, Outcome("delivered", NOW)))
    assert runner.run(store.resend_deliveries("lead_1", NOW)) == 2
    assert [each.status for each in runner.run(store.deliveries(["lead_1"]))] == ["waiting", "delivered", "waiting"]
    assert runner.run(store.resend_deliveries("lead_1", NOW, "hook")) == 2
    assert runner.run(store.resend_deliveries("lead_1", NOW, "other")) == 0


def no_deliveries(changes: Sequence[StatusChange]) -> Sequence[NewDelivery]:
    return ()


def test_a_change_of_status_is_kept_with_its_time_and_what_tells_of_it(store: Store, runner: asyncio.Runner) -> None:
    one_lead(store, runner, deliveries=[])
    told: list[Sequence[StatusChange]] = []

    def tell(changes: Sequence[StatusChange]) -> Sequence[NewDelivery]:
        told.append(list(changes))
        return [parcel(9, "hook", "event", b'{"status":"working"}')]

    change = StatusChange("lead_1", "lead_1", "received", "working", NOW + HOUR)
    assert runner.run(store.change_status("lead_1", NewStatus("working"), NOW + HOUR, tell)) == [change]
    assert told == [[change]]
    assert only(store, runner).content == b'{"status":"working"}'
    assert only(store, runner).next_at == NOW + HOUR
    assert runner.run(store.change_status("lead_1", NewStatus("working"), NOW + DAY, tell)) == []
    assert runner.run(store.change_status("lead_2", NewStatus("working"), NOW + DAY, tell)) == []
    assert len(told) == 1
    sold = replace(change, previous="working", status="sold_to", changed_at=NOW + DAY)
    assert runner.run(store.change_status("lead_1", NewStatus("sold_to"), NOW + DAY, no_deliveries)) == [sold]
    assert runner.run(store.status_changes("lead_1")) == [change, sold]
    record = runner.run(store.lead("lead_1"))
    assert record is not None
    assert record.status == "sold_to"


def test_a_change_whose_telling_fails_is_no_change(store: Store, runner: asyncio.Runner) -> None:
    one_lead(store, runner)

    def fail(changes: Sequence[StatusChange]) -> Sequence[NewDelivery]:
        raise LookupError

    with pytest.raises(LookupError):
        runner.run(store.change_status("lead_1", NewStatus("lost"), NOW, fail))
    record = runner.run(store.lead("lead_1"))
    assert record is not None
    assert record.status == "received"
    assert runner.run(store.status_changes("lead_1")) == []


def busy(store: Store, runner: asyncio.Runner) -> int:
    span = (NOW + HOUR, NOW + 2 * HOUR)
    return runner.run(store.decide_lead(lambda t: t.busy("dealer-a", "North", "sales", *span)))


def booked(store: Store, runner: asyncio.Runner) -> Booking:
    record = runner.run(store.lead("lead_1"))
    assert record is not None
    assert record.booking is not None
    return record.booking


def test_an_appointment_gives_its_slot_up_when_it_is_not_confirmed_any_more_and_takes_it_when_it_is(
    store: Store, runner: asyncio.Runner
) -> None:
    one_lead(store, runner, booking=booking(NOW + HOUR))
    before = booked(store, runner)
    assert busy(store, runner) == 1

    def change(wanted: NewStatus) -> Sequence[StatusChange]:
        return runner.run(store.change_status("lead_1", wanted, NOW, no_deliveries))

    assert change(NewStatus(appointment="cancelled")) == [
        StatusChange("lead_1", before.appointment_id, "confirmed", "cancelled", NOW)
    ]
    assert busy(store, runner) == 0
    assert booked(store, runner) == replace(before, status="cancelled")
    start, end = NOW + 3 * HOUR, NOW + 4 * HOUR
    assert len(change(NewStatus("working", "confirmed", start, end))) == 2
    assert busy(store, runner) == 0
    assert booked(store, runner) == replace(before, start=start, end=end)
    span = (start, end)
    assert runner.run(store.decide_lead(lambda t: t.busy("dealer-a", "North", "sales", *span))) == 1
    assert [each.entity_id for each in runner.run(store.status_changes("lead_1"))] == [
        before.appointment_id, "lead_1", before.appointment_id,
    ]  # fmt: skip


def test_a_lead_without_an_appointment_has_none_to_change(store: Store, runner: asyncio.Runner) -> None:
    one_lead(store, runner)
    changed = runner.run(store.change_status("lead_1", NewStatus(appointment="confirmed"), NOW, no_deliveries))
    assert changed == []


def record_of(store: Store, runner: asyncio.Runner, lead_id: str) -> LeadRecord | None:
    return runner.run(store.lead(lead_id))


def test_purging_deletes_what_is_personal_and_keeps_the_proof_of_consent(
    store: Store, runner: asyncio.Runner, database: Database, address: str
) -> None:
    old = lead(
        "lead_1", key="key-1", received_at=NOW - 2 * DAY, caller="c", snapshot=b'{"make":"Honda"}',
        booking=booking(NOW), deliveries=[parcel(1), parcel(2)], business=b'{"customer":"Zephyrine"}',
    )  # fmt: skip
    keep(store, runner, old, lead("lead_2", deliveries=[parcel(3)]))
    held, _, _ = claim(store, runner)
    runner.run(store.settle_delivery(held, Outcome("delivered", NOW)))
    runner.run(store.change_status("lead_1", NewStatus("lost"), NOW, no_deliveries))
    purge = Purge(NOW - DAY, NOW - 9 * DAY, NOW)
    assert runner.run(store.count_purge(purge)) == Purged(1, 0, 0)
    before = record_of(store, runner, "lead_1")
    assert runner.run(store.purge_leads(purge)) == Purged(1, 0, 0)
    assert runner.run(store.purge_leads(purge)) == Purged(0, 0, 0)
    after = record_of(store, runner, "lead_1")
    assert before is not None
    assert after is not None
    assert after.purged_at is not None
    assert after == replace(before, business=b"", snapshot=None, purged_at=after.purged_at)
    assert after.grant == old.grant
    assert database.execute(address, "SELECT count(*) FROM lead_person WHERE lead_id = 'lead_1'") == [(0,)]
    assert [(each.status, each.reason) for each in runner.run(store.deliveries(["lead_1"]))] == [
        ("delivered", None),
        ("parked", "the lead's personal data was deleted"),
    ]
    assert runner.run(store.resend_deliveries("lead_1", NOW)) == 0
    assert len(runner.run(store.status_changes("lead_1"))) == 1
    assert runner.run(store.recall("scope-1", "key-1", NOW)) is not None, "a retry is still known"
    untouched = record_of(store, runner, "lead_2")
    assert untouched is not None
    assert untouched.purged_at is None


def test_a_proof_goes_when_its_time_is_over_with_all_that_belongs_to_the_lead(
    store: Store, runner: asyncio.Runner, database: Database, address: str
) -> None:
    keep(
        store, runner,
        lead("lead_1", key="key-1", received_at=NOW - 9 * DAY, booking=booking(NOW), deliveries=[parcel(1)]),
        lead("lead_2", received_at=NOW - 9 * DAY, dealer_id="dealer-b"),
        lead("lead_3", received_at=NOW - 2 * DAY),
    )  # fmt: skip
    runner.run(store.change_status("lead_1", NewStatus("lost"), NOW, no_deliveries))
    purge = Purge(NOW - DAY, NOW - 8 * DAY, NOW, "dealer-a")
    assert runner.run(store.count_purge(purge)) == Purged(2, 1, 0)
    assert runner.run(store.purge_leads(purge)) == Purged(2, 1, 0)
    assert [each.lead_id for each in runner.run(store.leads(None, 9))] == ["lead_3", "lead_2"]
    for table in ("consent_grant", "lead_person", "idempotency", "appointment", "delivery", "status_change"):
        assert database.execute(address, f"SELECT count(*) FROM {table} WHERE lead_id = 'lead_1'") == [(0,)]


def test_more_leads_than_one_transaction_takes_are_purged(store: Store, runner: asyncio.Runner) -> None:
    keep(store, runner, *(lead(person_keys={f"p{number}"}) for number in range(1100)))
    assert runner.run(store.purge_leads(Purge(NOW + DAY, NOW + DAY, NOW + DAY))) == Purged(1100, 1100, 0)
    assert runner.run(store.leads(None, 5)) == []


def test_keys_go_when_they_have_expired(store: Store, runner: asyncio.Runner) -> None:
    keep(store, runner, *(lead(key=f"key-{hours}", expires_at=NOW + hours * HOUR) for hours in range(5)))
    assert runner.run(store.sweep(NOW + 2 * HOUR, NOW - DAY, 2)) == 2
    assert runner.run(store.recall("scope-1", "key-2", NOW)) is not None
    assert runner.run(store.sweep(NOW + 2 * HOUR, NOW - DAY, 2)) == 1
    assert runner.run(store.sweep(NOW + 2 * HOUR, NOW - DAY, 2)) == 0
    assert runner.run(store.recall("scope-1", "key-3", NOW)) is not None
    assert runner.run(store.count_purge(Purge(NOW - DAY, NOW - DAY, NOW + 3 * HOUR))) == Purged(0, 0, 1)
    assert runner.run(store.purge_leads(Purge(NOW - DAY, NOW - DAY, NOW + 3 * HOUR))) == Purged(0, 0, 1)


def test_what_recognises_a_person_goes_when_it_is_not_asked_for_any_more(store: Store, runner: asyncio.Runner) -> None:
    keep(store, runner, *(lead(f"lead_{hours}", received_at=NOW + hours * HOUR) for hours in range(4)))
    assert runner.run(store.sweep(NOW, NOW + 2 * HOUR, 1)) == 1
    assert runner.run(store.sweep(NOW, NOW + 2 * HOUR, 9)) == 1
    assert runner.run(store.sweep(NOW, NOW + 2 * HOUR, 9)) == 0
    first = runner.run(store.decide_lead(lambda t: t.twin("dealer-a", {"person-1"}, "none", NOW)))
    assert first == lead("lead_2").receipt
    assert len(runner.run(store.leads(None, 9))) == 4


def test_a_leads_snapshot_and_its_appointment_come_back_with_it(store: Store, runner: asyncio.Runner) -> None:
    visit = booking(NOW + HOUR)
    one_lead(store, runner, snapshot=b'{"make":"Honda"}', booking=visit)
    for record in (record_of(store, runner, "lead_1"), runner.run(store.leads(None, 1))[0]):
        assert record is not None
        assert (record.snapshot, record.booking, record.purged_at) == (b'{"make":"Honda"}', visit, None)


# One lead purged, and what is kept of leads exchanged


def test_one_lead_is_purged_whatever_its_age_and_no_other(store: Store, runner: asyncio.Runner) -> None:
    keep(store, runner, lead("lead_1", key="k"), lead("lead_2"))
    wanted = Purge(NOW, NOW, NOW + 100 * DAY, lead_id="lead_1")
    assert runner.run(store.count_purge(wanted)) == Purged(1, 0, 0)
    assert runner.run(store.purge_leads(wanted)) == Purged(1, 0, 0)
    assert runner.run(store.purge_leads(wanted)) == runner.run(store.count_purge(wanted)) == Purged(0, 0, 0)
    first, second = runner.run(store.lead("lead_1")), runner.run(store.lead("lead_2"))
    assert first is not None
    assert second is not None
    assert (first.business, bool(first.purged_at), first.grant) == (b"", True, second.grant)
    assert (second.business, second.purged_at) == (lead().business, None)
    # Its key still answers a retry, which must not make the lead anew.
    assert runner.run(store.recall("scope-1", "k", NOW)) is not None


def fields(number: int, business: bytes = b"old:b", grant: bytes = b"old:g") -> LeadFields:
    return LeadFields(f"lead_{number}", business, grant)


def test_what_is_kept_of_leads_is_walked_by_id_and_by_how_it_begins(store: Store, runner: asyncio.Runner) -> None:
    made = [fields(1), fields(2, b"new:b", b"new:g"), fields(3, b"new:b"), fields(4, b"old:b", b"new:g")]
    keep(store, runner, *(lead(each.lead_id, business=each.business, grant=each.grant) for each in made))
    assert runner.run(store.lead_fields("", 3)) == made[:3]
    assert runner.run(store.lead_fields("lead_3", 3)) == made[3:]
    assert runner.run(store.lead_fields("", 9, b"new:")) == [made[0], *made[2:]]
    assert runner.run(store.lead_fields("lead_1", 1, b"new:")) == [made[2]]
    assert runner.run(store.count_lead_fields(b"new:")) == 3
    assert runner.run(store.count_lead_fields(b"old:")) == 3
    runner.run(store.purge_leads(Purge(NOW, NOW, NOW, lead_id="lead_4")))
    # Of a purged lead the grant alone is there to look at.
    assert runner.run(store.lead_fields("lead_3", 9, b"new:")) == []
    assert runner.run(store.lead_fields("lead_3", 9, b"old:")) == [fields(4, b"", b"new:g")]


def test_what_is_kept_is_exchanged_where_it_is_as_it_was(store: Store, runner: asyncio.Runner) -> None:
    keep(store, runner, *(lead(f"lead_{number}", business=b"old:b", grant=b"old:g") for number in (1, 2)))
    runner.run(store.purge_leads(Purge(NOW, NOW, NOW, lead_id="lead_2")))
    changes = [(fields(number), fields(number, b"new:b", b"new:g")) for number in (1, 2, 3)]
    assert runner.run(store.exchange_lead_fields(changes)) == 2
    assert runner.run(store.exchange_lead_fields(changes)) == 0
    assert runner.run(store.exchange_lead_fields([])) == 0
    # What was purged after it was read does not come back.
    assert runner.run(store.lead_fields("", 9)) == [fields(1, b"new:b", b"new:g"), fields(2, b"", b"new:g")]
