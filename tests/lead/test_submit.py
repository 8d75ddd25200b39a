"""Taking a lead (CONTRACTS.md section 6; "Errors and retries", section "Important distinctions")."""

import asyncio
import copy
import json
import re
from collections.abc import Coroutine, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from forecourt.contract.validation import SchemaSet
from forecourt.errors import AAPError
from forecourt.lead.calendar import AppointmentRules
from forecourt.lead.outbox import Destination, Dispatch, opened
from forecourt.lead.sealing import Sealer
from forecourt.lead.seller import Seller
from forecourt.lead.submit import KEY_LIFETIME, TWIN_WINDOW, Stock, replay, replay_among, submit
from forecourt.model import LeadRequest
from forecourt.store import LeadRecord, Store, StoreError, open_store

ZONE: Final = ZoneInfo("America/Los_Angeles")
NOW: Final = datetime(2026, 5, 4, 12, 0, tzinfo=ZONE)  # a Monday noon
OPEN: Final = "2026-05-05T11:00:00-07:00"
SUNDAY: Final = "2026-05-10T11:00:00-07:00"
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


def rooftop(name: str, *departments: str, phone: str = "+14155550100") -> dict[str, Any]:
    week = {day: {"open": "09:00", "close": "18:00"} for day in DAYS}
    return {
        "name": name,
        "timezone": "America/Los_Angeles",
        "phones": [{"name": "Front desk", "value": "555-0100"}, {"name": "Sales", "value": phone}],
        "schedules": [{"name": department, "value": week} for department in departments],
    }


PROFILE: Final = {
    "name": "Dealer A",
    "rooftops": [
        rooftop("North", "sales"),
        rooftop("South", "sales", "service", phone="+14155550109"),
        {"name": "Quiet"},
    ],
}
SELLER: Final = Seller.from_profile("dealer-a", PROFILE)
STRICT: Final = Seller.from_profile("dealer-a", PROFILE, strict_times=True)

BUSINESS: Final[Mapping[str, Any]] = {
    "customer": {"first_name": "Sam", "last_name": "Example", "email": "sam@example.com"},
    "consent": {
        "granted_at": "2026-05-04T11:59:00-07:00",
        "allowed_channels": ["email"],
        "consent_text": "Contact me.",
        "scope": ["lead_submission"],
    },
    "source_agent": {"name": "example-agent"},
}
CAR: Final = {"year": 2024, "make": "Honda", "model": "Civic"}
IN_STOCK: Final = Stock("dealer-a/1", "North")
UNKNOWN: Final = Stock()


def request(key: str | None = None, **parts: Any) -> LeadRequest:
    """Return a lead of Sam's with further parts; `customer` changes him."""
    business = copy.deepcopy({**BUSINESS, **parts})
    return LeadRequest(business, key)


class Desk:
    """A store and an event loop."""

    def __init__(self, store: Store, runner: asyncio.Runner) -> None:
        self.store, self.runner = store, runner

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def submit(
        self,
        lead: LeadRequest,
        stock: Stock = UNKNOWN,
        *,
        seller: Seller = SELLER,
        now: datetime = NOW,
        by: str | None = None,
    ) -> bytes:
        receipt: bytes = self.run(submit(self.store, seller, lead, stock, by, now))
        return receipt

    def refused(self, lead: LeadRequest, stock: Stock = UNKNOWN, **more: Any) -> AAPError:
        before = self.leads()
        with pytest.raises(AAPError) as raised:
            self.submit(lead, stock, **more)
        assert self.leads() == before, "nothing is kept of a submission that is rejected as a whole"
        return raised.value

    def leads(self) -> list[LeadRecord]:
        return list(self.run(self.store.leads(None, 1000)))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with asyncio.Runner() as runner:
        store = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
        runner.run(store.open())
        yield Desk(store, runner)
        runner.run(store.close())


def outcome(receipt: bytes) -> dict[str, Any]:
    appointment: dict[str, Any] = json.loads(receipt)["data"]["appointment"]
    return appointment


