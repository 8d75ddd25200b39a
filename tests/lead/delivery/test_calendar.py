"""Calendar objects that other people's software reads (RFC 5545), and that tell without asking (RFC 5546)."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

import icalendar
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lead.adf.sample import (
    CASES,
    CUSTOMER,
    END,
    HOSTILE,
    LISTING,
    RECEIVED,
    START,
    VIN,
    appointment,
    booking,
    business,
    lead,
)

from forecourt.lead.adf import ADFLead
from forecourt.lead.delivery.calendar import LONGEST_LINE, invitation
from forecourt.lead.delivery.notice import notice

CONFIRMED: Final = CASES["vehicle-and-trade-in-resent"][0]


def visit(**parts: Any) -> ADFLead:
    """Return a lead with a confirmed test drive."""
    asked = business(**{"vehicle_of_interest": VIN, "appointment": appointment("test_drive"), **parts})
    return lead(asked, listing=LISTING, booking=booking("test_drive", "confirmed"))


def read(stored: ADFLead, **more: Any) -> tuple[Any, Any]:
    """Return the calendar object as another library reads it, with its one event."""
    calendar = icalendar.Calendar.from_ical(invitation(stored, stamped=RECEIVED, **more))
    assert isinstance(calendar, icalendar.Calendar)
    (event,) = calendar.walk("VEVENT")
    assert not calendar.errors
    assert not event.errors
    return calendar, event


def test_a_confirmed_appointment_is_an_event() -> None:
    calendar, event = read(CONFIRMED)
    assert (calendar["VERSION"], calendar["METHOD"]) == ("2.0", "PUBLISH")
    assert event["UID"] == "appt_1"
    assert event.start == START == datetime(2026, 5, 3, 18, 0, tzinfo=UTC)
    assert event.end == END
    assert event["DTSTAMP"].dt == RECEIVED.replace(microsecond=0)
    assert (event["STATUS"], event["SEQUENCE"]) == ("CONFIRMED", 0)
    assert event["SUMMARY"] == "Test drive: Ada Example (2024 Honda CR-V EX-L, VIN 1HGCY2F57RA000001, stock DT-2611)"
    assert event["LOCATION"] == "Demo Toyota San Francisco, 100 Market St, San Francisco, CA, 94105, US"
    assert event["ORGANIZER"] == "mailto:sales@demo-toyota.example.com"
    assert event["ORGANIZER"].params["CN"] == "Demo Toyota San Francisco"
    assert "ATTENDEE" not in event


def test_the_description_is_the_notice() -> None:
    assert read(CONFIRMED)[1]["DESCRIPTION"] == notice(CONFIRMED).decode()


def test_times_are_in_utc_with_a_z() -> None:
    text = invitation(CONFIRMED, stamped=RECEIVED.astimezone(timezone(timedelta(hours=9)))).decode()
    assert re.findall(r"^DT\w+:(.*)\r$", text, re.MULTILINE) == [
        "20260430T110509Z",
        "20260503T180000Z",
        "20260503T190000Z",
    ]


def test_a_cancellation_takes_back_the_same_event() -> None:
    calendar, event = read(CONFIRMED, sequence=1, cancelled=True)
    assert calendar["METHOD"] == "CANCEL"
    assert (event["UID"], event["STATUS"], event["SEQUENCE"]) == ("appt_1", "CANCELLED", 1)
    assert "ORGANIZER" in event


@pytest.mark.parametrize("status", ["requested", "proposed", "rejected"])
def test_an_appointment_without_times_goes_into_no_calendar(status: str) -> None:
    stored = lead(business(appointment=appointment("sales")), booking=booking("sales", status))
    with pytest.raises(ValueError, match="with its times"):
        invitation(stored, stamped=RECEIVED)


def test_a_lead_without_an_appointment_goes_into_no_calendar() -> None:
    with pytest.raises(ValueError, match="with its times"):
        invitation(lead(business()), stamped=RECEIVED)


def test_the_same_lead_is_the_same_calendar() -> None:
    assert invitation(CONFIRMED, stamped=RECEIVED) == invitation(CONFIRMED, stamped=RECEIVED)


def test_a_service_visit_is_organised_by_the_service_department() -> None:
    stored = lead(business(appointment=appointment("service")), booking=booking("service", "confirmed"))
    assert read(stored)[1]["ORGANIZER"] == "mailto:service@demo-toyota.example.com"


def test_a_rooftop_without_email_is_an_organizer_of_a_fixed_name() -> None:
    stored = replace(visit(), rooftop="Closed Rooftop")
    organizer = read(stored)[1]["ORGANIZER"]
    assert organizer.startswith("urn:uuid:")
    assert organizer == read(stored)[1]["ORGANIZER"]
    assert organizer.params["CN"] == "Closed Rooftop"


def lines(stored: ADFLead) -> list[bytes]:
    """Return the lines as they are sent, without their ends."""
    content = invitation(stored, stamped=RECEIVED)
    assert content.endswith(b"\r\n")
    parts = content.removesuffix(b"\r\n").split(b"\r\n")
    assert not any(b"\n" in part or b"\r" in part for part in parts)
    return parts


@given(st.text(max_size=300))
def test_whatever_a_shopper_writes_stays_in_its_property(text: str) -> None:
    stored = visit(customer={**CUSTOMER, "first_name": text}, message=text)
    for line in lines(stored):
        assert len(line) <= LONGEST_LINE
        line.decode()  # no character is torn apart
    _, event = read(stored)
    assert event["DESCRIPTION"] == notice(stored).decode()
    assert [line for line in lines(stored) if line.startswith(b"BEGIN:")] == [b"BEGIN:VCALENDAR", b"BEGIN:VEVENT"]


def test_a_hostile_name_adds_nothing() -> None:
    stored = visit(customer={**CUSTOMER, "first_name": f"x\r\nATTENDEE:mailto:all@example.com\r\n{HOSTILE}"})
    _, event = read(stored)
    assert "ATTENDEE" not in event
    assert event["SUMMARY"].startswith("Test drive: x ATTENDEE:mailto:all@example.com ]]>")


@pytest.mark.parametrize("name", ['The "Best" Cars', "A;B,C:D", "車\nX-EVIL:1", "a" * 200, "\x1b[31m", '"'])
def test_a_hostile_rooftop_name_stays_in_quotes(name: str) -> None:
    stored = replace(visit(), rooftop=name)
    _, event = read(stored)
    assert "X-EVIL" not in event
    assert event["ORGANIZER"].startswith("urn:uuid:")
    for line in lines(stored):
        assert len(line) <= LONGEST_LINE


def test_letters_of_many_bytes_are_folded_whole() -> None:
    for shift in range(5):
        stored = visit(customer={**CUSTOMER, "first_name": "a" * shift + "🚗" * 100})
        for line in lines(stored):
            line.decode()
        assert f"{'a' * shift}{'🚗' * 100} Example" in str(read(stored)[1]["SUMMARY"])
