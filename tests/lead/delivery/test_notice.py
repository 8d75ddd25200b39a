"""A lead in plain words: everything that a salesperson needs, in the rooftop's time, and nothing that lies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lead.adf.sample import (
    CASES,
    CUSTOMER,
    DENVER,
    HOSTILE,
    LISTING,
    TRADE_IN,
    VIN,
    appointment,
    booking,
    business,
    lead,
)

from forecourt.lead.delivery.notice import customer_name, notice, vehicle_words

FULL = """\
New lead for Demo Toyota San Francisco

Name:        Ada Example
Email:       ada@example.com
Phone:       +14155550123
Address:     320 Example Street, Apt 412, San Francisco, CA, 94107
Contact by:  email, phone (prefers phone)
Vehicle:     2024 Honda CR-V EX-L, VIN 1HGCY2F57RA000001, stock DT-2611
Trade-in:    2020 Volkswagen Passat SE
             62000 miles, good condition
Appointment: test drive, Sunday, May 3, 2026 at 11:00 AM PDT (America/Los_Angeles), 60 minutes: confirmed.

Appointment notes:
  I bring my partner.

Message:
  I would pay cash.

Sent by:     example-assistant, https://agent.example.com
Received:    Thursday, April 30, 2026 at 4:05 AM PDT (America/Los_Angeles)
Lead:        lead_01JT0000000000000000000001
"""


def lines(payload: dict[str, Any], **more: Any) -> list[str]:
    """Return the lines of a notice."""
    return notice(lead(payload, **more)).decode().splitlines()


def test_a_whole_lead_reads_so() -> None:
    assert notice(CASES["vehicle-and-trade-in-resent"][0]).decode() == FULL


@pytest.mark.parametrize("name", CASES)
def test_every_lead_can_be_read(name: str) -> None:
    text = notice(CASES[name][0]).decode()
    assert text.startswith("New lead for ")
    assert text.endswith("\nLead:        lead_01JT0000000000000000000001\n")
    assert "\r" not in text
    assert "None" not in text


def test_times_are_in_the_rooftop_s_zone() -> None:
    asked = business(appointment=appointment("sales"))
    denver = lines(asked, rooftop=DENVER, booking=booking("sales", "confirmed"))
    assert any("12:00 PM MDT (America/Denver)" in line for line in denver)
    assert "Received:    Thursday, April 30, 2026 at 5:05 AM MDT (America/Denver)" in denver


def test_a_rooftop_that_is_gone_has_its_times_in_utc() -> None:
    assert "Received:    Thursday, April 30, 2026 at 11:05 AM UTC" in lines(business(), rooftop="Closed Rooftop")


def test_what_is_absent_has_no_line() -> None:
    short = lines(business(customer={"first_name": "Ada", "last_name": " ", "email": "ada@example.com"}))
    labels = [line.split(":")[0] for line in short if ":" in line]
    assert labels == ["Name", "Email", "Contact by", "Sent by", "Received", "Lead"]


def test_a_text_cannot_pass_for_a_line_of_ours() -> None:
    forged = "x\nEmail:       evil@example.com\r\nLead:        lead_2\u2028Phone:       1\x85Phone: 2"
    shown = lines(
        business(
            customer={**CUSTOMER, "first_name": forged},
            vehicle_of_interest={"make": forged, "notes": forged},
            message=forged,
            source_agent={"name": forged},
        )
    )
    for label in ("Email:", "Lead:", "Phone:"):
        assert len([line for line in shown if line.startswith(label)]) == 1, label


@given(st.text())
def test_no_text_controls_the_screen_or_begins_a_line(text: str) -> None:
    shown = notice(lead(business(customer={**CUSTOMER, "first_name": text}, message=text))).decode()
    assert not set(shown) & {"\x1b", "\x00", "\r", "\u202e", "\u2066", "\x85", "\u2028", "\ufeff"}
    ours = (
        "New lead",
        "Name:",
        "Email:",
        "Phone:",
        "Address:",
        "Contact by:",
        "Message:",
        "Sent by:",
        "Received:",
        "Lead:",
    )
    assert all(line == "" or line.startswith((*ours, " ")) for line in shown.splitlines())


def test_a_very_long_name_is_cut() -> None:
    assert max(map(len, lines(business(customer={**CUSTOMER, "first_name": "a" * 5000})))) < 520


def test_names_of_every_script_stay_as_they_are() -> None:
    names = {**CUSTOMER, "first_name": "می\u200cنا", "last_name": "田中 👨\u200d👩\u200d👧"}  # noqa: RUF001
    assert customer_name(lead(business(customer=names))) == "می\u200cنا 田中 👨\u200d👩\u200d👧"  # noqa: RUF001


def test_a_name_of_nothing_is_none() -> None:
    assert customer_name(lead(business(customer={"first_name": " ", "last_name": "\x07\u202e"}))) is None


@pytest.mark.parametrize(
    ("vehicle", "listing", "words"),
    [
        (None, None, None),
        ({}, {}, None),
        (VIN, None, "VIN 1HGCY2F57RA000001"),
        (VIN, LISTING, "2024 Honda CR-V EX-L, VIN 1HGCY2F57RA000001, stock DT-2611"),
        ({"model": "CRV"}, LISTING, "2024 Honda CRV EX-L, VIN 1HGCY2F57RA000001, stock DT-2611"),
        (TRADE_IN, None, "2020 Volkswagen Passat SE"),
        ({"year": 2025.0, "make": "Toyota"}, None, "2025 Toyota"),
    ],
)
def test_a_vehicle_is_told_in_one_line(vehicle: Any, listing: Any, words: str | None) -> None:
    assert vehicle_words(vehicle, listing) == words


def test_hostile_text_is_shown_as_text() -> None:
    shown = notice(lead(business(message=HOSTILE))).decode()
    assert "  Subject: other\n" in shown
    assert "\x1b" not in shown