def status(receipt: bytes) -> str:
    found: str = json.loads(receipt)["data"]["status"]
    return found


# What is kept


def test_a_lead_is_kept_with_its_grant_verbatim_and_acknowledged_with_its_id(desk: Desk) -> None:
    lead = request(message="Is it still there?")
    receipt = json.loads(desk.submit(lead, IN_STOCK))
    (kept,) = desk.leads()
    assert receipt["data"] == {
        "lead_id": kept.lead_id,
        "status": "received",
        "dealer": {"name": "North", "phone": "+14155550100"},
    }
    assert json.loads(kept.business) == lead.business
    assert json.loads(kept.grant) == BUSINESS["consent"]
    assert list(json.loads(kept.grant)) == list(BUSINESS["consent"])
    assert (kept.dealer_id, kept.rooftop, kept.listing_id) == ("dealer-a", "North", "dealer-a/1")
    assert re.fullmatch(r"lead_[0-9A-HJKMNP-TV-Z]{26}", kept.lead_id)


def test_text_of_any_script_is_kept_as_it_came(desk: Desk) -> None:
    lead = request(message="Zażółć 試乗 \U0001f697 \0 </adf>")
    desk.submit(lead)
    assert json.loads(desk.leads()[0].business) == lead.business


# Idempotency


@pytest.mark.requirement("ERR-KEY-CONFLICT")
def test_the_same_key_and_content_are_answered_byte_for_byte_and_kept_once(desk: Desk) -> None:
    first = desk.submit(request("key-1", appointment={"appointment_type": "sales", "appointment_at": OPEN}))
    reordered = dict(reversed(list(request("key-1").business.items())))
    reordered["appointment"] = {"appointment_at": OPEN, "appointment_type": "sales"}
    for later in (timedelta(), timedelta(hours=25), KEY_LIFETIME - timedelta(seconds=1)):
        assert desk.submit(LeadRequest(reordered, "key-1"), now=NOW + later) == first
        assert desk.run(replay(desk.store, SELLER, LeadRequest(reordered, "key-1"), None, NOW + later)) == first
    assert len(desk.leads()) == 1


@pytest.mark.requirement("ERR-KEY-CONFLICT")
@pytest.mark.parametrize(
    "other",
    [{"message": "x"}, {"customer": {**BUSINESS["customer"], "email": "SAM@example.com"}}, {"submitted_at": OPEN}],
)
def test_the_same_key_with_other_content_is_a_conflict_and_keeps_nothing(desk: Desk, other: dict[str, Any]) -> None:
    first = desk.submit(request("key-1"))
    error = desk.refused(request("key-1", **other))
    assert (error.code, error.retryable) == ("IDEMPOTENCY_CONFLICT", False)
    assert [problem.location for problem in error.problems] == ["/idempotency_key"]
    assert "key-1" not in json.dumps(error.to_payload())
    assert desk.run(replay(desk.store, SELLER, request("key-1", **other), None, NOW)) is None
    assert desk.submit(request("key-1")) == first


def test_a_key_belongs_to_its_seller_and_its_caller(desk: Desk) -> None:
    other = Seller.from_profile("dealer-b", PROFILE)
    receipts = {
        desk.submit(request("key-1"), seller=seller, by=caller)
        for seller in (SELLER, other)
        for caller in (None, "", "null", "agent-1", "agent-2")
    }
    assert len(receipts) == 10
    assert desk.run(replay(desk.store, other, request("key-1"), "agent-3", NOW)) is None


@pytest.mark.parametrize("caller", [None, "", 'agent "é"'])
def test_a_replay_is_found_among_many_sellers_by_its_content(desk: Desk, caller: str | None) -> None:
    other = Seller.from_profile("dealer-b", PROFILE)
    asked = ["dealer-z", other.dealer_id, SELLER.dealer_id]

    def found(wanted: LeadRequest, by: str | None = caller) -> bytes | None:
        receipt: bytes | None = desk.run(replay_among(desk.store, asked, wanted, by, NOW))
        return receipt

    assert found(request("key-1")) is None
    first = desk.submit(request("key-1"), by=caller)
    second = desk.submit(request("key-1", message="x"), seller=other, by=caller)
    assert found(request("key-1")) == first
    assert found(request("key-1", message="x")) == second
    assert found(request("key-1", message="y")) is None
    assert found(request("key-2")) is None
    assert found(request("key-1"), "agent-9") is None
    assert found(request()) is None


