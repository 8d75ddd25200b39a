"""Whole leads as ADF: golden files, and what holds for whatever a shopper sends (ADF.md)."""

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lead.adf.reading import against_the_dtd, parsed, text_of
from tests.lead.adf.sample import (
    AGENT,
    CASES,
    CONSENT,
    CUSTOMER,
    GOLDEN,
    HOSTILE,
    LEAD_ID,
    TRADE_IN,
    VIN,
    appointment,
    booking,
    business,
    lead,
)

from forecourt.lead.adf import ADFError, ADFOptions, check, to_adf
from forecourt.lead.adf.text import LONGEST_LINE, clean


@pytest.mark.parametrize("name", CASES)
def test_a_lead_is_written_as_in_its_golden_file(name: str) -> None:
    assert to_adf(*CASES[name]) == (GOLDEN / f"{name}.xml").read_bytes()


def test_every_golden_file_has_its_lead() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_golden_file_is_valid_by_the_dtd_and_by_the_check(name: str) -> None:
    xml, condition = (GOLDEN / f"{name}.xml").read_bytes(), CASES[name][1].condition_element
    assert check(xml, condition_element=condition) == []
    assert against_the_dtd(xml, condition_element=condition) == []


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("7-bit")])
def test_the_form_for_email_is_7_bit(name: str) -> None:
    assert (GOLDEN / f"{name}.xml").read_bytes().isascii()


def test_the_prolog_comes_first() -> None:
    xml = to_adf(lead(business()))
    assert xml.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<?adf version="1.0"?>\n<adf>\n')


def test_the_same_lead_has_the_same_id_when_it_is_sent_again() -> None:
    stored = lead(business(message="Hello"))
    first, again = (parsed(to_adf(stored, ADFOptions(status=status))) for status in ("new", "resend"))
    assert text_of(first, "prospect/id") == text_of(again, "prospect/id") == LEAD_ID
    assert first[0].attrib == {"status": "new"}
    assert again[0].attrib == {"status": "resend"}
    assert [child.attrib["source"] for child in first.iter("id")] == ["Forecourt", "Forecourt"]


@pytest.mark.parametrize(
    ("parts", "interests"),
    [
        ({}, ["buy"]),
        ({"vehicle_of_interest": VIN}, ["buy"]),
        ({"trade_in": TRADE_IN}, ["trade-in"]),
        ({"vehicle_of_interest": VIN, "trade_in": TRADE_IN}, ["buy", "trade-in"]),
        ({"vehicle_of_interest": VIN, "appointment": appointment("test_drive")}, ["test-drive"]),
        ({"vehicle_of_interest": VIN, "appointment": appointment("sales")}, ["buy"]),
        ({"trade_in": TRADE_IN, "appointment": appointment("trade_in")}, ["trade-in"]),
    ],
)
def test_at_most_two_vehicles_say_what_they_are_for(parts: dict[str, Any], interests: list[str]) -> None:
    root = parsed(to_adf(lead(business(**parts))))
    assert [vehicle.attrib["interest"] for vehicle in root.iter("vehicle")] == interests


def test_a_service_visit_goes_to_the_service_department() -> None:
    root = parsed(to_adf(lead(business(appointment=appointment("service")), booking=booking("service", "confirmed"))))
    assert text_of(root, "prospect/vendor/contact/email") == "service@demo-toyota.example.com"


def test_only_an_appointment_has_a_timeframe() -> None:
    assert parsed(to_adf(lead(business(message="Hello")))).find(".//timeframe") is None
    assert parsed(to_adf(lead(business(appointment=appointment("sales"))))).find(".//timeframe") is not None


def test_nothing_of_the_grant_but_its_channels_leaves() -> None:
    xml = to_adf(lead(business(message="Hello"))).decode()
    assert "I let the dealer" not in xml
    assert "lead_submission" not in xml
    assert "Consent to contact by: email, phone." in xml


def test_a_lead_that_cannot_be_written_is_refused_without_a_word_of_the_shopper() -> None:
    stored = replace(lead(business(message=HOSTILE)), lead_id=" ")
    with pytest.raises(ADFError) as caught:
        to_adf(stored)
    assert caught.value.problems == ["adf/prospect[1]/id[1]: the text must be more than blanks"]
    assert str(caught.value) == caught.value.problems[0]


@pytest.mark.parametrize("source", ["", " a", "a" * 65, 'a"b', "a\nb", "ä", "a<b"])
def test_a_source_that_cannot_be_written_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="source must be"):
        ADFOptions(source=source)


@pytest.mark.parametrize("brand", ["", " ", "\x00"])
def test_a_blank_brand_is_refused(brand: str) -> None:
    with pytest.raises(ValueError, match="brand must not be blank"):
        ADFOptions(brand=brand)


def test_a_lead_shows_nothing_of_the_shopper() -> None:
    assert "Ada" not in repr(lead(business()))
    assert "ada@" not in repr(lead(business()))


TEXT: Final = st.text(
    st.characters() | st.sampled_from("<>&\"'\r\n\t \x00\x0b\ud800\udfff\ufffe]") | st.sampled_from("田🚗éЖ"),
    max_size=60,
) | st.sampled_from([HOSTILE, "]]>", "<![CDATA[x]]>", "&#0;", "<?adf?>"])


@given(TEXT, TEXT, TEXT, TEXT, TEXT, st.booleans())
def test_whatever_a_shopper_sends_is_valid_and_is_read_back(
    first: str, last: str, message: str, notes: str, make: str, seven_bit: bool
) -> None:
    stored = lead(
        business(
            customer={**CUSTOMER, "first_name": first, "last_name": last, "address": {"city": last}},
            consent=CONSENT,
            source_agent={**AGENT, "name": make},
            vehicle_of_interest={"make": make, "model": first, "notes": notes, "features": [message]},
            trade_in={"model": make, "description": message},
            appointment=appointment("test_drive", notes=notes),
            message=message,
        )
    )
    xml = to_adf(stored, ADFOptions(seven_bit=seven_bit))
    assert check(xml) == []
    assert max(map(len, xml.split(b"\n"))) <= LONGEST_LINE or not seven_bit
    assert xml.isascii() or not seven_bit
    root = parsed(xml)
    names = {name.attrib["part"]: name.text for name in root.findall("prospect/customer/contact/name")}
    given_names = {"first": clean(first), "last": clean(last)}
    assert names == ({part: text for part, text in given_names.items() if text.strip()} or {"full": "Unknown"})
    assert root.findtext("prospect/vehicle/make") == (clean(make) if clean(make).strip() else "Unknown")
    assert root.findtext("prospect/provider/name") == (clean(make) if clean(make).strip() else "Unknown")
    comments = text_of(root, "prospect/customer/comments")
    lines = [clean(message)] if clean(message).strip() else []
    lines = ([f"Appointment notes: {clean(notes)}"] if clean(notes).strip() else []) + lines
    end = "\n".join([*lines, "Consent to contact by: email, phone. Preferred: phone."])
    assert comments.partition("\n")[2] == end
