"""What goes into the outbox, and what comes of an attempt (ADF.md, "Rules for the mapping"; AAP 1.1, event schema)."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from tests.lead.adf.sample import AGENT, CALIFORNIA, CONSENT, CUSTOMER, END, LEAD_ID, RECEIVED, SELLER, START

from forecourt.lead.adf import ADFOptions, check
from forecourt.lead.delivery import DeliveryError
from forecourt.lead.outbox import (
    SNAPSHOT_MEMBERS,
    Destination,
    Dispatch,
    Retry,
    opened,
    parcel,
    sealed_places,
    snapshot,
)
from forecourt.lead.sealing import Sealer
from forecourt.store import Booking, Delivery, LeadRecord, StatusChange

SEALER: Final = Sealer([bytes(32)])
CRM: Final = Destination("demo/crm")
VISIT: Final = Booking("appt_1", "sales", "test_drive", "confirmed", START, END)
BUSINESS: Final[dict[str, Any]] = {
    "customer": dict(CUSTOMER),
    "consent": dict(CONSENT),
    "source_agent": dict(AGENT),
    "vehicle_of_interest": {"vehicle_id": "veh_1"},
}


def record(business: dict[str, Any] | None = None, **changes: Any) -> LeadRecord:
    """Return a stored lead about a listing that is not in stock any more."""
    values: dict[str, Any] = {
        "lead_id": LEAD_ID,
        "dealer_id": SELLER.dealer_id,
        "rooftop": CALIFORNIA,
        "listing_id": "gone",
        "status": "received",
        "received_at": RECEIVED.isoformat(),
        "business": json.dumps(business or BUSINESS).encode(),
        "grant": b'{ "consent_text": "as it came" }',
        "receipt": b"{}",
        "snapshot": b'{"vehicle_id":"veh_1","year":2024,"make":"Honda","model":"Civic"}',
    }
    return LeadRecord(**{**values, **changes})


def delivery(kind: str = "adf", **changes: Any) -> Delivery:
    """Return a delivery at its first attempt."""
    made = Delivery("dlv_1", LEAD_ID, "demo/crm", kind, None, "waiting", 1, 0, RECEIVED, RECEIVED, None, None, "w-1")
    return replace(made, **changes)


def adf(business: dict[str, Any] | None = None, turn: int = 0, **changes: Any) -> bytes:
    """Return what a CRM gets."""
    return parcel(record(business, **changes), delivery(turn=turn), SELLER, CRM, Sealer()).content


def failure(found: LeadRecord | None, kind: str = "adf", sealer: Sealer | None = None) -> DeliveryError:
    """Return why something cannot be sent."""
    with pytest.raises(DeliveryError) as caught:
        parcel(found, delivery(kind), SELLER, CRM, sealer or Sealer())
    return caught.value


# What is put in


def test_a_lead_goes_to_every_destination_of_its_seller_and_rooftop() -> None:
    dispatch = Dispatch(
        {
            "a": [Destination("a/crm"), Destination("a/mail", "notice", "North"), Destination("a/s", "adf", "South")],
            "b": [Destination("b/crm")],
        }
    )
    found = dispatch.of_lead("a", "lead_1", "North", None, RECEIVED)
    assert [(each.target, each.kind, each.content) for each in found] == [
        ("a/crm", "adf", None),
        ("a/mail", "notice", None),
    ]
    assert len({each.delivery_id for each in found}) == 2
    assert dispatch.of_lead("c", "lead_1", "North", None, RECEIVED) == ()
    assert dispatch.destination("b/crm") == Destination("b/crm")
    assert dispatch.destination("b/gone") is None


def test_a_destination_for_events_gets_the_arrival_of_the_lead_and_of_its_appointment() -> None:
    dispatch = Dispatch({"a": [Destination("a/hook", "event")]})
    lead, visit = dispatch.of_lead("a", "lead_1", "North", VISIT, RECEIVED)
    assert (lead.kind, visit.kind) == ("event", "event")
    assert lead.content is not None
    assert visit.content is not None
    assert json.loads(lead.content) == {
        "type": "aap.event",
        "event_kind": "lead.status_changed",
        "entity_id": "lead_1",
        "status": "received",
        "occurred_at": "2026-04-30T11:05:09+00:00",
        "payload": {"dealer_id": "a", "rooftop": "North"},
    }
    assert json.loads(visit.content) == {
        "type": "aap.event",
        "event_kind": "appointment.status_changed",
        "entity_id": "appt_1",
        "status": "confirmed",
        "occurred_at": "2026-04-30T11:05:09+00:00",
        "payload": {"lead_id": "lead_1", "confirmed_at": "2026-05-03T18:00:00+00:00"},
    }


def test_a_change_is_told_to_destinations_for_events_alone_and_a_cancelled_appointment_as_rejected() -> None:
    dealer = SELLER.dealer_id
    dispatch = Dispatch({dealer: [CRM, Destination("demo/hook", "event"), Destination("demo/x", "event", "Elsewhere")]})
    changes = [
        StatusChange(LEAD_ID, LEAD_ID, "received", "working", RECEIVED),
        StatusChange(LEAD_ID, "appt_1", "confirmed", "cancelled", RECEIVED),
    ]
    found = dispatch.of_changes(record(booking=VISIT), changes)
    assert {each.target for each in found} == {"demo/hook"}
    first, second = [json.loads(each.content or b"") for each in found]
    assert (first["entity_id"], first["status"], first["payload"]["previous_status"]) == (
        LEAD_ID,
        "working",
        "received",
    )
    assert (second["entity_id"], second["status"]) == ("appt_1", "rejected")
    assert second["payload"] == {"lead_id": LEAD_ID, "previous_status": "confirmed", "reason": "cancelled"}


def test_of_a_listing_only_what_the_mapping_needs_is_kept() -> None:
    listing = {"make": "Honda", "photos": ["1", "2"], "description": "long", "features": ["x"], "vin": "V"}
    assert json.loads(snapshot(json.dumps(listing).encode()) or b"") == {"vin": "V", "make": "Honda", "photos": ["1"]}
    assert snapshot(None) is None
    assert len(set(SNAPSHOT_MEMBERS)) == len(SNAPSHOT_MEMBERS)


# What is sent


def test_a_lead_is_adf_in_seven_bits_from_what_was_kept_with_it() -> None:
    made = parcel(record(), delivery(), SELLER, CRM, Sealer())
    assert (made.delivery_id, made.lead_id, made.kind, made.vendor) == ("dlv_1", LEAD_ID, "adf", CALIFORNIA)
    assert made.calendar is None
    assert made.content.isascii()
    assert check(made.content) == []
    assert b'<prospect status="new">' in made.content
    assert b"<make>Honda</make>" in made.content


def test_a_lead_that_is_sent_again_says_so_and_keeps_its_id() -> None:
    again = adf(turn=1)
    assert b'<prospect status="resend">' in again
    assert LEAD_ID.encode() in again


def test_the_options_of_the_destination_count() -> None:
    branded = replace(CRM, options=ADFOptions(brand="Example Network"))
    assert b"Example Network" in parcel(record(), delivery(), SELLER, branded, Sealer()).content


@pytest.mark.parametrize(("status", "said"), [("cancelled", b"declined"), ("no_show", b"confirmed")])
def test_a_status_that_adf_has_no_words_for_is_written_in_those_it_has(status: str, said: bytes) -> None:
    business = {**BUSINESS, "appointment": {"appointment_type": "test_drive"}}
    assert said in adf(business, booking=replace(VISIT, status=status))


def test_a_notice_has_an_invitation_when_the_appointment_is_confirmed() -> None:
    business = {**BUSINESS, "appointment": {"appointment_type": "test_drive"}}
    made = parcel(record(business, booking=VISIT), delivery("notice"), SELLER, CRM, Sealer())
    assert b"Ada Example" in made.content
    assert made.calendar is not None
    assert b"UID:appt_1" in made.calendar
    requested = replace(VISIT, status="requested", start=None, end=None)
    plain = parcel(record(business, booking=requested), delivery("notice"), SELLER, CRM, Sealer())
    assert plain.calendar is None


def test_an_event_is_sent_as_it_was_written_also_of_a_lead_that_was_purged() -> None:
    kept = delivery("event", content=b'{"type":"aap.event"}')
    made = parcel(record(business=None, purged_at="2026-05-01"), kept, SELLER, CRM, Sealer())
    assert (made.kind, made.content) == ("event", b'{"type":"aap.event"}')


def test_a_sealed_lead_is_sent_and_opened_with_the_key_and_waits_without_it() -> None:
    at_business, at_grant = sealed_places(LEAD_ID)
    plain = record()
    sealed = replace(plain, business=SEALER.seal(plain.business, at_business), grant=SEALER.seal(plain.grant, at_grant))
    assert b"ada@example.com" not in sealed.business
    assert parcel(sealed, delivery(), SELLER, CRM, SEALER) == parcel(plain, delivery(), SELLER, CRM, Sealer())
    assert opened(sealed, SEALER) == opened(plain, SEALER) == (BUSINESS, plain.grant)
    error = failure(sealed)
    assert error.reason.startswith("the lead cannot be opened: the key ")
    assert not error.permanent


def test_what_cannot_be_mapped_or_is_gone_is_given_up_with_a_reason_that_shows_nothing_of_it() -> None:
    broken = {**BUSINESS, "customer": "Zephyrine"}
    for found, reason in (
        (record(broken), "the lead cannot be written: AttributeError"),
        (record(purged_at="2026-05-01", business=None), "the lead's personal data was deleted"),
        (None, "the lead or its seller is not here any more"),
    ):
        error = failure(found)
        assert (error.reason, error.permanent) == (reason, True)


def test_a_lead_beyond_what_adf_holds_names_the_rule_and_not_the_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forecourt.lead.adf.prospect.check", lambda *_, **__: [f"/adf/{n}: too long" for n in range(9)])
    error = failure(record())
    assert error.reason == "the lead cannot be written as ADF: /adf/0: too long; /adf/1: too long; /adf/2: too long"
    assert error.permanent


# What comes of a failure


def after(attempts: int, late: float, jitter: float = 0.0, retry: Retry | None = None, **error: Any) -> Any:
    """Return the outcome of an attempt, and the seconds until the next."""
    now: datetime = RECEIVED + timedelta(seconds=late)
    failed = DeliveryError("cannot be reached", **error)
    outcome = (retry or Retry()).after(delivery(attempts=attempts), failed, now, lambda: jitter)
    assert outcome.reason == "cannot be reached"
    assert outcome.at == now
    return outcome.status if outcome.next_at is None else (outcome.next_at - now).total_seconds()


def test_waits_double_from_the_first_with_up_to_a_quarter_more() -> None:
    assert [after(attempts, 0) for attempts in (1, 2, 3, 4, 10)] == [10, 20, 40, 80, 5120]
    assert after(1, 0, jitter=1.0) == 12.5
    assert after(29, 0) == 6 * 3600, "no wait is longer than six hours"


def test_the_last_attempt_is_made_when_the_time_is_over_and_then_it_is_parked() -> None:
    assert after(14, 86_400 - 600) == 600
    assert after(14, 86_400) == "parked"
    assert after(14, 86_401) == "parked"


def test_the_waits_of_a_day_are_less_than_the_attempts_allowed() -> None:
    late, attempts = 0.0, 1
    while (wait := after(attempts, late)) != "parked":
        late, attempts = late + wait, attempts + 1
    assert late == 86_400
    assert attempts < Retry().most_attempts


def test_what_comes_late_for_no_fault_of_its_own_is_still_tried() -> None:
    assert after(1, 3 * 86_400) == 10
    assert after(2, 3 * 86_400) == 20
    assert after(3, 3 * 86_400) == "parked"


def test_attempts_are_bounded_and_what_is_refused_for_good_is_not_tried_again() -> None:
    assert after(30, 60) == "parked"
    assert after(5, 60, retry=Retry(most_attempts=5)) == "parked"
    assert after(1, 0, permanent=True) == "parked"
    assert after(10_000, 1, retry=Retry(most_attempts=100_000)) == 6 * 3600


def test_a_wait_that_the_other_side_asks_for_is_kept_within_six_hours() -> None:
    assert after(1, 0, retry_after=300.0) == 300
    assert after(1, 0, retry_after=1.0) == 10
    assert after(1, 0, retry_after=1e9) == 6 * 3600