def test_a_key_that_has_expired_takes_a_new_lead(desk: Desk) -> None:
    first = desk.submit(request("key-1"))
    second = desk.submit(request("key-1", message="Another year"), now=NOW + KEY_LIFETIME)
    assert first != second
    assert status(second) == "received"


def test_two_keys_are_two_leads_though_their_content_is_equal(desk: Desk) -> None:
    assert desk.submit(request("key-1")) != desk.submit(request("key-2"))
    assert len(desk.leads()) == 2


def test_no_key_has_nothing_to_replay(desk: Desk) -> None:
    desk.submit(request())
    assert desk.run(replay(desk.store, SELLER, request(), None, NOW)) is None


def test_sixty_four_equal_submissions_at_once_are_one_lead(desk: Desk) -> None:
    async def all_at_once(key: str | None) -> list[bytes]:
        return await asyncio.gather(*(submit(desk.store, SELLER, request(key), Stock(), None, NOW) for _ in range(64)))

    keyed = desk.run(all_at_once("key-1"))
    assert len(set(keyed)) == 1
    assert len(desk.leads()) == 1
    unkeyed = desk.run(all_at_once(None))
    assert {status(receipt) for receipt in unkeyed} == {"duplicate"}
    assert len(desk.leads()) == 1


# Equivalent leads without a key


@pytest.mark.parametrize(
    "customer",
    [
        {"email": "sam@example.com"},
        {"email": " SAM@Example.com "},
        {"phone": "+14155550123"},
        {"phone": "+1 (415) 555-0123"},
        {"email": "sam@work.example.com", "phone": "+14155550123"},
    ],
)
def test_the_same_person_by_email_or_phone_is_a_duplicate(desk: Desk, customer: dict[str, str]) -> None:
    sam = {"first_name": "Sam", "last_name": "Example", "email": "sam@example.com", "phone": "+14155550123"}
    first = json.loads(desk.submit(request(customer=sam), IN_STOCK))
    again = request(customer={"first_name": "S.", "last_name": "Example", **customer}, message="Hello?")
    second = json.loads(desk.submit(again, IN_STOCK, now=NOW + timedelta(hours=23)))
    assert (second["data"]["status"], second["data"]["lead_id"]) == ("duplicate", first["data"]["lead_id"])
    assert len(desk.leads()) == 1


def test_a_lead_that_came_with_a_key_has_duplicates_too(desk: Desk) -> None:
    first = json.loads(desk.submit(request("key-1")))
    second = json.loads(desk.submit(request()))
    assert second["data"]["status"] == "duplicate"
    assert second["data"]["lead_id"] == first["data"]["lead_id"]


@pytest.mark.parametrize(
    ("parts", "stock", "later"),
    [
        ({"customer": {"first_name": "Sam", "last_name": "Example", "email": "sam2@example.com"}}, IN_STOCK, 1),
        ({}, Stock("dealer-a/2", "North"), 1),
        ({}, Stock(), 1),
        ({"appointment": {"appointment_type": "sales"}}, IN_STOCK, 1),
        ({}, IN_STOCK, TWIN_WINDOW / timedelta(hours=1) + 0.001),
    ],
    ids=["other person", "other vehicle", "no vehicle", "an appointment", "a day later"],
)
def test_what_is_not_equivalent_is_a_new_lead(desk: Desk, parts: dict[str, Any], stock: Stock, later: float) -> None:
    desk.submit(request(), IN_STOCK)
    assert status(desk.submit(request(**parts), stock, now=NOW + timedelta(hours=later))) == "received"
    assert len(desk.leads()) == 2


def test_the_same_shopper_at_another_seller_is_a_new_lead(desk: Desk) -> None:
    desk.submit(request())
    assert status(desk.submit(request(), seller=Seller.from_profile("dealer-b", PROFILE))) == "received"


