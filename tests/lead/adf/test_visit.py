"""The appointment in words, in the rooftop's own time zone, and the customer's comments (ADF.md)."""

from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import pytest
from tests.lead.adf.sample import CONSENT, appointment, booking

from forecourt.lead.adf.element import document
from forecourt.lead.adf.visit import Visit, customer_comments, spoken, stamp
from forecourt.store import Booking

PACIFIC = ZoneInfo("America/Los_Angeles")
SUNDAY = "Sunday, May 3, 2026 at 11:00 AM PDT (America/Los_Angeles)"


@pytest.mark.parametrize(
    ("moment", "zone", "text"),
    [
        ("2026-05-03T18:00", "America/Los_Angeles", SUNDAY),
        ("2026-05-03T18:00", None, "Sunday, May 3, 2026 at 6:00 PM UTC"),
        ("2026-05-04T06:05", "America/Denver", "Monday, May 4, 2026 at 12:05 AM MDT (America/Denver)"),
        ("2026-05-03T18:00", "America/Denver", "Sunday, May 3, 2026 at 12:00 PM MDT (America/Denver)"),
        # An hour that the clock shows twice, and the minutes before and after one that it skips.
        ("2026-11-01T08:30", "America/Los_Angeles", "Sunday, November 1, 2026 at 1:30 AM PDT (America/Los_Angeles)"),
        ("2026-11-01T09:30", "America/Los_Angeles", "Sunday, November 1, 2026 at 1:30 AM PST (America/Los_Angeles)"),
        ("2026-03-08T09:59", "America/Los_Angeles", "Sunday, March 8, 2026 at 1:59 AM PST (America/Los_Angeles)"),
        ("2026-03-08T10:00", "America/Los_Angeles", "Sunday, March 8, 2026 at 3:00 AM PDT (America/Los_Angeles)"),
    ],
)
def test_a_time_is_the_rooftops_and_its_zone_is_named(moment: str, zone: str | None, text: str) -> None:
    assert spoken(datetime.fromisoformat(moment + "+00:00"), ZoneInfo(zone) if zone else None) == text


def test_a_stamp_is_iso_8601_to_the_second_with_an_offset() -> None:
    moment = datetime(2026, 4, 30, 11, 5, 9, 123456, UTC)
    assert stamp(moment, PACIFIC) == "2026-04-30T04:05:09-07:00"
    assert stamp(moment, None) == "2026-04-30T11:05:09+00:00"
    assert stamp(datetime(1850, 1, 1, tzinfo=UTC), PACIFIC) == "1850-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("confirmed", f"Appointment: test drive, {SUNDAY}, 60 minutes: confirmed."),
        ("proposed", f"Appointment: test drive, {SUNDAY}: not available; other times were proposed."),
        ("requested", f"Appointment: test drive, {SUNDAY}: to be arranged by the dealership."),
        ("rejected", f"Appointment: test drive, {SUNDAY}: declined."),
    ],
)
def test_the_sentence_says_what_became_of_the_appointment(status: str, text: str) -> None:
    assert Visit(appointment("test_drive"), booking("test_drive", status), PACIFIC).sentence() == text


def test_without_a_time_or_an_outcome_the_dealership_has_yet_to_answer() -> None:
    visit = Visit({"appointment_type": "service", "duration_minutes": 90.0}, None, PACIFIC)
    assert visit.sentence() == (
        "Appointment: service visit, no time named, 90 minutes: to be arranged by the dealership."
    )


def test_the_time_that_was_given_is_written_and_not_the_one_asked_for() -> None:
    start = datetime(2026, 5, 4, 17, 0, tzinfo=UTC)
    given = Booking("appt_1", "sales", "sales", "confirmed", start, start + timedelta(minutes=45))
    sentence = Visit(appointment("sales", duration_minutes=120), given, PACIFIC).sentence()
    assert sentence == (
        "Appointment: sales visit, Monday, May 4, 2026 at 10:00 AM PDT (America/Los_Angeles), 45 minutes: confirmed."
    )


@pytest.mark.parametrize(
    ("asked", "status", "dates"),
    [
        (appointment("trade_in"), "confirmed", ["2026-05-03T11:00:00-07:00", "2026-05-03T12:00:00-07:00"]),
        (appointment("trade_in"), "requested", ["2026-05-03T11:00:00-07:00"]),
        (appointment("trade_in"), "proposed", []),
        (appointment("trade_in"), "rejected", []),
        ({"appointment_type": "trade_in"}, "requested", []),
    ],
)
def test_the_timeframe_has_the_times_that_may_hold(asked: dict[str, Any], status: str, dates: list[str]) -> None:
    frame = ElementTree.fromstring(document(Visit(asked, booking("trade_in", status), PACIFIC).timeframe()))
    assert [child.text for child in frame] == ["Trade-in appraisal", *dates]
    assert [child.tag for child in frame] == ["description", "earliestdate", "latestdate"][: len(dates) + 1]


def test_comments_are_the_appointment_then_the_message_then_the_channels() -> None:
    visit = Visit(appointment("test_drive", notes="With my partner."), booking("test_drive", "confirmed"), PACIFIC)
    comments = customer_comments(visit, "I pay\nin cash.", CONSENT, "phone")
    assert comments.content == (
        f"Appointment: test drive, {SUNDAY}, 60 minutes: confirmed.\nAppointment notes: With my partner.\n"
        "I pay\nin cash.\nConsent to contact by: email, phone. Preferred: phone."
    )


@pytest.mark.parametrize("preferred", [None, "any"])
def test_without_more_the_comments_are_the_channels_alone(preferred: str | None) -> None:
    assert customer_comments(None, " ", CONSENT, preferred).content == "Consent to contact by: email, phone."


def test_nothing_else_of_the_grant_is_written() -> None:
    assert "I let the dealer" not in str(customer_comments(None, "Hello", CONSENT, "email").content)


def test_a_visit_shows_nothing_of_the_shopper() -> None:
    assert "partner" not in repr(Visit(appointment("sales", notes="With my partner."), None, None))