def test_a_duplicate_within_a_day_of_the_first_repeats_its_appointment(desk: Desk) -> None:
    wish = {"appointment_type": "sales", "appointment_at": OPEN}
    first = desk.submit(request(appointment=wish))
    second = desk.submit(request(appointment=wish), now=NOW + TWIN_WINDOW)
    assert status(second) == "duplicate"
    assert outcome(second) == outcome(first)
    third = desk.submit(request(appointment={**wish, "appointment_at": "2026-05-06T11:00:00-07:00"}))
    assert status(third) == "received"


# Appointments


@pytest.mark.requirement("ERR-LEAD-DECLINED-APPOINTMENT", "ERR-LEAD-NOT-CONCEALED")
def test_an_accepted_lead_with_a_declined_appointment_has_both_outcomes(desk: Desk) -> None:
    wish = {"appointment_type": "test_drive", "appointment_at": SUNDAY}
    receipt = desk.submit(request(vehicle_of_interest=CAR, appointment=wish), IN_STOCK)
    assert status(receipt) == "received"
    found = outcome(receipt)
    assert found["status"] == "proposed"
    assert found["proposed_times"] == [
        "2026-05-11T09:00:00-07:00",
        "2026-05-11T09:30:00-07:00",
        "2026-05-11T10:00:00-07:00",
    ]
    assert "confirmed_at" not in found
    assert len(desk.leads()) == 1


def test_an_open_and_free_time_is_confirmed_in_the_rooftops_offset(desk: Desk) -> None:
    receipt = desk.submit(request(appointment={"appointment_type": "sales", "appointment_at": "2026-05-05T18:00:00Z"}))
    found = outcome(receipt)
    assert (found["status"], found["confirmed_at"]) == ("confirmed", OPEN)
    assert re.fullmatch(r"appt_[0-9A-HJKMNP-TV-Z]{26}", found["appointment_id"])
    assert json.loads(receipt)["message"] == (
        "Sales at North confirmed for Tuesday, May 5 at 11:00 AM (America/Los_Angeles)."
    )


def test_no_time_is_a_request(desk: Desk) -> None:
    found = outcome(desk.submit(request(appointment={"appointment_type": "sales"})))
    assert found["status"] == "requested"
    assert set(found) == {"appointment_id", "status"}


@pytest.mark.parametrize("capacity", [1, 2])
def test_confirmed_slots_respect_the_capacity(desk: Desk, capacity: int) -> None:
    seller = Seller.from_profile("dealer-a", PROFILE, AppointmentRules(capacity={"sales": capacity}))
    wish = {"appointment_type": "sales", "appointment_at": OPEN}

    async def all_at_once() -> list[bytes]:
        leads = [request(f"key-{number}", appointment=wish) for number in range(64)]
        return await asyncio.gather(*(submit(desk.store, seller, lead, Stock(), None, NOW) for lead in leads))

    found = [outcome(receipt) for receipt in desk.run(all_at_once())]
    assert sorted(each["status"] for each in found) == ["confirmed"] * capacity + ["proposed"] * (64 - capacity)
    assert all(OPEN not in each.get("proposed_times", ()) for each in found)


def test_departments_and_rooftops_do_not_take_each_others_slots(desk: Desk) -> None:
    def book(key: str, kind: str, stock: Stock) -> str:
        wish = {"appointment_type": kind, "appointment_at": OPEN}
        found: str = outcome(desk.submit(request(key, vehicle_of_interest=CAR, appointment=wish), stock))["status"]
        return found

    south = Stock("dealer-a/2", "South")
    assert book("1", "test_drive", IN_STOCK) == "confirmed"
    assert book("2", "sales", IN_STOCK) == "proposed"
    assert book("3", "sales", south) == "confirmed"
    assert book("4", "service", south) == "confirmed"


@pytest.mark.requirement("ERR-LEAD-NOT-CONCEALED")
@pytest.mark.parametrize("part", [{"vehicle_of_interest": CAR}, {"trade_in": CAR}, {"message": "Hello"}])
def test_an_impossible_appointment_rejects_the_lead_only_when_nothing_else_was_asked(
    desk: Desk, part: dict[str, Any]
) -> None:
    # A day is the longest appointment there is.
    wish = {"appointment_type": "sales", "appointment_at": OPEN, "duration_minutes": 2000}
    error = desk.refused(request(appointment=wish))
    assert (error.code, error.retryable) == ("APPOINTMENT_TIME_UNAVAILABLE", False)
    receipt = desk.submit(request(appointment=wish, **part))
    assert (status(receipt), outcome(receipt)["status"]) == ("received", "rejected")


def test_a_rejected_submission_leaves_its_key_free(desk: Desk) -> None:
    wish = {"appointment_type": "sales", "appointment_at": OPEN, "duration_minutes": 2000}
    desk.refused(request("key-1", appointment=wish))
    assert status(desk.submit(request("key-1", appointment={**wish, "duration_minutes": 60}))) == "received"


def test_strict_sellers_reject_what_cannot_be_had_as_asked_for_and_propose_times(desk: Desk) -> None:
    wish = {"appointment_type": "sales", "appointment_at": SUNDAY}
    error = desk.refused(request(appointment=wish, message="Hello", vehicle_of_interest=CAR), seller=STRICT)
    assert error.code == "APPOINTMENT_TIME_UNAVAILABLE"
    assert error.to_payload()["details"]["proposed_times"][0] == "2026-05-11T09:00:00-07:00"
    assert [problem.location for problem in error.problems] == ["/appointment"]
    for accepted, expected in (
        ({**wish, "appointment_at": OPEN}, "confirmed"),
        ({"appointment_type": "sales"}, "requested"),
    ):
        assert outcome(desk.submit(request(appointment=accepted), seller=STRICT))["status"] == expected


# Which rooftop


@pytest.mark.parametrize(
    ("stock", "kind", "expected"),
    [
        (Stock(), None, "North"),
        (Stock(), "sales", "North"),
        (Stock(), "service", "South"),
        (Stock("dealer-a/2", "South"), "sales", "South"),
        (Stock(None, "South"), None, "South"),
        (Stock("dealer-a/3", "Gone"), None, "North"),
        (IN_STOCK, "service", "North"),
    ],
)
def test_the_lead_goes_to_the_listings_rooftop_else_to_the_first_that_hosts_the_appointment(
    desk: Desk, stock: Stock, kind: str | None, expected: str
) -> None:
    parts: dict[str, Any] = {} if kind is None else {"appointment": {"appointment_type": kind}}
    receipt = json.loads(desk.submit(request(message="Hello", **parts), stock))
    assert receipt["data"]["dealer"]["name"] == expected
    assert desk.leads()[0].rooftop == expected


def test_a_rooftop_without_hours_takes_requests_and_names_no_phone_it_does_not_have(desk: Desk) -> None:
    wish = {"appointment_type": "sales", "appointment_at": OPEN}
    receipt = desk.submit(request(appointment=wish), Stock(None, "Quiet"))
    assert json.loads(receipt)["data"]["dealer"] == {"name": "Quiet"}
    assert outcome(receipt)["status"] == "requested"


# What is answered

WISHES: Final[list[dict[str, Any]]] = [
    {},
    {"appointment": {"appointment_type": "test_drive"}},
    {"appointment": {"appointment_type": "test_drive", "appointment_at": OPEN}},
    {"appointment": {"appointment_type": "sales", "appointment_at": SUNDAY}},
    {"appointment": {"appointment_type": "service", "appointment_at": OPEN}},
    {"appointment": {"appointment_type": "sales", "appointment_at": OPEN, "duration_minutes": 2000}},
]


@pytest.mark.requirement("RPC-EX-LEAD-RESPONSE")
@pytest.mark.parametrize("parts", WISHES)
@pytest.mark.parametrize("version", ["1.1", "3.1"])
def test_receipts_and_duplicates_fit_the_response_schema_of_both_contracts(
    desk: Desk, version: str, parts: dict[str, Any]
) -> None:
    schemas = SchemaSet.load(version)
    for expected in ("received", "duplicate"):
        receipt = json.loads(desk.submit(request(vehicle_of_interest=CAR, **parts), IN_STOCK))
        assert receipt["data"]["status"] == expected
        answer = {"type": "lead.submit.response", **receipt}
        assert schemas.problems("lead-submit-response.schema.json", answer) == []


@pytest.mark.parametrize("parts", WISHES)
def test_the_receipt_holds_nothing_that_the_shopper_sent(desk: Desk, parts: dict[str, Any]) -> None:
    mark = "ZYXW"
    lead = request(
        customer={"first_name": mark, "last_name": mark, "email": f"{mark}@example.com", "phone": "+14155550177"},
        vehicle_of_interest={**CAR, "make": mark, "model": mark, "trim": mark, "description": mark},
        message=mark,
        **copy.deepcopy(parts),
    )
    if "appointment" in parts:
        dict(lead.business)["appointment"]["notes"] = mark
    for _ in range(2):
        receipt = desk.submit(lead).decode()
        assert mark not in receipt
        assert "0177" not in receipt


def test_a_failing_store_is_a_store_error_and_keeps_nothing(desk: Desk) -> None:
    desk.run(desk.store.close())
    with pytest.raises(StoreError):
        desk.submit(request("key-1"))
    desk.run(desk.store.open())
    assert desk.leads() == []
    assert status(desk.submit(request("key-1"))) == "received"


CRM: Final = Dispatch({"dealer-a": [Destination("dealer-a/crm"), Destination("dealer-a/hook", "event", "South")]})


def test_a_lead_is_kept_with_its_deliveries_and_a_replay_or_a_twin_brings_no_more(desk: Desk) -> None:
    woken: list[int] = []
    dispatch = Dispatch(CRM.destinations, wake=lambda: woken.append(1))

    def take(key: str | None) -> Any:
        return desk.run(submit(desk.store, SELLER, request(key), UNKNOWN, None, NOW, dispatch))

    for key in ("key-1", "key-1", None):
        take(key)
    leads = desk.run(desk.store.leads(None, 9))
    found = desk.run(desk.store.deliveries([row.lead_id for row in leads]))
    assert [(each.target, each.kind, each.status) for each in found] == [("dealer-a/crm", "adf", "waiting")]
    assert woken == [1]
    desk.run(submit(desk.store, SELLER, request("key-2"), UNKNOWN, None, NOW, Dispatch(wake=lambda: woken.append(2))))
    assert woken == [1]


def test_of_the_listing_what_is_needed_later_is_kept_with_the_lead(desk: Desk) -> None:
    stock = Stock("dealer-a/1", "North", b'{"vin":"V","make":"Honda","description":"long"}')
    desk.run(submit(desk.store, SELLER, request(), stock, None, NOW))
    (found,) = desk.run(desk.store.leads(None, 9))
    assert json.loads(found.snapshot) == {"vin": "V", "make": "Honda"}


def test_with_a_key_nothing_that_is_kept_shows_the_shopper_and_the_receipt_never_does(
    desk: Desk,
) -> None:
    sealer = Sealer([bytes(range(32))])
    asked = request("key-1", customer={"first_name": "Zephyrine", "last_name": "Quartermain", "phone": "+14155550173"})
    receipt = desk.run(submit(desk.store, SELLER, asked, UNKNOWN, None, NOW, Dispatch(sealer=sealer)))
    (found,) = desk.run(desk.store.leads(None, 9))
    assert opened(found, sealer) == (asked.business, json.dumps(asked.consent, separators=(",", ":")).encode())
    for kept in (found.business, found.grant, found.receipt, receipt):
        for mark in (b"Zephyrine", b"Quartermain", b"5550173", b"Contact me"):
            assert mark not in kept
    again = desk.run(submit(desk.store, SELLER, asked, UNKNOWN, None, NOW, Dispatch(sealer=sealer)))
    assert again == receipt
